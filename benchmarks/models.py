"""The models that are watched, each with a batch to train on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer.demo import DigitsNet, load_digits


@dataclass(frozen=True)
class Subject:
    """A model in training.

    Attributes:
        name: As the tables have it.
        model: To be called with `batch`.
        batch: Inputs.
        loss: Of the output.
    """

    name: str
    model: nn.Module
    batch: Tensor
    loss: Callable[[Tensor], Tensor]

    def train(self, steps: int) -> None:
        """Some steps of Adam."""
        optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            self.loss(self.model(self.batch)).backward()
            optimizer.step()


def deep(width: int = 512, layers: int = 20, batch: int = 128) -> Subject:
    """Linear layers and ReLUs."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))
    return Subject(f"MLP {layers}×{width}", model, torch.randn(batch, width), mean_square)


def digits(batch: int = 128) -> Subject:
    """The demo's residual network on its handwritten digits."""
    data = load_digits()
    images, labels = data.images[:batch], data.labels[:batch]
    return Subject("digits CNN", DigitsNet(), images, lambda output: functional.cross_entropy(output, labels))


def transformer(layers: int = 6, width: int = 256, batch: int = 16) -> Subject:
    """Encoder layers over sequences of 64."""
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return Subject(f"transformer, {layers} × d {width}", model, torch.randn(batch, 64, width), mean_square)


def mean_square(output: Tensor) -> Tensor:
    """A loss that needs no target."""
    return output.square().mean()


SUBJECTS = (deep, digits, transformer)
