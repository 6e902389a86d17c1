"""Lightning with its `WandbLogger`. The two lines marked with an arrow add this package.

Run it with `python examples/wandb_lightning.py`; it needs `pip install lightning wandb`.
"""

from __future__ import annotations

import sys
from typing import Any

import lightning
import torch
from lightning.pytorch.loggers import WandbLogger
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from torchgraph_explorer import watch  # <--


class Signs(lightning.LightningModule):
    """Learns whether two numbers have the same sign."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch: tuple[Tensor, Tensor], _batch: int) -> Tensor:
        """The loss of one batch."""
        points, same = batch
        loss = functional.binary_cross_entropy_with_logits(self.net(points), same)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def main(epochs: int) -> None:
    """Train."""
    points = torch.randn(1024, 2)
    same = (points[:, :1] * points[:, 1:] > 0).float()
    logger = WandbLogger(project="torchgraph-examples", save_dir="runs")
    module = Signs()
    # Watch the module that training_step calls, in the logger's W&B run.
    watch(module.net, run=logger.experiment, backend="wandb", log_freq=10)  # <--
    trainer = lightning.Trainer(max_epochs=epochs, logger=logger, log_every_n_steps=1, accelerator="cpu")
    trainer.fit(module, DataLoader(TensorDataset(points, same), batch_size=64, shuffle=True))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
