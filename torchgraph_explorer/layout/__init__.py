"""Computes where the nodes of one call's inside are drawn, with Graphviz or in rows.

It runs where a graph is looked at, never where a model trains, and does not import torch.

Imported by `server`, `torchgraph_wandb`.
"""

from __future__ import annotations
