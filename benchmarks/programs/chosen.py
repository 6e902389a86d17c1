"""The half of the programs that the rules' thresholds were chosen on."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.program import (
    Program,
    Setup,
    adam,
    digits,
    images,
    initialised,
    mlp,
    normalised,
    regression,
    supervised,
)


class Log(nn.Module):
    """A logarithm, of what may be zero."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = offset

    def forward(self, x: Tensor) -> Tensor:
        return torch.log(x + self.offset)


def log_of_zero(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("fc1", nn.Linear(64, 32))
    model.add_module("relu", nn.ReLU())
    model.add_module("log", Log(0.0 if broken else 1.0))
    model.add_module("fc2", nn.Linear(32, 10))
    return supervised(model, adam(model), normalised())


def learning_rate_too_high(broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=50.0 if broken else 0.05), normalised())


def adam_rate_too_high(broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    return supervised(model, adam(model, 0.5 if broken else 1e-3), normalised())


def relu_killed_by_bias(broken: bool) -> Setup:
    model = mlp(64, 48, 32, 10)
    if broken:
        nn.init.constant_(model.fc2.bias, -20.0)  # type: ignore[union-attr,arg-type]
    return supervised(model, adam(model), normalised())


def deep_sigmoid(broken: bool) -> Setup:
    model = mlp(64, *[32] * 9, 10, activation=nn.Sigmoid if broken else nn.ReLU)
    if not broken:
        initialised(model, lambda one: nn.init.kaiming_normal_(one, nonlinearity="relu"))
    return supervised(model, adam(model), normalised())


def wide_normal_init(broken: bool) -> Setup:
    model = mlp(64, 128, 128, 64, 10)
    initialised(model, nn.init.normal_ if broken else nn.init.xavier_uniform_)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-3), normalised())


def all_zeros(broken: bool) -> Setup:
    model = mlp(64, 32, 32, 10)
    if broken:
        for one in model.parameters():
            nn.init.zeros_(one)
    return supervised(model, adam(model), normalised())


class Detached(nn.Module):
    """An encoder whose result is detached by mistake."""

    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.encoder, self.head, self.broken = nn.Linear(64, 32), nn.Linear(32, 10), broken

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.encoder(x))
        return self.head(hidden.detach() if self.broken else hidden)


def detached(broken: bool) -> Setup:
    model = Detached(broken)
    return supervised(model, adam(model), normalised())


class Forgotten(nn.Module):
    """A layer that `forward` does not call."""

    def __init__(self, broken: bool) -> None:
        super().__init__()
        self.one, self.two, self.three, self.broken = nn.Linear(64, 32), nn.Linear(32, 32), nn.Linear(32, 10), broken

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.one(x))
        return self.three(hidden if self.broken else F.relu(self.two(hidden)))


def forgotten_layer(broken: bool) -> Setup:
    model = Forgotten(broken)
    return supervised(model, adam(model), normalised())


def raw_pixels(broken: bool) -> Setup:
    samples, targets = digits()
    model = mlp(64, 32, 10)
    return supervised(model, adam(model), (samples / 16 * 255 if broken else samples / 16, targets))


def dropout_instead_of_keep(broken: bool) -> Setup:
    dropped = nn.Dropout(0.95 if broken else 0.05)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), dropped, nn.Linear(64, 10))
    return supervised(model, adam(model), normalised())


def rate_too_low(broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-7 if broken else 0.1), normalised())


def softmax_of_one(broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 32, 1)
    model.add_module("last", nn.Softmax(dim=1) if broken else nn.Sigmoid())
    return supervised(model, adam(model), (samples, (targets > 4).float()[:, None]), F.binary_cross_entropy)


def saturated_tanh(broken: bool) -> Setup:
    model = mlp(64, 64, 64, 10, activation=nn.Tanh)
    if broken:
        nn.init.normal_(model.fc2.weight, std=5.0)  # type: ignore[union-attr,arg-type]
    return supervised(model, adam(model), normalised())


def late_head(broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    optimizer = adam(model)
    model.fc2 = nn.Linear(32, 10)
    return supervised(model, optimizer if broken else adam(model), normalised())


def plain(_broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), normalised())


def convolutions(_broken: bool) -> Setup:
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip
    return supervised(model, adam(model), images())


def frozen_backbone(_broken: bool) -> Setup:
    model = mlp(64, 64, 64, 10)
    for one in (model.fc1, model.fc2):
        one.requires_grad_(False)
    return supervised(model, adam(model), normalised())


def head_alone_in_optimizer(_broken: bool) -> Setup:
    model = mlp(64, 64, 64, 10)
    return supervised(model, torch.optim.Adam(model.fc3.parameters()), normalised())  # type: ignore[union-attr]


