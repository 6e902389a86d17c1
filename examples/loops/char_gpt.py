"""A small GPT on the text of Python's own sources, in a loop in the manner of nanoGPT.

Micro-batches, gradient clipping, a learning rate with warm-up and cosine decay, weight decay for matrices only. The
lines marked with an arrow add this package. Run it with `python -m examples.loops.char_gpt`, then
`torchgraph serve runs`. `--compile aot_eager` or `inductor` compiles the model. Each training leaves `checkpoint.pt`;
`--resume` goes on from there, and so does the count of steps.
"""

from __future__ import annotations

import argparse
import inspect
import math
import string
import textwrap
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchgraph_explorer import watch

UPDATES, WARM_UP, MICRO_BATCHES, BATCH, CONTEXT = 12, 3, 2, 4, 32
WIDTH, HEADS, BLOCKS = 32, 4, 2
FASTEST, SLOWEST = 3e-3, 3e-4
CHECKPOINT = Path("checkpoint.pt")


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Mix each position with those before it."""
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    """Attention and an MLP, each beside a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Add what both find to the stream."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Predicts the next character. Its embedding is its output matrix, too."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """The logits and the loss."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        logits = self.head(self.norm(self.blocks(x)))
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def text() -> Tensor:
    """The characters of two modules of Python's library, as numbers."""
    source = "".join(inspect.getsource(module) for module in (string, textwrap))
    return torch.tensor([min(ord(one), 127) for one in source])


def batch(characters: Tensor) -> tuple[Tensor, Tensor]:
    """Random pieces of the text, and the same one character on."""
    begins = torch.randint(len(characters) - CONTEXT - 1, (BATCH,)).tolist()
    pieces = torch.stack([characters[at : at + CONTEXT + 1] for at in begins])
    return pieces[:, :-1], pieces[:, 1:]


def rate(step: int) -> float:
    """Linear warm-up, then a cosine."""
    if step < WARM_UP:
        return FASTEST * (step + 1) / WARM_UP
    share = (step - WARM_UP) / (UPDATES - WARM_UP)
    return SLOWEST + (FASTEST - SLOWEST) * (1 + math.cos(math.pi * share)) / 2


def main(*, resume: bool = False, compiler: str = "") -> tuple[nn.Module, int]:
    """Train; returns the model and the number of updates."""
    model, characters = GPT(vocabulary=128), text()
    if compiler:
        model.compile(backend=compiler)
    watcher = watch(model, log_freq=3, backend="record")  # <--
    matrices = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=FASTEST, betas=(0.9, 0.95))
    if resume:
        saved = torch.load(CHECKPOINT)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    for step in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        for _ in range(MICRO_BATCHES):
            _, loss = model(*batch(characters))
            (loss / MICRO_BATCHES).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        watcher.log({"loss": loss, "lr": rate(step), "gradient norm": norm})  # <--
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, CHECKPOINT)
    return model, UPDATES


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--compile", default="", metavar="BACKEND", dest="compiler")
    parser.add_argument("--resume", action="store_true")
    main(**vars(parser.parse_args()))
