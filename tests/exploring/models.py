"""Models whose gradient flow is compared with an oracle, each for what makes it awkward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from torchgraph_explorer import attach
from torchgraph_explorer.exploring.products import prepare


def load_forward_mode() -> None:
    """Load it now: it warns of torch itself, which pytest's filters make an error, also in the model's thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare()


class Convolutions(nn.Module):
    """Stride, padding and groups; batch norm in training mode; in-place activations and an in-place skip."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.act = nn.ReLU(inplace=True)
        self.second = nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2)
        self.head = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.norm(self.first(x)))
        y = self.second(x)
        y += x
        return self.head(self.act(y).flatten(1))


class Attention(nn.Module):
    """A residual block with fused attention, which has no forward-mode derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.project = nn.Linear(8, 24)
        self.merge = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.project(self.norm(x)).reshape(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = attach(mixed, self, "mixed")
        return x + self.merge(mixed.transpose(1, 2).reshape(b, t, 8))


class Recurrent(nn.Module):
    """An LSTM, and a cell that is called at each position."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.cell = nn.GRUCell(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        state = y.new_zeros(len(y), 4)
        for t in range(y.shape[1]):
            state = self.cell(y[:, t], state)
        return self.head(state)


class Repeated(nn.Module):
    """A module that is called three times, and whose result is used before the next module gets it."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(5, 5)
        self.drop = nn.Dropout(0.4)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.drop(self.mix(x)).tanh() + x * 0.5
        return self.head(x)


class UsedBefore(nn.Module):
    """A module that uses its result before it returns it, and one that returns what it was given."""

    class Doubling(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            return y.square(), y

    def __init__(self) -> None:
        super().__init__()
        self.doubling, self.same, self.head = self.Doubling(), nn.Identity(), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        square, y = self.doubling(x)
        return self.head(self.same(y) + square)


class Hidden(torch.autograd.Function):
    """Has no forward-mode derivative, and a backward pass that autograd does not see."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.from_numpy(grads[0].detach().numpy() * x.detach().cos().numpy())


class Once(torch.autograd.Function):
    """Its backward pass must not be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * ctx.saved_tensors[0].cos()


def hidden(x: Tensor) -> Tensor:
    return Hidden.apply(x)  # type: ignore[no-untyped-call]


class OwnFunctions(nn.Module):
    """Two own functions beside an operation of torch's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        x = hidden(x) + x.tanh()
        return self.head(Once.apply(self.second(x)))  # type: ignore[no-untyped-call]


def mlp(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4), nn.GELU(), nn.Linear(4, 3)).to(dtype)


@dataclass(frozen=True)
class Flow:
    """Two tensors of a model, for the oracle as the results of calls of modules.

    Attributes:
        make: Makes the model.
        shape: Of its input.
        a: The module that returns the first tensor, and which call of it.
        b: The same of the second one.
        names: Of both, for a session.
        dtype: Of the input.
    """

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    a: tuple[str, int]
    b: tuple[str, int]
    names: tuple[str, str]
    dtype: torch.dtype = torch.float32


FLOWS = {
    "conv, stride, padding": Flow(Convolutions, (2, 2, 8, 8), ("first", 0), ("norm", 0), ("first", "norm")),
    "conv, groups, past a skip": Flow(Convolutions, (2, 2, 8, 8), ("act", 0), ("second", 0), ("act#0", "second")),
    "in place": Flow(Convolutions, (1, 2, 8, 8), ("norm", 0), ("act", 1), ("norm", "act#1")),
    "attention": Flow(Attention, (2, 5, 8), ("project", 0), ("merge", 0), ("project", "merge")),
    "norm and residual": Flow(Attention, (1, 5, 8), ("norm", 0), ("", 0), ("norm", "output")),
    "recurrent": Flow(Recurrent, (2, 4, 3), ("lstm", 0), ("cell", 2), ("lstm:output[0]", "cell#2")),
    "several calls, dropout": Flow(Repeated, (3, 5), ("mix", 0), ("mix", 2), ("mix#0", "mix#2")),
    "used before it is returned": Flow(
        UsedBefore, (3, 4), ("doubling", 0), ("head", 0), ("doubling:output[0]", "head")
    ),
    "own functions": Flow(OwnFunctions, (2, 4), ("first", 0), ("second", 0), ("first", "second")),
    "own functions, once": Flow(OwnFunctions, (2, 4), ("second", 0), ("head", 0), ("second", "head")),
    "float64": Flow(lambda: mlp(torch.float64), (3, 6), ("0", 0), ("4", 0), ("0", "4"), torch.float64),
    "three dimensions": Flow(
        lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.Conv3d(2, 1, 2)), (1, 1, 3, 3, 3), ("0", 0), ("1", 0), ("0", "1")
    ),
}
