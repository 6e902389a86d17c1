"""Awkward models: each does something that breaks tools which hook modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from torchgraph_explorer import attach


class Block(nn.Module):
    """Residual, with one activation used twice in place and an in-place addition."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.activation(self.first(x))
        y = self.second(y)
        y += x
        return self.activation(y)


class TwoInputs(nn.Module):
    """Two inputs, one by keyword, in-place operations, a reused module, an attached tensor and a dict output."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(6, 8)
        self.side = nn.Linear(3, 8)
        self.blocks = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor, *, side: Tensor) -> dict[str, Any]:
        x = self.stem(x).tanh_()
        x = attach(x + self.side(side), self, "merged")
        x = self.blocks(x)
        return {"logits": self.head(x), "states": [x]}


class Digits(nn.Module):
    """A small residual CNN with batch norm, dropout and a reused in-place activation."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.body = nn.Conv2d(4, 4, 3, padding=1)
        self.activation = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.norm(self.stem(x)))
        x = self.activation(x + self.body(x))
        return self.head(self.drop(x.mean((2, 3))))


class Chunked(nn.Module):
    """Splits a tensor, changes one part in place, and writes into a slice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 6)
        self.outer = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x).clone()
        y[:, :2] = x[:, :2] * 2
        a, b, c = y.clone().chunk(3, dim=1)
        return self.outer(torch.cat([a * 2, b.relu(), c], dim=1))


class Shared(nn.Module):
    """Tied weights, and a submodule that is called three times."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for _ in range(3):
            x = x + self.mix(x).tanh()
        return self.head(x)


class CompiledEntries(nn.Module):
    """No gradient for some of it: a frozen part, a part under no_grad, detached and integer tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(5, 5).requires_grad_(False)
        self.quiet = nn.Linear(5, 5)
        self.loud = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            weight = self.quiet(x).softmax(-1)
        best = weight.argmax(-1)
        x = self.frozen(x) * weight
        return self.loud(x) + functional.one_hot(best, 5).sum(-1, keepdim=True)


@dataclass
class Output:
    """What a model in the manner of Hugging Face returns."""

    logits: Tensor
    hidden: tuple[Tensor, ...] | None = None
    cache: object = None


class Attention(nn.Module):
    """A transformer layer, recurrent cells and a dataclass output; its mask is a keyword and may be None."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Output:
        x = self.layer(x, src_key_padding_mask=mask)
        x, (hidden, cell) = self.lstm(x)
        return Output(self.head(x), hidden=(hidden, cell))


class Checkpointed(nn.Module):
    """Blocks whose forward pass is run again during the backward pass."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.stem = nn.Linear(6, 8)
        self.blocks = nn.ModuleList([Block(8), Block(8)])
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return x


class Square(torch.autograd.Function):
    """A function with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Custom(nn.Module):
    """A custom autograd function, an identity, and an output that is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = nn.Identity()
        self.inner = nn.Linear(4, 4)
        self.off = nn.Dropout(0.0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.identity(self.inner(x))
        return Square.apply(y) + self.off(y), x  # type: ignore[no-untyped-call]


class Branching(nn.Module):
    """Takes another way on every other call, so the module graph changes."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.left(x) if self.calls % 2 else self.right(self.right(x))


class Keeper(nn.Module):
    """One part leaves a tensor in an attribute, where another finds it."""

    class Reader(nn.Module):
        def __init__(self, owner: list[nn.Module]) -> None:
            super().__init__()
            self.owner = owner

        def forward(self, x: Tensor) -> Tensor:
            kept = self.owner[0].kept
            assert isinstance(kept, Tensor)
            return x * kept

    def __init__(self) -> None:
        super().__init__()
        self.writer = nn.Linear(4, 4)
        self.reader = Keeper.Reader([self])
        self.kept: Tensor = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        self.kept = self.writer(x).sigmoid()
        return self.reader(x)


Case = tuple[Callable[[], nn.Module], Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]

CASES: dict[str, Case] = {
    "two inputs, in-place, reused": (TwoInputs, lambda: ((torch.randn(5, 6),), {"side": torch.randn(5, 3)})),
    "residual CNN": (Digits, lambda: ((torch.randn(6, 1, 8, 8),), {})),
    "chunks and slices": (Chunked, lambda: ((torch.randn(4, 6),), {})),
    "shared weights": (Shared, lambda: ((torch.randint(0, 11, (3, 7)),), {})),
    "frozen and no_grad": (CompiledEntries, lambda: ((torch.randn(4, 5),), {})),
    "attention and LSTM": (Attention, lambda: ((torch.randn(2, 5, 8),), {"mask": None})),
    "checkpoint": (lambda: Checkpointed(reentrant=False), lambda: ((torch.randn(4, 6),), {})),
    "reentrant checkpoint": (lambda: Checkpointed(reentrant=True), lambda: ((torch.randn(4, 6),), {})),
    "custom function": (Custom, lambda: ((torch.randn(3, 4),), {})),
    "changing branches": (Branching, lambda: ((torch.randn(3, 4),), {})),
    "tensor kept in an attribute": (Keeper, lambda: ((torch.randn(3, 4),), {})),
}
"""Name to a way to build the model, and to make its arguments."""


def loss_of(output: object) -> Tensor:
    """A loss from whatever a model returned: the mean square of every floating tensor in it that has a gradient."""
    from torchgraph_explorer.capture.tensor_tree import tensors

    return sum((t.square().mean() for _, t in tensors(output, "") if t.requires_grad), torch.zeros(()))
