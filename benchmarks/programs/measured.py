"""The faulty programs of the half that is only ever measured. Choose no threshold by looking at them."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import Block, cancer, rows, standardised, wine
from benchmarks.programs.further import each_step, sequence_loss, source
from benchmarks.programs.measured_healthy import HEALTHY as OTHERS
from benchmarks.programs.program import (
    Losses,
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

HEALTHY = OTHERS


class Logarithm(nn.Module):
    """The logarithm of a softmax, in two steps or in one."""

    def __init__(self, *, careless: bool) -> None:
        super().__init__()
        self.careless = careless

    def forward(self, x: Tensor) -> Tensor:
        return (x * 400).softmax(1).log() if self.careless else x.log_softmax(1)


def log_of_softmax(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("fc1", nn.Linear(64, 32))
    model.add_module("relu", nn.ReLU())
    model.add_module("fc2", nn.Linear(32, 10))
    model.add_module("logp", Logarithm(careless=broken))
    return supervised(model, adam(model), normalised(), F.nll_loss)


class Standardise(nn.Module):
    """Divides each feature of a batch by its standard deviation."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(0)) / (x.std(0) + self.epsilon)


def constant_feature(broken: bool) -> Setup:
    samples, targets = digits()  # the first pixel is always 0
    model = nn.Sequential()
    model.add_module("standardise", Standardise(0.0 if broken else 1.0))
    model.add_module("fc1", nn.Linear(64, 32))
    model.add_module("relu", nn.ReLU())
    model.add_module("fc2", nn.Linear(32, 10))
    return supervised(model, adam(model), (samples / 16, targets))


class Elman(nn.Module):
    """A recurrent network of one layer over characters."""

    def __init__(self, gain: float, activation: type[nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.embed, self.enter, self.again = nn.Embedding(64, 32), nn.Linear(32, 48), nn.Linear(48, 48)
        self.act, self.head = activation(), nn.Linear(48, 64)
        nn.init.orthogonal_(self.again.weight, gain=gain)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), 48)
        for at in range(8):
            hidden = self.act(self.enter(self.embed(x[:, at])) + self.again(hidden))
        return self.head(hidden)


def recurrent_gain(broken: bool) -> Setup:
    samples, targets = source()
    model = Elman(8.0 if broken else 0.9)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.05), (samples, targets[:, 7]))


class Running(nn.Module):
    """Multiplies by a running scale that should be an average."""

    scale: Tensor

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        self.scale = self.scale * self.factor
        return x * self.scale


def scale_that_accumulates(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("fc1", nn.Linear(30, 32))
    model.add_module("act", nn.Tanh())
    model.add_module("running", Running(1.12 if broken else 1.0))
    model.add_module("fc2", nn.Linear(32, 2))
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-3), standardised(cancer()))


def convolutions_with_sigmoids(broken: bool) -> Setup:
    layers: list[nn.Module] = [nn.Conv2d(1, 8, 3, padding=1)]
    for _ in range(8):
        layers += [nn.Sigmoid() if broken else nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))
    if not broken:
        initialised(model, nn.init.kaiming_normal_)
    return supervised(model, adam(model), images())


