"""A GAN in one LightningModule, optimized by hand. The line marked with an arrow adds this package.

Run it with `python -m examples.loops.lightning_by_hand`, then `torchgraph serve runs`; it needs `pip install
lightning`. The discriminator and the generator take turns, so each batch makes two updates.
"""

from __future__ import annotations

import math
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from torchgraph_explorer import watch


def judged(logits: Tensor, *, real: bool) -> Tensor:
    """How far the discriminator's `logits` are from calling everything real, or everything fake."""
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, float(real)))


class Circle(lightning.LightningModule):
    """Learns points on a circle."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    def training_step(self, batch: list[Tensor], _batch: int) -> None:
        """An update of the discriminator, then one of the generator."""
        [points] = batch
        optimizers: Any = self.optimizers()
        judges, makes = optimizers
        fake = self.generator(torch.randn(len(points), 4))
        judges.zero_grad()
        loss = judged(self.discriminator(points), real=True) + judged(self.discriminator(fake.detach()), real=False)
        self.manual_backward(loss)
        judges.step()
        makes.zero_grad()
        self.manual_backward(judged(self.discriminator(fake), real=True))
        makes.step()

    def configure_optimizers(self) -> Any:
        """One for the discriminator, and one for the generator."""
        return [torch.optim.Adam(each.parameters(), lr=1e-3) for each in (self.discriminator, self.generator)]


def main() -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    angle = torch.rand(256, 1) * 2 * math.pi
    batches = DataLoader(TensorDataset(torch.cat([angle.cos(), angle.sin()], dim=1)), batch_size=16, shuffle=True)
    module = Circle()
    watch(module, log_freq=3, backend="record")  # <--
    trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False)
    trainer.fit(module, batches)
    return module, trainer.global_step


if __name__ == "__main__":
    main()
