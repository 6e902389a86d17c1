"""Programs that were only measured until rules were mended for what was missed in them: now of the first half."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.program import (
    Losses,
    Program,
    Setup,
    adam,
    images,
    initialised,
    mlp,
    normalised,
    regression,
    supervised,
)


@lru_cache
def wine() -> tuple[Tensor, Tensor]:
    """Chemical analyses of wines, each feature in its own unit: `[178, 13]`."""
    from sklearn.datasets import load_wine  # takes seconds, and those who only list the programs need none

    samples, targets = load_wine(return_X_y=True)
    return torch.tensor(samples, dtype=torch.float32), torch.tensor(targets, dtype=torch.long)


@lru_cache
def cancer() -> tuple[Tensor, Tensor]:
    """Measurements of cell nuclei, each feature in its own unit: `[569, 30]`."""
    from sklearn.datasets import load_breast_cancer

    samples, targets = load_breast_cancer(return_X_y=True)
    return torch.tensor(samples, dtype=torch.float32), torch.tensor(targets, dtype=torch.long)


def standardised(data: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Each feature with mean 0 and standard deviation 1."""
    samples, targets = data
    return (samples - samples.mean(0)) / samples.std(0), targets


def rows() -> tuple[Tensor, Tensor]:
    """The digits as sequences of their rows: `[1797, 8, 8]`."""
    samples, targets = normalised()
    return samples.reshape(-1, 8, 8), targets


