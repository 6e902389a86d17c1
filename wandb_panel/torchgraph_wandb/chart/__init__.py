"""The custom chart: a Vega specification, built by small functions. Used by `torchgraph_wandb.presets`."""

from __future__ import annotations
