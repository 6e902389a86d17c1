"""Trainings in which NaN or infinity comes up, each in a way of its own, and one in which it does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from torchgraph_explorer import watch

STEPS = 10


class Spoilt(nn.Module):
    """Puts `value` into the first place of what passes, at the passes from `first` up to `stop`."""

    def __init__(self, value: float, first: int, stop: int = STEPS) -> None:
        super().__init__()
        self.value, self.bad, self.passes = value, range(first, stop), 0

    def forward(self, x: Tensor) -> Tensor:
        is_bad, self.passes = self.passes in self.bad, self.passes + 1
        return torch.where(torch.arange(x.numel()).reshape(x.shape) == 0, self.value, x) if is_bad else x * 1


class SpoiltBackward(torch.autograd.Function):
    """Passes a tensor on, and NaN back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * torch.nan


class Block(nn.Module):
    """What is not finite inside does not come out, and its gradient does not go on."""

    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(torch.isfinite(y := self.act(self.fc(x))), y, torch.zeros(())) + x


class Net(nn.Module):
    """Two blocks, in a list that is inside another module, and a head."""

    def __init__(self, *acts: nn.Module, backward_at: int | None = None) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 6)
        self.body = nn.Sequential(*(Block(act) for act in acts or (nn.ReLU(), nn.ReLU())))
        self.head = nn.Linear(6, 3)
        self.passes, self.backward_at = 0, backward_at

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(self.stem(x))
        y = SpoiltBackward.apply(y) if self.passes == self.backward_at else y  # type: ignore[no-untyped-call]
        self.passes += 1
        return self.head(y)


class Table(nn.Module):
    """A table of which a row is never looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.words((x[:, 0] > 0).long()))


class Causal(nn.Module):
    """Attention that is masked with −∞, as usual."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.softmax = nn.Softmax(-1)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(len(x))
        scores = (x @ x.T).masked_fill(mask < 0, -torch.inf)
        return self.head(self.layer(x[None], src_mask=mask)[0] + self.softmax(scores) @ x)


class Nothing(nn.Module):
    """Part of what it passes on is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.some, self.none, self.head = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([self.some(x), self.none(x[:0])]))


def fill_with_nan(model: nn.Module, step: int) -> None:
    """All parameters are NaN from step 6 on."""
    if step == 6:
        for parameter in model.parameters():
            parameter.data.fill_(torch.nan)


def spoil_a_word(model: nn.Module, step: int) -> None:
    """An element that is never used is NaN from step 2 on."""
    if step == 2:
        model.get_parameter("words.weight").data[4, 1] = torch.nan


def nothing(_model: nn.Module, _step: int) -> None:
    """Disturbs nothing."""


Disturb = Callable[[nn.Module, int], None]

TROUBLED: dict[str, tuple[Callable[[], nn.Module], Disturb]] = {
    "all": (Net, fill_with_nan),
    "deep": (lambda: Net(nn.ReLU(), Spoilt(torch.nan, 3, 5)), nothing),
    "gradient": (lambda: Net(backward_at=4), nothing),
    "parameter": (Table, spoil_a_word),
    "infinite": (lambda: Net(Spoilt(torch.inf, 7)), nothing),
    "clean": (Net, nothing),
    "causal": (Causal, nothing),
    "empty": (Nothing, nothing),
}
"""By the name of the run: the model, and what is done to it before each step."""


def record_troubled(logdir: Path, run: str, steps: int = STEPS) -> None:
    """Record every step of one of `TROUBLED`. A step whose gradients are not finite changes nothing."""
    torch.manual_seed(0)
    make, disturb = TROUBLED[run]
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, log_freq=1, backend="record", logdir=logdir, run=run, verbose=False):
        for step in range(steps):
            disturb(model, step)
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().mean().backward()
            if not all(one.grad is None or one.grad.isfinite().all() for one in model.parameters()):
                optimizer.zero_grad()
            optimizer.step()
