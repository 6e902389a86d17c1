"""A LightningModule without a `forward`, three batches to an update. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.lightning_accumulating`, then `torchgraph serve runs`; it needs `pip install
lightning`.
"""

from __future__ import annotations

from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from torchgraph_explorer import watch


class Signs(lightning.LightningModule):
    """Learns whether two numbers have the same sign."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def training_step(self, batch: tuple[Tensor, Tensor], _batch: int) -> Tensor:
        """The loss of one batch."""
        points, same = batch
        return functional.binary_cross_entropy_with_logits(self.head(self.body(points)), same)

    def validation_step(self, batch: tuple[Tensor, Tensor], _batch: int) -> None:
        """The share of right answers."""
        points, same = batch
        self.log("accuracy", ((self.head(self.body(points)) > 0) == same.bool()).float().mean())

    def configure_optimizers(self) -> Any:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    points = torch.randn(256, 2)
    same = (points[:, :1] * points[:, 1:] > 0).float()
    batches = DataLoader(TensorDataset(points, same), batch_size=16, shuffle=True)
    module = Signs()
    watch(module, log_freq=3, backend="record")  # <--
    trainer = lightning.Trainer(max_epochs=3, accumulate_grad_batches=3, accelerator="cpu", logger=False)
    trainer.fit(module, batches, batches)
    return module, trainer.global_step


if __name__ == "__main__":
    main()
