"""The custom chart: a Vega specification, composed by small functions. Used by `torchgraph_wandb.presets`."""

from __future__ import annotations
