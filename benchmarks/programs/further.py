"""More programs of the half that thresholds were chosen on: losses, data, attention, experts, low precision."""

from __future__ import annotations

import ast
import heapq
import inspect
import math
from collections import Counter
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.programs.earlier import Small, cancer, rows, standardised, wine
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

LATE = 90
"""The step at which faults begin that do not show from the start."""


def each_step(setup: Setup, change: Any) -> Setup:
    """The same training, where `change` is given the number of the step, the samples and targets, and returns both."""
    count = iter(range(10**9))

    def step(samples: Tensor, targets: Tensor) -> Losses:
        return setup.step(*change(next(count), samples, targets))

    return Setup(setup.model, step, setup.optimizer, setup.data, setup.scaler, setup.batch)


def shuffled_labels(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    setup = supervised(model, adam(model), normalised())
    return each_step(setup, lambda _, x, y: (x, y[torch.randperm(len(y))] if broken else y))


def wrong_sign(broken: bool) -> Setup:
    model = mlp(13, 32, 3)
    loss = (lambda out, y: -F.cross_entropy(out, y)) if broken else F.cross_entropy
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        outputs = model(samples)
        loss(outputs, targets).backward()
        optimizer.step()
        return F.cross_entropy(outputs, targets)

    return Setup(model, step, optimizer, standardised(wine()))


def rate_that_grows(broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    setup = supervised(model, optimizer, normalised())

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.param_groups[0]["lr"] = 0.05 * (1.06**step if broken else 0.99**step)
        return x, y

    return each_step(setup, change)


def bad_batch(broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    setup = supervised(model, adam(model), normalised())
    return each_step(setup, lambda step, x, y: (300 * torch.randn_like(x) if broken and step == LATE else x, y))


def rate_that_jumps(broken: bool) -> Setup:
    model = mlp(64, 64, 32, 10)
    optimizer = adam(model)
    setup = supervised(model, optimizer, normalised())

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.param_groups[0]["lr"] = 1.0 if broken and step == LATE else 1e-3
        return x, y

    return each_step(setup, change)


def loader_that_sticks(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    kept: list[tuple[Tensor, Tensor]] = []

    def change(step: int, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if step == 40:
            kept.append((x, y))
        return kept[0] if broken and kept else (x, y)

    return each_step(supervised(model, adam(model), normalised()), change)


def batch_of_ten_steps(broken: bool) -> Setup:
    model = Small()
    kept: dict[int, tuple[Tensor, Tensor]] = {}
    return each_step(
        supervised(model, adam(model), images()),
        lambda step, x, y: kept.setdefault(step // 10, (x, y)) if broken else (x, y),
    )


class WideAndDeep(nn.Module):
    """Learned features beside some that are taken as they are."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.deep, self.wide, self.head, self.scale = nn.Linear(64, 16), nn.Identity(), nn.Linear(48, 10), scale

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.cat([F.relu(self.deep(x)), self.wide(x[:, :32] * self.scale)], 1))


def wide_and_deep(broken: bool) -> Setup:
    model = WideAndDeep(1e4 if broken else 1.0)
    return supervised(model, adam(model), normalised())


def softmax_module(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    if broken:
        model.add_module("probabilities", nn.Softmax(dim=1))
    return supervised(model, adam(model), normalised())


class Classes(nn.Module):
    """A network that may return probabilities."""

    def __init__(self, *, probabilities: bool) -> None:
        super().__init__()
        self.body, self.probabilities = mlp(13, 32, 3), probabilities

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.body(x), 1) if self.probabilities else self.body(x)


def softmax_function(broken: bool) -> Setup:
    model = Classes(probabilities=broken)
    return supervised(model, adam(model, 1e-2), standardised(wine()))


def sigmoid_twice(broken: bool) -> Setup:
    samples, targets = standardised(cancer())
    model = mlp(30, 16, 1)
    if broken:
        model.add_module("last", nn.Sigmoid())
    return supervised(model, adam(model), (samples, targets[:, None].float()), F.binary_cross_entropy_with_logits)


class Attention(nn.Module):
    """Attention of one head, with its own projections."""

    def __init__(self, width: int, *, normalise: bool = False) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.out, self.normalise = nn.Linear(width, width), normalise

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.normalise:
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v))


class RowAttention(nn.Module):
    """Attention over the rows of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.attend, self.head = nn.Linear(8, 32), Attention(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attend(self.embed(x)).mean(1))


def attention_that_grows(broken: bool) -> Setup:
    model = RowAttention()
    own = [*model.attend.q_proj.parameters(), *model.attend.k_proj.parameters()]
    others = [one for one in model.parameters() if id(one) not in map(id, own)]
    groups: list[dict[str, Any]] = [{"params": own, "lr": 0.1 if broken else 1e-3}, {"params": others}]
    optimizer = torch.optim.Adam(groups, lr=1e-3)
    return supervised(model, optimizer, rows())


class Experts(nn.Module):
    """Four experts, of which a router picks one for each sample."""

    def __init__(self, preferred: float) -> None:
        super().__init__()
        self.router = nn.Linear(64, 4)
        self.experts = nn.ModuleList(mlp(64, 32, 10) for _ in range(4))
        nn.init.constant_(self.router.bias[:1], preferred)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights = self.router(x).softmax(1)
        chosen = weights.argmax(1)
        out = torch.zeros(len(x), 10)
        balance = 4 * (F.one_hot(chosen, 4).float().mean(0) * weights.mean(0)).sum()
        for number, expert in enumerate(self.experts):
            where = chosen == number
            if where.any():
                out[where] = expert(x[where]) * weights[where, number : number + 1]
        return out, balance


def router_that_collapses(broken: bool) -> Setup:
    model = Experts(2.0 if broken else 0.0)
    weight = 0.0 if broken else 0.5
    return supervised(model, adam(model), normalised(), lambda out, y: F.cross_entropy(out[0], y) + weight * out[1])


def bfloat_weights(broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 64, 32, 10).to(torch.bfloat16 if broken else torch.float32)
    dtype = torch.bfloat16 if broken else torch.float32
    return supervised(model, torch.optim.SGD(model.parameters(), lr=1e-2), (samples.to(dtype), targets))


class Grows(nn.Module):
    """A stage in half precision whose values grow with training."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.log_scale, self.gain = nn.Parameter(torch.zeros(1)), gain

    def forward(self, x: Tensor) -> Tensor:
        return (x.half() * self.log_scale.exp().half() * 16).clamp(-60000, 60000)


def half_that_grows(broken: bool) -> Setup:
    model = nn.Sequential()
    model.add_module("fc1", nn.Linear(64, 32))
    model.add_module("stage", Grows(1.0))
    model.add_module("out", Cast())
    model.add_module("fc2", nn.Linear(32, 10))
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        if broken:  # a schedule that was meant to go down
            with torch.no_grad():
                model.get_parameter("stage.log_scale").add_(0.04)
        return loss

    return Setup(model, step, optimizer, normalised())


class Cast(nn.Module):
    """Back to single precision."""

    def forward(self, x: Tensor) -> Tensor:
        return x.float() / 64


def half_without_scaler(broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 64, 32, 10).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scale = 1e-5 if broken else 1.0

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).float(), y)
        (loss * scale).backward()
        for one in model.parameters():
            one.grad.div_(scale)  # type: ignore[union-attr]
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, (samples.half(), targets))


def no_zero_grad(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        if not broken:
            optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


class Normalised(nn.Module):
    """Convolutions with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        return self.head(F.relu(self.norm2(self.conv2(x))).mean((2, 3)))


def normalisation_in_eval(broken: bool) -> Setup:
    model = Normalised()
    if broken:
        for norm in (model.norm1, model.norm2):
            norm.eval()
    return supervised(model, adam(model), images())


def batch_of_one(broken: bool) -> Setup:
    model = Normalised()
    return supervised(model, adam(model), images(), batch=1 if broken else 32)


def decay_too_strong(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=50.0 if broken else 0.01)
    return supervised(model, optimizer, normalised())


def clipped_to_nothing(broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3 if broken else 5.0)
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


def frozen_in_the_middle(broken: bool) -> Setup:
    model = mlp(64, 48, 48, 10)
    if broken:
        model.fc2.requires_grad_(False)
    return supervised(model, adam(model), normalised())


def half_of_the_units_dead(broken: bool) -> Setup:
    model = mlp(64, 64, 64, 10)
    if broken:
        with torch.no_grad():
            model.get_parameter("fc1.bias")[:40] = -30.0
    return supervised(model, adam(model), normalised())


def collapsed_views(broken: bool) -> Setup:
    model = mlp(64, 64, 16)
    optimizer = adam(model, 1e-2)

    def step(samples: Tensor, _targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        one, two = (model(samples + 0.3 * torch.randn_like(samples)) for _ in range(2))
        loss = F.mse_loss(one, two)
        if not broken:
            loss = loss + F.relu(1 - one.std(0)).mean() + F.relu(1 - two.std(0)).mean()
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


# Healthy ones


@lru_cache
def source() -> tuple[Tensor, Tensor]:
    """Pieces of the sources of Python's library as numbers of characters, and the same one character later."""
    text = "".join(inspect.getsource(module) for module in (ast, heapq))
    common = [letter for letter, _ in Counter(text).most_common(63)]
    codes = np.array([common.index(one) if one in common else 63 for one in text[: 33 * 1500]]).reshape(1500, 33)
    return torch.tensor(codes[:, :-1]), torch.tensor(codes[:, 1:])


class Decoder(nn.Module):
    """A small language model over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(64, 32), nn.Embedding(32, 32)
        self.layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x) + self.place(torch.arange(x.shape[1]))
        x = self.layer(x, src_mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]), is_causal=True)
        return self.head(self.norm(x))


def sequence_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def language_model(_broken: bool) -> Setup:
    model = Decoder()
    return supervised(model, torch.optim.AdamW(model.parameters(), lr=3e-3), source(), sequence_loss, batch=16)


def whole_data_set(_broken: bool) -> Setup:
    model = mlp(13, 32, 3)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.2), standardised(wine()), batch=0)


def noisy_labels(_broken: bool) -> Setup:
    samples, targets = normalised()
    some = torch.rand(len(targets), generator=torch.Generator().manual_seed(0)) < 0.4
    noisy = torch.where(some, torch.randint(10, targets.shape, generator=torch.Generator().manual_seed(1)), targets)
    model = mlp(64, 64, 10)
    return supervised(model, adam(model), (samples, noisy))


def rare_class(_broken: bool) -> Setup:
    samples, targets = normalised()
    model = mlp(64, 32, 1)
    return supervised(
        model, adam(model), (samples, (targets == 3).float()[:, None]), F.binary_cross_entropy_with_logits
    )


def sharpness_aware(_broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        weights = [one for one in model.parameters() if one.grad is not None]
        norm = torch.stack([one.grad.norm() for one in weights]).norm()  # type: ignore[union-attr]
        climbs = [0.05 * one.grad / norm for one in weights]  # type: ignore[operator]
        with torch.no_grad():
            for one, climb in zip(weights, climbs, strict=True):
                one.add_(climb)
        optimizer.zero_grad()
        F.cross_entropy(model(samples), targets).backward()
        with torch.no_grad():
            for one, climb in zip(weights, climbs, strict=True):
                one.sub_(climb)
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


class Sine(nn.Module):
    """The sine of a multiple."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(30 * x)


def sine_network(_broken: bool) -> Setup:
    model = nn.Sequential(
        nn.Linear(2, 64), Sine(), nn.Linear(64, 64), Sine(), nn.Linear(64, 64), Sine(), nn.Linear(64, 1)
    )
    with torch.no_grad():
        for number, layer in enumerate(one for one in model if isinstance(one, nn.Linear)):
            bound = 1 / 2 if not number else math.sqrt(6 / 64) / 30
            layer.weight.uniform_(-bound, bound)
    places = torch.rand(512, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
    wanted = torch.sin(6 * places[:, :1]) * torch.cos(5 * places[:, 1:])
    return supervised(model, adam(model, 1e-4), (places, wanted), F.mse_loss, batch=128)


def deep_and_plain(_broken: bool) -> Setup:
    model = mlp(64, *[48] * 14, 10)
    initialised(model, lambda one: nn.init.kaiming_normal_(one, nonlinearity="relu"))
    return supervised(model, adam(model, 5e-4), normalised())


class Linked(nn.Module):
    """Two graph convolutions over the nearest neighbours of each sample."""

    links: Tensor

    def __init__(self, samples: Tensor) -> None:
        super().__init__()
        near = torch.cdist(samples, samples).topk(6, largest=False).indices
        links = torch.zeros(len(samples), len(samples)).scatter_(1, near, 1 / 6)
        self.register_buffer("links", links)
        self.one, self.two = nn.Linear(13, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.links @ F.relu(self.one(self.links @ x)))


def graph_network(_broken: bool) -> Setup:
    model = Linked(standardised(wine())[0])
    return supervised(model, adam(model, 1e-2), standardised(wine()), batch=0)


class Bandit(nn.Module):
    """A policy over ten actions."""

    def __init__(self) -> None:
        super().__init__()
        self.body = mlp(64, 32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.body(x), 1)


def policy_gradient(_broken: bool) -> Setup:
    model = Bandit()
    optimizer = adam(model, 3e-3)

    def step(samples: Tensor, targets: Tensor) -> dict[str, Tensor]:
        optimizer.zero_grad()
        chosen = torch.distributions.Categorical(model(samples))
        action = chosen.sample()
        reward = (action == targets).float()
        loss = -(chosen.log_prob(action) * (reward - reward.mean())).mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss, "reward": reward.mean()}

    return Setup(model, step, optimizer, normalised())


def probabilities_and_logarithm(_broken: bool) -> Setup:
    model = Classes(probabilities=True)
    return supervised(model, adam(model, 1e-2), standardised(wine()), lambda out, y: F.nll_loss((out + 1e-9).log(), y))


def log_softmax(_broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    model.add_module("last", nn.LogSoftmax(dim=1))
    return supervised(model, adam(model), normalised(), F.nll_loss)


def squared_probabilities(_broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    model.add_module("last", nn.Softmax(dim=1))
    return supervised(
        model, adam(model, 1e-2), normalised(), lambda out, y: ((out - F.one_hot(y, 10)) ** 2).sum(1).mean()
    )


def balanced_experts(_broken: bool) -> Setup:
    model = Experts(0.0)
    return supervised(model, adam(model, 3e-3), normalised(), lambda out, y: F.cross_entropy(out[0], y) + 0.1 * out[1])


def contrastive(_broken: bool) -> Setup:
    model = mlp(64, 64, 16)
    optimizer = adam(model)

    def step(samples: Tensor, _targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        one, two = (F.normalize(model(samples + 0.5 * torch.randn_like(samples)), dim=1) for _ in range(2))
        loss = F.cross_entropy(one @ two.T / 0.2, torch.arange(len(samples)))
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, normalised())


def diffusion(_broken: bool) -> Setup:
    model = mlp(65, 128, 128, 64, activation=nn.SiLU)
    optimizer = adam(model)

    def step(samples: Tensor, _targets: Tensor) -> dict[str, Tensor]:
        optimizer.zero_grad()
        time = torch.rand(len(samples), 1)
        noise = torch.randn_like(samples)
        shown = torch.cos(time * math.pi / 2) * samples + torch.sin(time * math.pi / 2) * noise
        loss = F.mse_loss(model(torch.cat([shown, time], 1)), noise)
        loss.backward()
        optimizer.step()
        return {"train_loss": loss}

    return Setup(model, step, optimizer, normalised(), batch=64)


def mixed_precision(_broken: bool) -> Setup:
    model = Small()
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.cross_entropy(model(samples), targets)
        loss.backward()
        optimizer.step()
        return loss

    return Setup(model, step, optimizer, images())


def weight_normalised(_broken: bool) -> Setup:
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(64, 64)),
        nn.ReLU(),
        nn.utils.parametrizations.weight_norm(nn.Linear(64, 10)),
    )
    return supervised(model, adam(model), normalised())


class Tasks(nn.Module):
    """Two heads on one body."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.digit, self.even = nn.Linear(64, 48), nn.Linear(48, 10), nn.Linear(48, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = F.gelu(self.body(x))
        return self.digit(hidden), self.even(hidden)


def two_tasks(_broken: bool) -> Setup:
    model = Tasks()
    optimizer = adam(model)

    def step(samples: Tensor, targets: Tensor) -> dict[str, Tensor]:
        optimizer.zero_grad()
        digit, even = model(samples)
        parts = F.cross_entropy(digit, targets), F.binary_cross_entropy_with_logits(even[:, 0], (targets % 2).float())
        (parts[0] + 0.5 * parts[1]).backward()
        optimizer.step()
        return {"digit_loss": parts[0], "even_loss": parts[1]}

    return Setup(model, step, optimizer, normalised())


def small_batches(_broken: bool) -> Setup:
    model = mlp(64, 32, 10)
    return supervised(model, torch.optim.SGD(model.parameters(), lr=0.02), normalised(), batch=2)


def cyclic_rate(_broken: bool) -> Setup:
    model = mlp(64, 64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 50)
    setup = supervised(model, optimizer, normalised())

    def step(samples: Tensor, targets: Tensor) -> Losses:
        loss = setup.step(samples, targets)
        schedule.step()
        return loss

    return Setup(model, step, optimizer, setup.data)


def attention(_broken: bool) -> Setup:
    model = RowAttention()
    return supervised(model, adam(model, 3e-3), rows())


class Scaled(nn.Module):
    """Residual blocks whose branches begin nearly at zero, as of LayerScale."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(64, 32), nn.Linear(32, 10)
        self.blocks = nn.ModuleList(mlp(32, 64, 32, activation=nn.GELU) for _ in range(3))
        self.scales = nn.ParameterList(nn.Parameter(torch.full((32,), 1e-4)) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for block, scale in zip(self.blocks, self.scales, strict=True):
            x = x + scale * block(x)
        return self.head(x)


def scaled_branches(_broken: bool) -> Setup:
    model = Scaled()
    return supervised(model, adam(model, 2e-3), normalised())


def scaled_targets(_broken: bool) -> Setup:
    samples, targets = regression(8)
    big = 5e5 + 2e5 * targets
    model = mlp(8, 32, 32, 1)
    return supervised(model, adam(model, 3e-3), (samples, (big - big.mean()) / big.std()), F.mse_loss)


FAULTY = (
    Program("labels shuffled in each batch", shuffled_labels, ("loss-not-falling",), (None,)),
    Program("loss with the wrong sign", wrong_sign, ("loss-diverging",), (None,)),
    Program("learning rate that grows", rate_that_grows, ("loss-diverging", "update-too-large"), (None,), 50),
    Program("one batch of another scale", bad_batch, ("loss-spike",), ("", "fc1"), LATE),
    Program("learning rate that jumps", rate_that_jumps, ("loss-spike", "update-too-large"), (None,), LATE),
    Program("loader that sticks", loader_that_sticks, ("repeated-batch",), ("",), 40),
    Program("each batch for ten steps", batch_of_ten_steps, ("repeated-batch",), ("",)),
    Program("features beside others 10,000 times larger", wide_and_deep, ("imbalanced-branches",), ("deep", "wide")),
    Program("softmax before cross entropy", softmax_module, ("softmax-before-loss",), ("", "probabilities")),
    Program("softmax function before cross entropy", softmax_function, ("softmax-before-loss",), ("",)),
    Program("sigmoid before a loss of logits", sigmoid_twice, ("softmax-before-loss",), ("", "last")),
    Program(
        "queries and keys at learning rate 0.1",
        attention_that_grows,
        ("attention-logits-growing",),
        ("attend", "attend.q_proj"),
    ),
    Program("router that prefers one expert", router_that_collapses, ("expert-imbalance",), ("experts",)),
    Program("weights in bfloat16", bfloat_weights, ("update-lost-to-rounding",), ("fc1", "fc2", "fc3", None)),
    Program("values that grow in float16", half_that_grows, ("overflow-ahead",), ("stage",)),
    Program("float16 without a loss scale", half_without_scaler, ("overflow-ahead",), ("fc1", "fc2", "fc3")),
    Program("no zero_grad", no_zero_grad, ("no-zero-grad",), (None,)),
    Program("normalisation in eval mode", normalisation_in_eval, ("normalisation-in-eval",), ("norm1", "norm2")),
    Program("batches of one sample", batch_of_one, ("batch-of-one",)),
    Program("weight decay of 50", decay_too_strong, ("weight-decay-dominates",)),
    Program("gradient clipped to 0.001", clipped_to_nothing, ("clipping-always", "update-too-small"), (None,)),
    Program("layer frozen in the middle", frozen_in_the_middle, ("frozen-by-accident",), ("fc2",)),
    Program("most units dead", half_of_the_units_dead, ("dead-units",), ("fc1", "act1")),
    Program("views without a repelling force", collapsed_views, ("collapse", "constant-output")),
)

HEALTHY = (
    Program("language model of characters", language_model),
    Program("all samples at each step", whole_data_set),
    Program("noisy labels", noisy_labels),
    Program("rare class", rare_class),
    Program("sharpness-aware updates", sharpness_aware),
    Program("sine network", sine_network),
    Program("deep plain perceptron", deep_and_plain),
    Program("graph network", graph_network),
    Program("policy gradient", policy_gradient),
    Program("softmax, logarithm and its likelihood", probabilities_and_logarithm),
    Program("log-softmax and its likelihood", log_softmax),
    Program("squared error of probabilities", squared_probabilities),
    Program("experts in balance", balanced_experts),
    Program("contrastive", contrastive),
    Program("diffusion", diffusion),
    Program("mixed precision", mixed_precision),
    Program("weight normalisation", weight_normalised),
    Program("two tasks", two_tasks),
    Program("batches of two", small_batches),
    Program("learning rate with restarts", cyclic_rate),
    Program("attention with its own projections", attention),
    Program("branches that begin at nearly zero", scaled_branches),
    Program("large targets, normalised", scaled_targets),
)
