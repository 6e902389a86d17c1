"""What is large only because the targets, or a sum over many samples, ask for it is not told while a network learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.findings.records import chain, module, recorded, weight
from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch

COUNT = 40
STEPS = np.arange(COUNT)
NORMAL = np.random.default_rng(0).standard_normal(16)
FALLING = 0.2 + 2.1 * np.exp(-STEPS / 8)
FLAT = np.full(COUNT, 2.3)
BLOWN_UP = np.where((STEPS > 0) & (STEPS < 4), 60.0, FALLING)

Of = Callable[[int], float]


def kinds(
    folder: Path,
    *,
    gradient: Of = lambda _: 0.1,
    output: Of = lambda _: 1.0,
    ratio: Of = lambda _: 1e-3,
    loss: Sequence[float] = (),
    at_output: Of | None = None,
) -> list[str]:
    """What is told of a layer whose gradient, output and updates have these sizes at each step."""
    frames = []
    for step in range(COUNT):
        values: dict[Any, Any] = {
            ("fc1", "output", "output", "value"): NORMAL * output(step),
            ("fc1", "param", "weight", "value"): NORMAL
            * (0.3 + step / 1000 + 0.3 * min(ratio(step), 1.0) * (step % 2)),
            ("fc1", "param", "weight", "grad"): NORMAL * gradient(step),
            ("fc1", "param", "weight", "update_ratio"): [ratio(step)],
        }
        values["", "output", "output", "value"] = NORMAL * output(step)
        if at_output is not None:
            values["", "output", "output", "grad_norm"] = np.abs(NORMAL[:4]) * at_output(step)
        frames.append(values)
    graph = chain(module("fc1", "Linear", weight(4, 4)))
    scalars = {"loss": [float(one) for one in loss]} if len(loss) else None
    return [one.kind for one in recorded(folder, graph, frames, scalars=scalars).findings()]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param({"loss": FALLING}, [], id="the loss falls"),
        pytest.param({"at_output": lambda step: 10.0 * 0.8**step}, [], id="the gradient at the output fades"),
        pytest.param({"loss": FLAT}, ["exploding-gradient"], id="the loss stays where it began"),
        pytest.param({"loss": FALLING[:8] ** 0.1}, [], id="the loss has begun to fall"),
        pytest.param({"loss": FALLING[7::-1] ** 0.1}, ["exploding-gradient"], id="the loss has begun to rise"),
        pytest.param({"loss": BLOWN_UP}, ["exploding-gradient"], id="the loss blows up first"),
        pytest.param({"at_output": lambda _: 10.0}, ["exploding-gradient"], id="the gradient at the output stays"),
        pytest.param({"at_output": lambda step: 0.1 * 0.8**step}, ["exploding-gradient"], id="as of probabilities"),
        pytest.param({}, ["exploding-gradient"], id="nothing tells"),
    ],
)
def test_a_gradient_beyond_the_weights_is_told_unless_the_training_learns(
    sizes: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    assert kinds(tmp_path, gradient=lambda step: 1e5 * 0.9**step, **sizes) == expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        pytest.param(0.2 - STEPS / 10, [], id="it gets narrower"),
        pytest.param(0.2 - np.minimum(STEPS, 60 - STEPS) / 10, ["exploding-gradient"], id="it gets wider again"),
        pytest.param(5.0 - STEPS / 10, ["exploding-gradient"], id="it is not below zero"),
    ],
)
def test_a_gradient_that_grows_with_a_likelihood_of_numbers_is_not_told(
    loss: Sequence[float], expected: list[str], tmp_path: Path
) -> None:
    assert kinds(tmp_path, gradient=lambda step: 0.1 * 1.5**step, loss=loss) == expected


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        pytest.param(0.5, [], id="and the errors are learned"),
        pytest.param(20.0, ["exploding-gradient"], id="and the errors stay"),
    ],
)
def test_gradients_that_differ_from_pass_to_pass_are_told_unless_the_errors_are_learned(
    late: float, expected: list[str], tmp_path: Path
) -> None:
    """As where the network has other terms in each pass: errors are several times those at first, in between."""

    def at_output(step: int) -> float:
        return 10.0 * (1 + 3 * (step % 3)) if 0 < step < 20 else 10.0 if not step else late

    assert kinds(tmp_path, gradient=lambda step: at_output(step) ** 3, at_output=at_output) == expected


@pytest.mark.parametrize(
    ("every", "loss", "expected"),
    [
        pytest.param(4, FALLING, [], id="single ones to the end, and the loss falls"),
        pytest.param(1, FALLING, ["exploding-gradient"], id="all to the end"),
        pytest.param(4, FLAT, ["exploding-gradient"], id="single ones, and the loss stays"),
    ],
)
def test_single_large_gradients_of_a_training_that_learns_are_not_told(
    every: int, loss: Sequence[float], expected: list[str], tmp_path: Path
) -> None:
    def gradient(step: int) -> float:
        return 50.0 if step > 20 and step % every == 0 else 0.1

    assert kinds(tmp_path, gradient=gradient, loss=loss) == expected


def test_a_gradient_that_only_falls_has_not_grown(tmp_path: Path) -> None:
    assert kinds(tmp_path, gradient=lambda step: 200.0 if step < 2 else 0.5) == []


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param({"loss": FALLING}, [], id="the loss falls"),
        pytest.param({"loss": BLOWN_UP}, ["exploding-activation"], id="the loss blows up first"),
        pytest.param({}, ["exploding-activation"], id="nothing tells"),
    ],
)
def test_outputs_that_grow_to_the_scale_of_the_targets_are_not_told(
    sizes: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    assert kinds(tmp_path, output=lambda step: min(0.01 * 2.0**step, 200.0), **sizes) == expected


@pytest.mark.parametrize(
    ("loss", "late", "expected"),
    [
        pytest.param(FALLING, 1e-3, [], id="the loss falls"),
        pytest.param(BLOWN_UP, 1e-3, ["update-too-large"], id="the loss blows up first"),
        pytest.param((), 1e-3, ["update-too-large"], id="nothing tells"),
        pytest.param(FALLING, 0.2, ["update-too-large"], id="updates stay large"),
    ],
)
def test_a_first_update_may_replace_weights_that_begin_far_too_small(
    loss: Sequence[float], late: float, expected: list[str], tmp_path: Path
) -> None:
    assert kinds(tmp_path, ratio=lambda step: 16.0 if not step else late, loss=loss) == expected


def test_a_single_layer_may_go_far_from_where_it_began(tmp_path: Path) -> None:
    assert kinds(tmp_path, ratio=lambda step: 2.0 * 0.7**step, loss=FALLING.tolist()) == []


@pytest.mark.parametrize(("small", "expected"), [(0.01, []), (1.0, ["update-too-large"])])
def test_an_update_is_not_too_large_for_weights_that_have_become_small(
    small: float, expected: list[str], tmp_path: Path
) -> None:
    """As a single weight that changes its sign; two layers."""
    frames: list[dict[Any, Any]] = []
    for step in range(COUNT):
        is_small = step % 10 == 9
        frames.append({})
        for name in ("fc1", "fc2"):
            frames[-1] |= {
                (name, "param", "weight", "value"): [small if is_small else 1.0 + step / 1000],
                (name, "param", "weight", "grad"): [0.1 + step / 1000],
                (name, "param", "weight", "update_ratio"): [2.0 if is_small else 1e-3],
            }
    graph = chain(module("fc1", "Linear", weight(1, 1)), module("fc2", "Linear", weight(1, 1)))
    found = recorded(tmp_path, graph, frames).findings()
    assert [one.kind for one in found if one.kind == "update-too-large"] == expected


def test_a_gradient_that_is_small_once_by_chance_has_not_grown(tmp_path: Path) -> None:
    """As with batches of one sample, whose errors differ by any factor."""
    assert kinds(tmp_path, gradient=lambda step: 1e-3 if step == 2 else 3.0) == []


def test_a_loss_that_is_noisy_at_first_has_not_risen_where_its_noise_ends(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).standard_normal(COUNT)
    policy = np.where(STEPS < 20, -1.5 + 1.4 * noise, -0.02 + 0.01 * noise)
    assert kinds(tmp_path, loss=policy.tolist()) == []


class Adapted(nn.Module):
    """A frozen layer, and an update of rank 1 beside it that begins at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 64).requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(1, 8)), nn.Parameter(torch.zeros(64, 1))

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.layer(inputs) + inputs @ self.down.T @ self.up.T
        return result


