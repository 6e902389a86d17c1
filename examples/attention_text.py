"""A small transformer that learns to continue Python's own documentation, letter by letter, and keeps its attention.

    python examples/attention_text.py
    torchgraph serve runs --view examples/attention_view.py:attention

The view colours the text by what each letter attends to.
"""

from __future__ import annotations

import inspect
import random
import statistics
import string
import textwrap

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import Keep, attach, watch

STEPS = 2000
CONTEXT = 64
HEADS = 4
WIDTH = 64


def text() -> str:
    """The documentation of some modules of the standard library, which is ASCII."""
    modules = (textwrap, string, random, statistics, inspect)
    told = [inspect.getdoc(one) or "" for module in modules for one in (module, *vars(module).values())]
    return "\n\n".join(dict.fromkeys(told)).encode("ascii", "ignore").decode("ascii")


class Attention(nn.Module):
    """Several heads of attention to the letters before."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, letters, width]` to the same shape."""
        batch, length, _ = x.shape
        query, key, value = self.project(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = query @ key.mT / key.shape[-1] ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        attach(weights, self, "weights")
        return self.out((weights @ value).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and two linear layers, each beside a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, letters, width]` to the same shape."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Letters(nn.Module):
    """Scores of the letter that follows each letter of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(128, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 128)

    def forward(self, codes: Tensor) -> Tensor:
        """Codes of letters, `[batch, letters]`, to scores `[batch, letters, 128]`."""
        attach(codes, self, "codes")
        x = self.letters(codes) + self.positions(torch.arange(codes.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def main(steps: int = STEPS, logdir: str = "runs") -> None:
    """Train it."""
    torch.manual_seed(0)
    codes = torch.tensor(list(text().encode("ascii")))
    model = Letters()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    keep = Keep("codes", "blocks.*.weights", samples=4, log_freq=200)
    with watch(model, log_freq=20, backend="record", logdir=logdir, run="attention", keep=keep) as watcher:
        for step in range(steps):
            starts = torch.randint(len(codes) - CONTEXT - 1, (16,))
            rows = torch.stack([codes[start : start + CONTEXT + 1] for start in starts.tolist()])
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            watcher.log({"loss": loss})
            if step % 100 == 0:
                print(f"step {step}: loss {loss.item():.2f}")


if __name__ == "__main__":
    main()
