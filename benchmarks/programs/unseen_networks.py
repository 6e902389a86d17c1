"""Networks of the unseen programs: kinds that the other programs lack, or have in other forms."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.program import images


class RowReader(nn.Module):
    """Reads an image row by row with a bidirectional GRU, and pools over the rows."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 32, batch_first=True, bidirectional=True)
        self.drop, self.classify = nn.Dropout(0.2), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.gru(x)
        return self.classify(self.drop(states.max(1).values))


class MessagePassing(nn.Module):
    """Rounds in which nodes send messages to their neighbours; one message and one update network for all rounds."""

    def __init__(self, rounds: int, *, mean: bool) -> None:
        super().__init__()
        self.rounds, self.mean = rounds, mean
        self.enter, self.message, self.update = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(64, 32)
        self.leave = nn.Linear(32, 10)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        here = F.relu(self.enter(x))
        for _ in range(self.rounds):
            got = adjacency @ self.message(here)
            if self.mean:
                got = got / adjacency.sum(1, keepdim=True)
            here = F.relu(self.update(torch.cat([here, got], 1)))
        return self.leave(here)


class VAE(nn.Module):
    """A variational autoencoder; returns the reconstruction, the mean and the logarithm of the variance."""

    def __init__(self, *, detach: bool = False) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.Tanh())
        self.mu, self.logvar = nn.Linear(64, 6), nn.Linear(64, 6)
        self.decoder = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64))
        self.detach = detach

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.encoder(x)
        hidden = hidden.detach() if self.detach else hidden
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        return self.decoder(mu + torch.randn_like(mu) * (logvar / 2).exp()), mu, logvar


class Segmenter(nn.Module):
    """A U-Net that says of each pixel which of three brightnesses it has."""

    def __init__(self, softmax: int | None = None) -> None:
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.enc2 = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU())
        self.dec = nn.Sequential(nn.ConvTranspose2d(16, 8, 2, 2), nn.ReLU())
        self.out = nn.Conv2d(16, 3, 1)
        self.softmax = softmax

    def forward(self, x: Tensor) -> Tensor:
        one = self.enc1(x)
        out = self.out(torch.cat([one, self.dec(self.enc2(one))], 1))
        return out if self.softmax is None else out.softmax(self.softmax)


def segments() -> tuple[Tensor, Tensor]:
    """Noisy images, and of each pixel whether it is dark, grey or bright."""
    x, _ = images()
    classes = (x[:, 0] > -0.5).long() + (x[:, 0] > 0.7).long()
    return x + 0.3 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0)), classes


class Mixer(nn.Module):
    """Patches and channels mixed in turn by perceptrons."""

    def __init__(self, depth: int = 3, width: int = 24) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.tokens = nn.ModuleList(
            nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16)) for _ in range(depth)
        )
        self.channels = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width)) for _ in range(depth)
        )
        self.head = nn.Linear(width, 10)
        self.used = depth

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        for number in range(self.used):
            x = x + self.tokens[number](self.norms[2 * number](x).transpose(1, 2)).transpose(1, 2)
            x = x + self.channels[number](self.norms[2 * number + 1](x))
        return self.head(x.mean(1))


class ViT(nn.Module):
    """A vision transformer of its own attention, with dropout."""

    def __init__(self, dropped: float = 0.1, position: float = 0.02) -> None:
        super().__init__()
        self.embed, self.position = nn.Linear(4, 32), nn.Parameter(torch.randn(16, 32) * position)
        self.norm1, self.qkv, self.proj = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.norm2, self.drop = nn.LayerNorm(32), nn.Dropout(dropped)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.unfold(x, 2, stride=2).transpose(1, 2)
        x = self.embed(x) + self.position
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.drop(self.proj((q @ k.transpose(1, 2) / math.sqrt(32)).softmax(-1) @ v))
        x = x + self.drop(self.mlp(self.norm2(x)))
        return self.head(self.norm(x).mean(1))


class SwitchLayer(nn.Module):
    """Each sample goes to the one expert that its gate prefers."""

    def __init__(self, experts: int = 6) -> None:
        super().__init__()
        self.enter, self.gate = nn.Linear(64, 32), nn.Linear(32, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(experts))
        self.leave, self.balance = nn.Linear(32, 10), torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.enter(x))
        shares = self.gate(x).softmax(-1)
        best, chosen = shares.max(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            at = (chosen == number).nonzero()[:, 0]
            if len(at):
                out = out.index_add(0, at, expert(x[at]) * best[at, None])
        used = F.one_hot(chosen, len(self.experts)).float().mean(0)
        self.balance = len(self.experts) * (used * shares.mean(0)).sum()
        return self.leave(out)


class Coupling(nn.Module):
    """Scales and shifts one half of the features by what the other half says."""

    def __init__(self, width: int, *, bounded: bool) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width // 2, 48), nn.ReLU(), nn.Linear(48, width // 2 * 2))
        self.bounded = bounded

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one, other = x.chunk(2, 1)
        scale, shift = self.net(one).chunk(2, 1)
        scale = scale.tanh() if self.bounded else 4 * scale
        return torch.cat([other * scale.exp() + shift, one], 1), scale.sum(1)


class Flow(nn.Module):
    """A normalising flow of couplings; returns the negative logarithm of the likelihood of each sample."""

    def __init__(self, width: int, *, bounded: bool = True) -> None:
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(width, bounded=bounded) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(len(x))
        for coupling in self.couplings:
            x, volume = coupling(x)
            total = total + volume
        return 0.5 * x.square().sum(1) - total


class ActorCritic(nn.Module):
    """A policy and a value on a common trunk."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(state)
        return self.actor(hidden), self.critic(hidden)[:, 0]


class Tagger(nn.Module):
    """Tokens through torch's encoder layers, with a mask of what is padding."""

    def __init__(self, *, inverted: bool = False) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(64, 32, padding_idx=0), nn.Embedding(32, 32)
        layer = nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True)
        self.layers, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 64)
        self.inverted = inverted

    def forward(self, tokens: Tensor) -> Tensor:
        padding = (tokens == 0) != self.inverted
        x = self.embed(tokens) + self.place.weight[: tokens.shape[1]]
        return self.head(self.layers(x, src_key_padding_mask=padding))


class Temporal(nn.Module):
    """Causal convolutions that are ever more dilated, added to what they get."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 24)
        self.convs = nn.ModuleList(nn.Conv1d(24, 24, 3, dilation=2**number) for number in range(3))
        self.head = nn.Conv1d(24, 64, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens).transpose(1, 2)
        for conv in self.convs:
            x = x + F.relu(conv(F.pad(x, (2 * conv.dilation[0], 0))))
        return self.head(x).transpose(1, 2)