class Biases(nn.Module):
    """Numbers for many users, which begin at zero, and of which a batch has a few."""

    def __init__(self) -> None:
        super().__init__()
        self.users = nn.Embedding(500, 1)
        nn.init.zeros_(self.users.weight)

    def forward(self, users: Tensor) -> Tensor:
        result: Tensor = self.users(users).squeeze(1)
        return result


def adapted() -> tuple[nn.Module, Iterator[tuple[Tensor, Tensor]]]:
    model = nn.Sequential(Adapted(), nn.ReLU(), nn.Linear(64, 4))
    return model, ((torch.randn(16, 8), 100 * torch.randn(16, 4)) for _ in iter(int, 1))


def biased() -> tuple[nn.Module, Iterator[tuple[Tensor, Tensor]]]:
    return Biases(), ((torch.randint(500, (8,)), torch.randn(8)) for _ in iter(int, 1))


class Decaying(nn.Module):
    """Rates of decay that begin alike in all channels, as Mamba's, and hardly move at first."""

    def __init__(self) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.arange(1.0, 5.0).log().repeat(16, 1))
        self.sizes = torch.tensor([1.0] * 2 + [1e-6] * 14)
        self.last = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        decays = (-self.rates.exp() * (x * self.sizes)[..., None].abs()).exp().sum(-1)
        result: Tensor = self.last(x + 0.01 * decays)
        return result


def test_rows_that_updates_move_by_less_than_their_sums_are_rounded_by_are_not_alike(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Decaying()
    found = trained(tmp_path, model, lambda model, _: model(torch.randn(16, 16)).square().mean(), steps=8, logs=False)
    assert len(model.rates.unique(dim=0)) > 8
    assert [one.kind for one in found if one.kind == "symmetric-units"] == []


@pytest.mark.slow
@pytest.mark.parametrize("make", [adapted, biased])
def test_rows_that_begin_at_zero_and_have_got_signs_or_nothing_yet_are_not_alike(
    make: Callable[[], tuple[nn.Module, Iterator[tuple[Tensor, Tensor]]]], tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model, batches = make()
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 1e-2)
    with watch(model, log_freq=1, backend="record", logdir=tmp_path, run="run", verbose=False):
        for _, (inputs, targets) in zip(range(8), batches, strict=False):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
    assert [one.kind for one in open_run(tmp_path / "run").model().findings() if one.kind == "symmetric-units"] == []