class Similarity(nn.Module):
    """The distance of two halves, which are equal for some samples."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.embed, self.epsilon = nn.Linear(32, 16), epsilon

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.embed(x[:, :32]), self.embed(x[:, 32:])
        return torch.sqrt(((left - right) ** 2).sum(1, keepdim=True) + self.epsilon)


def root_of_zero(broken: bool) -> Setup:
    samples, targets = normalised()
    samples = samples.clone()
    samples[::3, 32:] = samples[::3, :32]
    model = Similarity(0.0 if broken else 1e-6)
    return supervised(model, adam(model), (samples, (targets > 4).float()[:, None]), F.mse_loss)


class Recurrence(nn.Module):
    """A recurrent network of a linear map, applied again and again."""

    def __init__(self, gain: float, length: int) -> None:
        super().__init__()
        self.enter, self.again, self.leave = nn.Linear(8, 32), nn.Linear(32, 32, bias=False), nn.Linear(32, 10)
        nn.init.orthogonal_(self.again.weight, gain=gain)
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), 32)
        for at in range(self.length):
            hidden = self.again(hidden) + self.enter(x[:, at % 8])
        return self.leave(hidden)


def recurrence_that_grows(broken: bool) -> Setup:
    model = Recurrence(1.6 if broken else 0.9, 24)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-3), rows())


class Small(nn.Module):
    """A small convolutional network."""

    def __init__(self, activation: type[nn.Module] = nn.ReLU, dropped: float = 0.0) -> None:
        super().__init__()
        self.conv1, self.act1 = nn.Conv2d(1, 8, 3, padding=1), activation()
        self.conv2, self.act2 = nn.Conv2d(8, 16, 3, padding=1), activation()
        self.drop, self.fc = nn.Dropout2d(dropped), nn.Linear(16 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.act2(self.conv2(self.act1(self.conv1(x)))), 2)
        return self.fc(self.drop(x).flatten(1))


def convolutions_killed(broken: bool) -> Setup:
    model = Small()
    return supervised(model, adam(model, 1.0 if broken else 2e-3), images())


def constant_convolutions(broken: bool) -> Setup:
    model = Small()
    if broken:
        for conv in (model.conv1, model.conv2):
            nn.init.constant_(conv.weight, 0.1)
    return supervised(model, adam(model), images())


def dropped_channels(broken: bool) -> Setup:
    model = Small(dropped=0.9 if broken else 0.1)
    return supervised(model, adam(model), images())


def deep_and_tiny(broken: bool) -> Setup:
    model = mlp(64, *[32] * 7, 10, activation=nn.Tanh)
    initialised(model, lambda one: nn.init.normal_(one, std=0.01 if broken else 1 / math.sqrt(one.shape[1])))
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.05), normalised())


class Block(nn.Module):
    """A block of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.attend = nn.LayerNorm(width), nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norm1(x)
        x = x + self.attend(normal, normal, normal, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Two blocks over the rows of an image."""

    def __init__(self, *, spare: bool = False) -> None:
        super().__init__()
        self.embed, self.place = nn.Linear(8, 32), nn.Parameter(torch.zeros(1, 8, 32))
        self.blocks = nn.ModuleList([Block(32), Block(32)])
        self.spare = Block(32) if spare else None
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def spare_block(broken: bool) -> Setup:
    model = Transformer(spare=broken)
    return supervised(model, adam(model), rows())


def large_transformer(broken: bool) -> Setup:
    model = Transformer()
    if broken:
        initialised(model, lambda one: nn.init.normal_(one, std=5.0))
    return supervised(model, adam(model), rows())


class RoundTrip(nn.Module):
    """Features that go through numpy and back."""

    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.features, self.head, self.broken = nn.Conv2d(1, 8, 3), nn.Linear(8 * 36, 10), broken

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.features(x)).flatten(1)
        return self.head(torch.from_numpy(x.detach().numpy().copy()) if self.broken else x)


def through_numpy(broken: bool) -> Setup:
    model = RoundTrip(broken)
    return supervised(model, adam(model), images())


def raw_wine(broken: bool) -> Setup:
    model = mlp(13, 32, 3)
    return supervised(model, adam(model, 1e-2), wine() if broken else standardised(wine()))


def raw_cancer_into_sigmoid(broken: bool) -> Setup:
    model = mlp(30, 32, 16, 2, activation=nn.Sigmoid)
    return supervised(model, adam(model, 1e-2), cancer() if broken else standardised(cancer()))


def optimizer_of_a_copy(broken: bool) -> Setup:
    model = Small()
    optimizer = adam(deepcopy(model) if broken else model)
    setup = supervised(model, optimizer, images())
    return Setup(setup.model, setup.step, None, setup.data)


def rectified_target(broken: bool) -> Setup:
    samples, targets = regression()
    model = mlp(16, 32, 1)
    if broken:
        model.add_module("last", nn.ReLU())
    return supervised(model, adam(model, 1e-2), (samples, targets - 3), F.mse_loss)


class Half(nn.Module):
    """A layer whose values do not fit into float16."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return (x.half() * self.factor).float() / self.factor


def scale_that_falls(broken: bool) -> Setup:
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), Half(1.0), nn.Linear(32, 10))
    optimizer, scaler = adam(model), torch.amp.GradScaler("cpu", init_scale=2.0**10)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets) * (1e12 if broken else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return Setup(model, step, optimizer, normalised(), scaler)


def missing_values(broken: bool) -> Setup:
    samples, targets = standardised(wine())
    samples = samples.clone()
    if broken:
        samples[::20, 4] = math.nan
    model = mlp(13, 32, 3)
    return supervised(model, adam(model), (samples, targets))


def linear_that_diverges(broken: bool) -> Setup:
    samples, targets = regression(64)
    model = mlp(64, 64, 64, 1, activation=nn.Identity)
    return supervised(
        model, torch.optim.SGD(model.parameters(), lr=2.0 if broken else 1e-2), (samples, targets), F.mse_loss
    )


def middle_left_out(broken: bool) -> Setup:
    model = mlp(64, 48, 48, 10)
    groups = [model.fc1, model.fc3] if broken else [model.fc1, model.fc2, model.fc3]
    optimizer = torch.optim.Adam([one for module in groups for one in module.parameters()])  # type: ignore[union-attr]
    return supervised(model, optimizer, normalised())


def adam_too_slow(broken: bool) -> Setup:
    model = Small()
    return supervised(model, adam(model, 1e-8 if broken else 1e-3), images())


def transformer(_broken: bool) -> Setup:
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 60))
    usual = supervised(model, optimizer, rows())

    def step(samples: Tensor, targets: Tensor) -> Losses:
        loss = usual.step(samples, targets)
        warm.step()
        return loss

    return Setup(model, step, optimizer, usual.data)


class Recurrent(nn.Module):
    """The last state of an LSTM or GRU, as classes."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.cell, self.head = kind(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x)[0][:, -1])


def lstm(_broken: bool) -> Setup:
    model = Recurrent(nn.LSTM)
    return supervised(model, adam(model, 1e-2), rows())


def gru_clipped(_broken: bool) -> Setup:
    model = Recurrent(nn.GRU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, rows())


def second_order(_broken: bool) -> Setup:
    model = mlp(16, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=4, line_search_fn="strong_wolfe")

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(model(samples), targets)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Setup(model, step, optimizer, regression(), batch=128)


def overfitted(_broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 256, 256, 10)
    return supervised(model, adam(model, 3e-3), (samples[:32], targets[:32]))


def autoencoder(_broken: bool) -> Setup:
    samples, _ = normalised()
    model = mlp(64, 32, 8, 32, 64)
    model.add_module("last", nn.Sigmoid())
    shown = (samples - samples.min()) / (samples.max() - samples.min())
    return supervised(model, adam(model, 1e-2), (shown, shown), F.binary_cross_entropy)


class Words(nn.Module):
    """Embedded pixels, each by its brightness, of which most are 0."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.hidden, self.head = nn.Embedding(100, 16), nn.Linear(16, 32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.hidden(self.embed(x).mean(1))))


