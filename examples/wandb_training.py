"""A plain training loop that shows its model in Weights & Biases. The lines with an arrow add this package.

Run it with `python examples/wandb_training.py`, logged in to W&B, or offline with `WANDB_MODE=offline`.
"""

from __future__ import annotations

import sys

import torch
import wandb
from torch import nn
from torch.nn import functional

from torchgraph_explorer import watch  # <--


def main(steps: int) -> None:
    """Learn whether two numbers have the same sign."""
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    with wandb.init(project="torchgraph-examples") as run:
        watch(model, backend="wandb", run=run, log_freq=10, upload_record=True)  # <--
        for _ in range(steps):
            points = torch.randn(256, 2)
            same = (points[:, :1] * points[:, 1:] > 0).float()
            optimizer.zero_grad()
            loss = functional.binary_cross_entropy_with_logits(model(points), same)
            loss.backward()
            optimizer.step()
            run.log({"loss": loss.item()})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
