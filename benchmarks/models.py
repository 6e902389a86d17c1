"""The models that are watched, each with a batch to train on.

Nothing here imports the package before a model needs it: the memory of a training without it is measured, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Subject:
    """A model in training.

    Attributes:
        name: As the tables have it.
        model: To be called with `batch`.
        batch: Inputs.
        loss: Of the output.
        passes: Forward passes in an update.
        backwards: Backward passes in an update: as many, or one through all forward passes.
    """

    name: str
    model: nn.Module
    batch: Tensor
    loss: Callable[[Tensor], Tensor]
    passes: int = 1
    backwards: int = 1

    def backward(self, model: nn.Module) -> Tensor:
        """The forward and backward passes of an update; returns the loss of the last one."""
        if self.backwards == self.passes:
            for _ in range(self.passes):
                loss = self.loss(model(self.batch))
                loss.backward()
        else:
            loss = torch.stack([self.loss(model(self.batch)) for _ in range(self.passes)]).mean()
            loss.backward()
        return loss.detach()

    def train(self, steps: int) -> None:
        """Some steps of Adam."""
        optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            self.backward(self.model)
            optimizer.step()


def deep(width: int = 512, layers: int = 20, batch: int = 128) -> Subject:
    """Linear layers and ReLUs."""
    model = nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)))
    return Subject(f"MLP {layers}×{width}", model, torch.randn(batch, width), mean_square)


def digits(batch: int = 128) -> Subject:
    """The demo's residual network on its handwritten digits."""
    from torchgraph_explorer.demo import DigitsNet, load_digits

    data = load_digits()
    images, labels = data.images[:batch], data.labels[:batch]
    return Subject("digits CNN", DigitsNet(), images, lambda output: functional.cross_entropy(output, labels))


def transformer(layers: int = 6, width: int = 256, batch: int = 16) -> Subject:
    """Encoder layers over sequences of 64."""
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.1, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return Subject(f"transformer, {layers} × d {width}", model, torch.randn(batch, 64, width), mean_square)


class Residual(nn.Module):
    """Two convolutions and a way around them, with in-place operations as in torchvision's."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.around = nn.Sequential()
        if stride != 1 or channels_in != channels:
            around = nn.Conv2d(channels_in, channels, 1, stride, bias=False)
            self.around = nn.Sequential(around, nn.BatchNorm2d(channels))

    def forward(self, images: Tensor) -> Tensor:
        """The images after both convolutions, added to what they were."""
        inner = self.norm2(self.second(self.relu(self.norm1(self.first(images)))))
        inner += self.around(images)
        result: Tensor = self.relu(inner)
        return result


def resnet18(batch: int = 32) -> Subject:
    """18 layers for images of 32×32."""
    blocks: list[nn.Module] = []
    channels_in = 64
    for stage, channels in enumerate((64, 128, 256, 512)):
        blocks += [Residual(channels_in, channels, 2 if stage else 1), Residual(channels, channels, 1)]
        channels_in = channels
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return Subject("ResNet-18, 32×32", nn.Sequential(*stem, *blocks, *head), torch.randn(batch, 3, 32, 32), mean_square)


def small_modules(groups: int = 20, pairs: int = 10, width: int = 32) -> Subject:
    """400 modules that compute almost nothing: the cost of a call."""
    stages = [[part for _ in range(pairs) for part in (nn.Linear(width, width), nn.Tanh())] for _ in range(groups)]
    model = nn.Sequential(*(nn.Sequential(*stage) for stage in stages))
    return Subject("400 small modules", model, torch.randn(width, width), mean_square)


def narrow(width: int = 8, blocks: int = 16, batch: int = 32) -> Subject:
    """As `deep`, but with so little to compute that the calls take most of the time."""
    return deep(width, blocks, batch)


def reinforce(moves: int = 120) -> Subject:
    """A policy for the pole on the cart, which is called for each move of an episode and updated after it."""
    layers = [nn.Linear(4, 128), nn.Dropout(0.6), nn.ReLU(), nn.Linear(128, 2), nn.Softmax(dim=-1)]
    name = f"REINFORCE, {moves} moves an episode"
    return Subject(name, nn.Sequential(*layers), torch.randn(1, 4), chosen_move, passes=moves, backwards=1)


def accumulated(width: int = 128, layers: int = 8, micro_batches: int = 8) -> Subject:
    """As `deep`, with gradients accumulated."""
    model = deep(width, layers).model
    name = f"MLP {layers}×{width}, {micro_batches} micro-batches"
    return Subject(name, model, torch.randn(64, width), mean_square, passes=micro_batches, backwards=micro_batches)


def chosen_move(probabilities: Tensor) -> Tensor:
    """The negative log-probability of a move that is drawn."""
    move = torch.multinomial(probabilities.detach(), 1)
    return -probabilities.gather(1, move).log().sum()


def mean_square(output: Tensor) -> Tensor:
    """A loss that needs no target."""
    return output.square().mean()


SUBJECTS: dict[str, Callable[[], Subject]] = {
    make.__name__: make for make in (deep, resnet18, transformer, narrow, small_modules, digits, reinforce, accumulated)
}