def embedded(_broken: bool) -> Setup:
    samples, targets = normalised()
    model = Words()
    words = ((samples - samples.min()) * 3).long()
    return supervised(model, adam(model, 1e-2), (words, targets))


class Residual(nn.Module):
    """Blocks whose last normalisation begins at zero, so that each begins as the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in range(4))
        self.head = nn.Linear(16, 10)
        for norm in self.norms:
            nn.init.zeros_(norm.weight)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + norm(conv(F.relu(x)))
        return self.head(x.mean((2, 3)))


def residual(_broken: bool) -> Setup:
    model = Residual()
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), images())


class Teacher(nn.Module):
    """A student, and a teacher that is the moving average of it."""

    def __init__(self) -> None:
        super().__init__()
        self.student, self.head = mlp(64, 32, 16), nn.Linear(16, 10)
        self.teacher = deepcopy(self.student)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with torch.no_grad():
            wanted = self.teacher(x + 0.1 * torch.randn_like(x))
        seen = self.student(x)
        return self.head(F.relu(seen)), seen, wanted


def averaged_teacher(_broken: bool) -> Setup:
    model = Teacher()
    optimizer = torch.optim.Adam([*model.student.parameters(), *model.head.parameters()])

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        outputs, seen, wanted = model(samples)
        loss = F.cross_entropy(outputs, targets) + F.mse_loss(seen, wanted)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(model.teacher.parameters(), model.student.parameters(), strict=True):
                kept.lerp_(new, 0.01)
        return loss

    return Setup(model, step, optimizer, normalised())


class Variational(nn.Module):
    """A variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.mean, self.spread = nn.Linear(64, 32), nn.Linear(32, 4), nn.Linear(32, 4)
        self.leave = mlp(4, 32, 64)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = F.relu(self.enter(x))
        mean, spread = self.mean(hidden), self.spread(hidden)
        return self.leave(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


def variational(_broken: bool) -> Setup:
    model = Variational()

    def loss(outputs: tuple[Tensor, Tensor, Tensor], wanted: Tensor) -> Tensor:
        shown, mean, spread = outputs
        return F.mse_loss(shown, wanted) * 64 - 0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()

    samples, _ = normalised()
    return supervised(model, adam(model), (samples, samples), loss)


FAULTY = (
    Program("derivative of the root of zero", root_of_zero, ("nan",), ("", "embed")),
    Program("recurrence with a gain of 1.6", recurrence_that_grows, ("exploding-gradient",), (None, "again")),
    Program("Adam at learning rate 1 kills convolutions", convolutions_killed, ("update-too-large", "dead-units")),
    Program("convolutions that begin constant", constant_convolutions, ("zero-init",), ("conv1", "conv2")),
    Program("channels dropped at 0.9", dropped_channels, ("dropout-extreme",), ("drop",)),
    Program(
        "deep tanh with normal(0, 0.01) weights", deep_and_tiny, ("bad-init-scale", "vanishing-gradient"), ("fc1",)
    ),
    Program("block of a transformer that is not called", spare_block, ("unused-module",), ("spare",)),
    Program("transformer with normal(0, 5) weights", large_transformer, ("bad-init-scale",)),
    Program("features through numpy", through_numpy, ("no-gradient",), ("features",)),
    Program("wine in its units", raw_wine, ("input-not-normalised",), ("", "fc1")),
    Program(
        "cells in their units into sigmoids", raw_cancer_into_sigmoid, ("input-not-normalised", "saturated-activation")
    ),
    Program("optimizer of a copy", optimizer_of_a_copy, ("update-too-small",), (None,)),
    Program("ReLU before a negative target", rectified_target, ("dead-units", "constant-output"), ("", "last")),
    Program("loss that is too large for its scale", scale_that_falls, ("loss-scale-loop",), (None,)),
    Program("missing values", missing_values, ("nan",), ("", "fc1")),
    Program(
        "SGD that diverges", linear_that_diverges, ("exploding-gradient", "update-too-large", "loss-diverging"), (None,)
    ),
    Program("layer left out of the optimizer", middle_left_out, ("not-in-optimizer",), ("fc2",)),
    Program("Adam at learning rate 1e-8", adam_too_slow, ("update-too-small",), (None,)),
)

HEALTHY = (
    Program("transformer with warm-up", transformer),
    Program("LSTM", lstm),
    Program("GRU with clipping", gru_clipped),
    Program("LBFGS", second_order),
    Program("loss near zero", overfitted),
    Program("autoencoder with a sigmoid", autoencoder),
    Program("embeddings", embedded),
    Program("residual blocks that begin as the identity", residual),
    Program("teacher that is an average", averaged_teacher),
    Program("variational autoencoder", variational),
)