class Adapted(nn.Module):
    """A frozen layer with a low-rank adapter that begins at zero."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        self.down, self.up = nn.Linear(inputs, 4, bias=False), nn.Linear(4, outputs, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def adapters(_broken: bool) -> Setup:
    model = nn.Sequential(Adapted(64, 64), nn.ReLU(), Adapted(64, 10))
    return supervised(model, adam(model), normalised())


def dropout(_broken: bool) -> Setup:
    model = nn.Sequential(
        nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10)
    )
    return supervised(model, adam(model), normalised())


class Adversaries(nn.Module):
    """A generator and a discriminator in one model."""

    def __init__(self) -> None:
        super().__init__()
        self.generator, self.discriminator = mlp(8, 32, 64), mlp(64, 32, 1)


def adversaries(_broken: bool) -> Setup:
    model = Adversaries()
    makes, judges = adam(model.generator, 2e-4), adam(model.discriminator, 2e-4)

    def step(samples: Tensor, _targets: Tensor) -> dict[str, Tensor]:
        ones, zeros = torch.ones(len(samples), 1), torch.zeros(len(samples), 1)
        fake = model.generator(torch.randn(len(samples), 8))
        judges.zero_grad()
        judged = F.binary_cross_entropy_with_logits
        told = judged(model.discriminator(samples), ones) + judged(model.discriminator(fake.detach()), zeros)
        told.backward()
        judges.step()
        makes.zero_grad()
        made = judged(model.discriminator(fake), ones)
        made.backward()
        makes.step()
        return {"loss_d": told, "loss_g": made}

    return Setup(model, step, None, normalised())


def sparse(_broken: bool) -> Setup:
    model = mlp(64, 256, 10)
    nn.init.constant_(model.fc1.bias, -1.0)  # type: ignore[union-attr,arg-type]

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs, targets) + 1e-3 * model.fc1.weight.abs().sum()  # type: ignore[union-attr,operator]

    return supervised(model, adam(model), normalised(), loss)


def accumulated(_broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> dict[str, float]:
        optimizer.zero_grad()
        whole = 0.0
        for some, wanted in zip(samples.chunk(4), targets.chunk(4), strict=True):
            loss = F.cross_entropy(model(some), wanted) / 4
            loss.backward()
            whole += loss.item()
        optimizer.step()
        return {"train/loss": whole}

    return Setup(model, step, optimizer, normalised())


def decayed_rate(_broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    optimizer = adam(model)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    return Setup(model, step, optimizer, normalised())


def small_regression(_broken: bool) -> Setup:
    model = mlp(16, 32, 1, activation=nn.Tanh)
    return supervised(model, adam(model, 1e-2), regression(), F.mse_loss)


FAULTY = (
    Program("logarithm of zero", log_of_zero, ("nan",), ("log",)),
    Program("SGD at learning rate 50", learning_rate_too_high, ("update-too-large", "exploding-gradient"), (None,)),
    Program("Adam at learning rate 0.5", adam_rate_too_high, ("update-too-large",), (None,)),
    Program("bias that kills a ReLU", relu_killed_by_bias, ("dead-units",), ("act2", "fc2")),
    Program("nine sigmoids", deep_sigmoid, ("vanishing-gradient",), ("fc1", "fc2")),
    Program("normal(0, 1) weights", wide_normal_init, ("bad-init-scale",), ("fc1", "fc2", "fc3", "fc4")),
    Program("all parameters zero", all_zeros, ("zero-init",), ("fc1", "fc2", "fc3")),
    Program("detached encoder", detached, ("no-gradient",), ("encoder",)),
    Program("layer that is not called", forgotten_layer, ("unused-module",), ("two",)),
    Program("pixels from 0 to 255", raw_pixels, ("input-not-normalised",), ("", "fc1")),
    Program("dropout of 0.95", dropout_instead_of_keep, ("dropout-extreme",), ("2",)),
    Program("learning rate 1e-7", rate_too_low, ("update-too-small",), (None,)),
    Program("softmax over one class", softmax_of_one, ("constant-output",), ("", "last")),
    Program("large weights before tanh", saturated_tanh, ("saturated-activation", "bad-init-scale"), ("act2", "fc2")),
    Program("head made after the optimizer", late_head, ("not-in-optimizer",), ("fc2",)),
)

HEALTHY = (
    Program("perceptron", plain),
    Program("convolutions with BatchNorm", convolutions),
    Program("frozen backbone", frozen_backbone),
    Program("only the head in the optimizer", head_alone_in_optimizer),
    Program("low-rank adapters", adapters),
    Program("dropout of 0.5", dropout),
    Program("GAN in one model", adversaries),
    Program("sparse activations and weights", sparse),
    Program("gradient accumulation", accumulated),
    Program("learning rate that decays to nothing", decayed_rate),
    Program("regression with tanh", small_regression),
)