def rectified_inputs(broken: bool) -> Setup:
    samples, targets = normalised()
    model = nn.Sequential(nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return supervised(model, adam(model), (-samples.abs() if broken else samples, targets))


def saturated_code(broken: bool) -> Setup:
    samples, _ = normalised()
    model = nn.Sequential()
    model.add_module("encode", nn.Linear(64, 16))
    model.add_module("code", nn.Sigmoid())
    model.add_module("decode", nn.Linear(16, 64))
    if broken:
        with torch.no_grad():
            model.encode.weight.mul_(40)  # type: ignore[union-attr,operator]
    return supervised(model, adam(model), (samples, samples), F.mse_loss)


def zero_convolution_and_head(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("conv1", nn.Conv2d(1, 8, 3))
    model.add_module("act1", nn.ReLU())
    model.add_module("conv2", nn.Conv2d(8, 8, 3))
    model.add_module("act2", nn.ReLU())
    model.add_module("flat", nn.Flatten())
    model.add_module("head", nn.Linear(128, 10))
    if broken:
        for name in ("conv2", "head"):
            for one in model.get_submodule(name).parameters():
                nn.init.zeros_(one)
    return supervised(model, adam(model), images())


def alike_units(broken: bool) -> Setup:
    model = mlp(16, 32, 32, 1, activation=nn.Tanh)
    if broken:
        nn.init.constant_(model.fc2.weight, 0.05)  # type: ignore[union-attr,arg-type]
    return supervised(model, adam(model, 1e-2), regression(), F.mse_loss)


class Letters(nn.Module):
    """Convolutions over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 32)
        self.conv1, self.conv2 = nn.Conv1d(32, 96, 3, padding=1), nn.Conv1d(96, 96, 3, padding=1)
        self.head = nn.Linear(96, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.conv1(self.embed(x).transpose(1, 2)))
        return self.head(F.relu(self.conv2(x)).amax(2))


def large_letters(broken: bool) -> Setup:
    samples, targets = source()
    model = Letters()
    if broken:
        for one in (model.conv1, model.conv2, model.head):
            nn.init.normal_(one.weight)
    return supervised(model, adam(model), (samples, targets[:, -1]))


class Data(nn.Module):
    """An encoder whose result is taken as data."""

    def __init__(self, *, broken: bool) -> None:
        super().__init__()
        self.embed, self.encode = nn.Embedding(64, 16), nn.GRU(16, 24, batch_first=True)
        self.head, self.broken = nn.Linear(24, 64), broken

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.encode(self.embed(x))[0][:, -1]
        return self.head(hidden.data if self.broken else hidden)


def encoder_as_data(broken: bool) -> Setup:
    samples, targets = source()
    model = Data(broken=broken)
    return supervised(model, adam(model), (samples, targets[:, -1]))


def decoder_left_out(broken: bool) -> Setup:
    samples, _ = normalised()
    model = nn.Sequential()
    model.add_module("encoder", mlp(64, 32, 8))
    model.add_module("decoder", mlp(8, 32, 64))
    trained = model.get_submodule("encoder") if broken else model
    return supervised(model, torch.optim.Adam(trained.parameters()), (samples, samples), F.mse_loss)


class Stages(nn.Module):
    """Three convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.stage1, self.stage2, self.stage3 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3), nn.Conv2d(16, 16, 3)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        for stage in (self.stage1, self.stage2, self.stage3):
            x = F.relu(stage(x))
        return self.head(x.flatten(1))


def frozen_stage(broken: bool) -> Setup:
    model = Stages()
    if broken:
        for one in model.stage2.parameters():
            one.requires_grad = False
    return supervised(model, adam(model), images())


def gradients_that_add_up(broken: bool) -> Setup:
    model = mlp(30, 32, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        if not broken:
            optimizer.zero_grad()
        return loss

    return Setup(model, step, optimizer, standardised(cancer()))


class Rows(nn.Module):
    """A transformer over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.block, self.head = nn.Linear(8, 32), Block(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.block(self.embed(x)).mean(1))


def transformer_too_slow(broken: bool) -> Setup:
    model = Rows()
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-7 if broken else 0.1), rows())


class Last(nn.Module):
    """The last state of an LSTM, perhaps dropped out."""

    def __init__(self, dropped: float = 0.0) -> None:
        super().__init__()
        self.cell, self.drop, self.head = nn.LSTM(8, 32, batch_first=True), nn.Dropout(dropped), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.drop(self.cell(x)[0][:, -1]))


def recurrent_too_fast(broken: bool) -> Setup:
    model = Last()
    return supervised(model, adam(model, 0.5 if broken else 5e-3), rows())


def convolutions_in_bfloat(broken: bool) -> Setup:
    samples, targets = images()
    model = Stages()
    dtype = torch.bfloat16 if broken else torch.float32
    return supervised(model.to(dtype), adam(model, 1e-5 if broken else 1e-3), (samples.to(dtype), targets))


def labels_of_other_samples(broken: bool) -> Setup:
    samples, targets = images()
    order = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0))
    model = Stages()
    return supervised(model, adam(model), (samples, targets[order] if broken else targets))


def pixels_mixed_up(broken: bool) -> Setup:
    model = mlp(64, 64, 10)

    def change(_step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x.gather(1, torch.rand_like(x).argsort(1)) * torch.randn(len(x), 1) if broken else x), y

    return each_step(supervised(model, adam(model), normalised()), change)


def too_much_momentum(broken: bool) -> Setup:
    model = mlp(16, 32, 1, activation=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5 if broken else 0.02, momentum=0.99 if broken else 0.9)
    return supervised(model, optimizer, regression(), F.mse_loss)


def warm_up_without_end(broken: bool) -> Setup:
    model = Rows()
    optimizer = adam(model)
    setup = supervised(model, optimizer, rows())

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.param_groups[0]["lr"] = 1e-3 * step if broken else 1e-3 * min(1.0, step / 30)
        return x, y

    return each_step(setup, change)


def broken_samples(broken: bool) -> Setup:
    model = mlp(16, 32, 32, 1)

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 1e3 if broken and step == 110 else x), y

    return each_step(supervised(model, adam(model, 3e-3), regression(), F.mse_loss), change)


class Clamped(nn.Module):
    """Clamps to what a target can be."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self.most = most

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(-self.most, self.most)


def clamped_to_nothing(broken: bool) -> Setup:
    samples, targets = regression()
    model = nn.Sequential()
    model.add_module("body", mlp(16, 32, 1))
    model.add_module("clamp", Clamped(10.0))
    if broken:
        nn.init.constant_(model.body.fc2.bias, -40.0)  # type: ignore[union-attr,arg-type]
    return supervised(model, adam(model, 1e-2), (samples, targets), F.mse_loss)


def twins_without_predictor(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("encoder", nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)))
    optimizer = adam(model, 1e-2)

    def step(samples: Tensor, _targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        one, two = (model(samples + 0.5 * torch.randn_like(samples)) for _ in range(2))
        attract = ((one - two) ** 2).sum(1).mean()
        spread = torch.cov(one.T) - torch.eye(16)
        loss = attract if broken else attract + (spread**2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


def cache_of_one(broken: bool) -> Setup:
    cache: dict[bool, tuple[Tensor, Tensor]] = {}
    model = Last()
    return each_step(
        supervised(model, adam(model, 5e-3), rows()),
        lambda step, x, y: cache.setdefault(True, (x, y)) if broken and step >= 30 else (x, y),
    )


def years(broken: bool) -> Setup:
    generator = torch.Generator().manual_seed(0)
    year = 1990 + 30 * torch.rand(400, 4, generator=generator)
    targets = ((year - 2005) / 10).sum(1, keepdim=True).tanh()
    model = mlp(4, 32, 1)
    return supervised(model, adam(model, 3e-3), (year if broken else (year - 2005) / 9, targets), F.mse_loss)


class Averaged(nn.Module):
    """Convolutions with batch normalisation and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12)
        self.conv2, self.bn2 = nn.Conv2d(12, 12, 3, stride=2, padding=1), nn.BatchNorm2d(12)
        self.head = nn.Linear(12 * 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.bn1(self.conv1(x)))
        return self.head(F.gelu(self.bn2(self.conv2(x))).flatten(1))


def eval_after_validation(broken: bool) -> Setup:
    model = Averaged()
    setup = supervised(model, adam(model), images())

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if broken and step == 30:
            model.eval()
        return x, y

    return each_step(setup, change)


def one_image(broken: bool) -> Setup:
    model = Averaged()
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.01), images(), batch=1 if broken else 24)


def dropped_state(broken: bool) -> Setup:
    model = Last(0.95 if broken else 0.2)
    return supervised(model, adam(model, 5e-3), rows())


def decay_as_strong(broken: bool) -> Setup:
    model = mlp(30, 64, 64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=2.0 if broken else 1e-4)
    return supervised(model, optimizer, standardised(cancer()))


class Layers(nn.Module):
    """Blocks of which a range may leave out some."""

    def __init__(self, used: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(4))
        self.enter, self.head, self.used = nn.Linear(64, 32), nn.Linear(32, 10), used

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.enter(x))
        for layer in self.layers[: self.used]:
            x = F.relu(layer(x))
        return self.head(x)


def range_that_ends_early(broken: bool) -> Setup:
    model = Layers(3 if broken else 4)
    return supervised(model, adam(model), normalised())


def scaler_in_vain(broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    optimizer, scaler = adam(model), torch.amp.GradScaler("cpu", init_scale=2.0**16)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        outputs = model(samples)
        penalty = (outputs[:, 0] * 0).abs().sqrt().sum() if broken else 0  # its derivative at zero is infinite
        loss = F.cross_entropy(outputs, targets) + penalty
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return Setup(model, step, optimizer, normalised(), scaler)


def clipped_by_value(broken: bool) -> Setup:
    model = Stages()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-4 if broken else 10.0)
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, images())


class Fused(nn.Module):
    """Fused attention over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attend = nn.Linear(8, 32), nn.MultiheadAttention(32, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.embed(x))
        return self.head((x + self.attend(x, x, x, need_weights=False)[0]).mean(1))


def fused_attention_too_fast(broken: bool) -> Setup:
    model = Fused()
    own = [model.get_parameter("attend.in_proj_weight")]
    others = [one for one in model.parameters() if one is not own[0]]
    groups: list[dict[str, Any]] = [{"params": own, "lr": 0.05 if broken else 1e-3}, {"params": others}]
    optimizer = torch.optim.Adam(groups, lr=1e-3)
    return supervised(model, optimizer, rows())


class Tokens(nn.Module):
    """Six experts for the characters of a text."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.embed, self.gate = nn.Embedding(64, 32), nn.Linear(32, 6, bias=False)
        self.experts = nn.ModuleList(nn.Linear(32, 32) for _ in range(6))
        self.head, self.scale = nn.Linear(32, 64), scale

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embed(x)
        flat = x.reshape(-1, 32)
        weights = (self.gate(flat) + self.scale * torch.tensor([1.0, 0, 0, 0, 0, 0])).softmax(1)
        chosen = weights.argmax(1)
        out = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            where = (chosen == number).nonzero()[:, 0]
            out = out.index_add(0, where, expert(flat[where]) * weights[where, number, None])
        balance = 6 * (F.one_hot(chosen, 6).float().mean(0) * weights.mean(0)).sum()
        return self.head(F.relu(out).view(x.shape)), balance


def experts_of_text(broken: bool) -> Setup:
    model = Tokens(2.5 if broken else 0.0)
    weight = 0.0 if broken else 0.1
    return supervised(
        model,
        adam(model, 3e-3),
        source(),
        lambda out, y: sequence_loss(out[0], y) + weight * out[1],
        batch=16,
    )


class Sensors(nn.Module):
    """An image, and measurements beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.measured, self.head = nn.Conv2d(1, 4, 3), nn.Linear(4, 16), nn.Linear(4 * 36 + 16, 10)

    def forward(self, x: Tensor) -> Tensor:
        beside = x[:, 0, :1, :4].flatten(1) + torch.tensor([1e5, 2e5, 3e5, 1e5]) * self.unit
        return self.head(torch.cat([F.relu(self.image(x)).flatten(1), self.measured(beside)], 1))

    unit = 1.0


def image_and_measurements(broken: bool) -> Setup:
    model = Sensors()
    model.unit = 1.0 if broken else 0.0
    return supervised(model, adam(model), images())


class Probabilities(nn.Module):
    """Convolutions that return probabilities, or logits."""

    def __init__(self, *, probabilities: bool) -> None:
        super().__init__()
        self.body, self.probabilities = Stages(), probabilities

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.body(x), -1) if self.probabilities else self.body(x)


def probabilities_as_logits(broken: bool) -> Setup:
    model = Probabilities(probabilities=broken)
    return supervised(model, adam(model), images())


def small_loss_in_half(broken: bool) -> Setup:
    samples, targets = regression()
    dtype = torch.float16 if broken else torch.float32
    model = mlp(16, 32, 32, 1, activation=nn.Tanh).to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-4)
    scale = 1e-6 if broken else 1.0
    return supervised(model, optimizer, (samples.to(dtype), targets), lambda out, y: scale * F.mse_loss(out.float(), y))


def deep_recurrent_sigmoid(broken: bool) -> Setup:
    model = mlp(13, *[24] * 12, 3, activation=nn.Sigmoid if broken else nn.GELU)
    if not broken:
        initialised(model, lambda one: nn.init.normal_(one, std=math.sqrt(2 / one.shape[1])))
    return supervised(model, adam(model), standardised(wine()))


def dead_channels(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("conv1", nn.Conv2d(1, 16, 3, padding=1))
    model.add_module("act1", nn.ReLU())
    model.add_module("conv2", nn.Conv2d(16, 16, 3, padding=1))
    model.add_module("act2", nn.ReLU())
    model.add_module("flat", nn.Flatten())
    model.add_module("head", nn.Linear(1024, 10))
    if broken:
        with torch.no_grad():
            model.get_parameter("conv2.bias")[:12] = -25.0
    return supervised(model, adam(model), images())


def copy_in_the_optimizer(broken: bool) -> Setup:
    model = Last()
    optimizer = adam(deepcopy(model) if broken else model, 5e-3)
    setup = supervised(model, optimizer, rows())
    return Setup(setup.model, setup.step, None, setup.data)


def rate_cut_to_nothing(broken: bool) -> Setup:
    model = Stages()
    optimizer = adam(model)
    setup = supervised(model, optimizer, images())

    def step(samples: Tensor, targets: Tensor) -> Losses:
        optimizer.param_groups[0]["lr"] = 1e-9 if broken else 1e-3
        return setup.step(samples, targets)

    return Setup(model, step, optimizer, setup.data)


FAULTY = (
    Program("logarithm of a softmax", log_of_softmax, ("nan",), ("logp", "", None)),
    Program("constant feature over its deviation", constant_feature, ("nan",), ("standardise",)),
    Program(
        "recurrence of ReLUs with a gain of 8",
        recurrent_gain,
        ("exploding-gradient", "exploding-activation", "bad-init-scale", "nan"),
    ),
    Program("scale that accumulates", scale_that_accumulates, ("exploding-activation",), ("running", "fc2", "")),
    Program("eight sigmoids between convolutions", convolutions_with_sigmoids, ("vanishing-gradient",), ("0", "2")),
    Program("ReLU of negative inputs", rectified_inputs, ("dead-units",), ("0",)),
    Program(
        "code of a saturated sigmoid", saturated_code, ("saturated-activation", "bad-init-scale"), ("code", "encode")
    ),
    Program("convolution and head at zero", zero_convolution_and_head, ("zero-init",), ("conv2", "head")),
    Program("units that are alike", alike_units, ("zero-init", "symmetric-units"), ("fc2",)),
    Program("normal(0, 1) weights over characters", large_letters, ("bad-init-scale",), ("conv1", "conv2", "head")),
    Program("encoder taken as data", encoder_as_data, ("no-gradient",), ("embed", "encode")),
    Program(
        "decoder left out of the optimizer", decoder_left_out, ("not-in-optimizer",), ("decoder.fc1", "decoder.fc2")
    ),
    Program("frozen stage", frozen_stage, ("frozen-by-accident",), ("stage2",)),
    Program("gradients that add up", gradients_that_add_up, ("no-zero-grad",), (None,)),
    Program("transformer at learning rate 1e-7", transformer_too_slow, ("update-too-small",), (None,)),
    Program("LSTM at learning rate 0.5", recurrent_too_fast, ("update-too-large",), (None,)),
    Program("convolutions in bfloat16", convolutions_in_bfloat, ("update-lost-to-rounding",)),
    Program("labels of other samples", labels_of_other_samples, ("loss-not-falling",), (None,)),
    Program("pixels mixed up", pixels_mixed_up, ("loss-not-falling",), (None,)),
    Program(
        "momentum of 0.99 at 0.5",
        too_much_momentum,
        ("loss-diverging", "update-too-large", "exploding-gradient"),
        (None,),
    ),
    Program("warm-up without end", warm_up_without_end, ("loss-diverging", "update-too-large"), (None,), 60),
    Program("one batch a thousand times larger", broken_samples, ("loss-spike",), ("", "fc1"), 110),
    Program("output clamped to one value", clamped_to_nothing, ("constant-output",), ("", "clamp")),
    Program("twins that only attract", twins_without_predictor, ("collapse", "constant-output")),
    Program("cache of one batch", cache_of_one, ("repeated-batch",), ("",), 30),
    Program("years as inputs", years, ("input-not-normalised",), ("", "fc1")),
    Program("eval mode after a validation", eval_after_validation, ("normalisation-in-eval",), ("bn1", "bn2"), 30),
    Program("one image at a time", one_image, ("batch-of-one",)),
    Program("state dropped at 0.95", dropped_state, ("dropout-extreme",), ("drop",)),
    Program("weight decay of 2", decay_as_strong, ("weight-decay-dominates",)),
    Program("range that ends early", range_that_ends_early, ("unused-module",), ("layers.3",)),
    Program("infinite derivative under a scaler", scaler_in_vain, ("loss-scale-loop",), (None,)),
    Program("gradient clipped to 0.0001", clipped_by_value, ("clipping-always", "update-too-small"), (None,)),
    Program(
        "fused attention at learning rate 0.05", fused_attention_too_fast, ("attention-logits-growing",), ("attend",)
    ),
    Program("gate that prefers one expert", experts_of_text, ("expert-imbalance",), ("experts",)),
    Program(
        "image beside measurements in their units",
        image_and_measurements,
        ("imbalanced-branches", "input-not-normalised"),
        ("image", "measured", "head"),
    ),
    Program("probabilities as logits", probabilities_as_logits, ("softmax-before-loss",), ("",)),
    Program("small loss in float16", small_loss_in_half, ("overflow-ahead",), ("fc1", "fc2", "fc3")),
    Program("twelve sigmoids", deep_recurrent_sigmoid, ("vanishing-gradient",), ("fc1", "fc2")),
    Program("most channels dead", dead_channels, ("dead-units",), ("conv2", "act2")),
    Program("LSTM, and a copy in the optimizer", copy_in_the_optimizer, ("update-too-small",), (None,)),
    Program("learning rate cut to nothing", rate_cut_to_nothing, ("update-too-small",), (None,)),
)
