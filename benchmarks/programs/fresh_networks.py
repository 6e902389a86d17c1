"""Networks and data of the fresh programs, in several people's styles."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.further import source
from benchmarks.programs.program import normalised


class CausalSelfAttention(nn.Module):
    """Attention of a small GPT, after the usual educational code."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = (
            one.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for one in self.c_attn(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class GPTBlock(nn.Module):
    """Attention and a perceptron, each normalised before and added."""

    def __init__(self, width: int, heads: int, dropped: float = 0.0) -> None:
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), CausalSelfAttention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropped)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """A language model over characters whose head is its embedding."""

    def __init__(self, width: int = 32, layers: int = 2, *, tied: bool = True, dropped: float = 0.0) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(64, width), nn.Embedding(32, width)
        self.h = nn.ModuleList(GPTBlock(width, 2, dropped) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, 64, bias=False)
        for one in self.parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=0.02)
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, idx: Tensor) -> Tensor:
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def next_character(logits: Tensor, targets: Tensor) -> Tensor:
    """The loss of a language model."""
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), targets.reshape(-1))


class PatchViT(nn.Module):
    """A vision transformer of torch's layers, with a class token."""

    def __init__(self, width: int = 32, depth: int = 2, dropped: float = 0.1) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, 2)
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.randn(1, 17, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropped, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.encoder(x)[:, 0])


class BasicBlock(nn.Module):
    """A block of a residual network."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(out)) + x)


class TinyResNet(nn.Module):
    """A stem, blocks, and a head on pooled channels."""

    def __init__(self, channels: int = 12, blocks: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
        self.blocks = nn.Sequential(*[BasicBlock(channels) for _ in range(blocks)])
        self.pool, self.fc = nn.AdaptiveAvgPool2d(2), nn.Linear(4 * channels, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.pool(self.blocks(self.stem(x))).flatten(1))


class UNet(nn.Module):
    """Down and up again, with a way across."""

    def __init__(self, last: nn.Module | None = None, extra: int = 0) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1 + extra, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
        self.mid, self.up = nn.Conv2d(16, 16, 3, padding=1), nn.ConvTranspose2d(16, 8, 2, 2)
        self.out, self.last = nn.Conv2d(16, 1, 3, padding=1), last or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        one = F.silu(self.down1(x))
        up = self.up(F.silu(self.mid(F.silu(self.down2(one)))))
        return self.last(self.out(torch.cat([one, up], 1)))


class CharRNN(nn.Module):
    """A recurrent language model of one of torch's layers."""

    def __init__(self, cell: type[nn.RNNBase] = nn.GRU, width: int = 48, **options: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(64, 24)
        self.rnn = cell(24, width, batch_first=True, **options)  # type: ignore[arg-type,call-arg]
        self.decoder = nn.Linear(width, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.rnn(self.embedding(x))[0])


class Expert(nn.Module):
    """A perceptron."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w1, self.w2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)))


class SparseMoE(nn.Module):
    """Sends each token to its best experts; `balance` is large if they are few."""

    def __init__(self, width: int, experts: int = 4, top: int = 1) -> None:
        super().__init__()
        self.gate, self.top = nn.Linear(width, experts), top
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))
        self.balance = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        shares = self.gate(flat).softmax(-1)
        weights, chosen = shares.topk(self.top, -1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            if len(token):
                out = out.index_add(0, token, expert(flat[token]) * weights[token, slot, None])
        used = F.one_hot(chosen[:, 0], len(self.experts)).float().mean(0)
        self.balance = len(self.experts) * (used * shares.mean(0)).sum()
        return out.view_as(x)


class MoETransformer(nn.Module):
    """A language model with a mixture of experts in place of the perceptron."""

    def __init__(self, top: int = 1) -> None:
        super().__init__()
        self.tok, self.attn = nn.Embedding(64, 32), CausalSelfAttention(32, 2)
        self.norm1, self.norm2, self.moe = nn.LayerNorm(32), nn.LayerNorm(32), SparseMoE(32, top=top)
        self.head = nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tok(x)
        x = x + self.attn(self.norm1(x))
        return self.head(x + self.moe(self.norm2(x)))


@lru_cache
def neighbours() -> tuple[Tensor, Tensor, Tensor]:
    """A graph of 300 digits, each with its five nearest: features, adjacency, and classes."""
    samples, targets = normalised()
    samples, targets = samples[:300], targets[:300]
    near = torch.cdist(samples, samples).topk(6, largest=False).indices
    adjacency = torch.zeros(300, 300).scatter_(1, near, 1.0)
    return samples, ((adjacency + adjacency.T) > 0).float(), targets


class GCN(nn.Module):
    """Graph convolutions by hand."""

    def __init__(self, layers: int = 2, width: int = 32) -> None:
        super().__init__()
        sizes = [64, *[width] * (layers - 1), 10]
        self.convs = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        for number, conv in enumerate(self.convs):
            x = adjacency @ conv(x)
            if number < len(self.convs) - 1:
                x = F.relu(x)
        return x


def symmetric(adjacency: Tensor) -> Tensor:
    """The adjacency over the roots of the degrees."""
    root = adjacency.sum(1).rsqrt()
    return root[:, None] * adjacency * root


def pole(state: Tensor, force: Tensor) -> Tensor:
    """One step of a cart with a pole: position, speed, angle, its speed. `[N, 4]`, force ±1."""
    x, v, a, w = state.unbind(1)
    push = 10 * force
    turn = (9.8 * a.sin() - a.cos() * (push + 0.05 * w**2 * a.sin()) / 1.1) / (0.5 * (4 / 3 - 0.1 * a.cos() ** 2 / 1.1))
    pull = (push + 0.05 * (w**2 * a.sin() - turn * a.cos())) / 1.1
    return torch.stack([x + 0.02 * v, v + 0.02 * pull, a + 0.02 * w, w + 0.02 * turn], 1)


def sinusoids(time: Tensor, width: int) -> Tensor:
    """Times as sines and cosines, `[N, width]`."""
    rates = torch.exp(-math.log(1000) * torch.arange(width // 2) / (width // 2))
    return torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], 1)


class TextSet(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Pieces of text for Hugging Face's `Trainer`."""

    def __len__(self) -> int:
        return len(source()[0])

    def __getitem__(self, at: int) -> dict[str, Tensor]:
        tokens = source()[0][at]
        return {"input_ids": tokens, "labels": tokens}
