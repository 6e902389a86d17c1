"""Losses without a lowest value, times that stay the same and outliers are told, and what looks like them is not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained

pytestmark = pytest.mark.slow

SAMPLES = torch.randn(256, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :3]).argmax(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def network(inputs: int = 8, outputs: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, outputs))


def penalised(model: nn.Module, _: int, *, factor: float) -> Tensor:
    loss = F.cross_entropy(model(SAMPLES), CLASSES)
    return loss + factor * torch.stack([one.square().sum() for one in model.parameters()]).sum()


def likelihood(model: nn.Module, _: int) -> Tensor:
    """Of numbers that are known exactly, so that their spread shrinks for ever."""
    mean, spread = model(SAMPLES)[:, :2].unbind(1)
    return 100 * (spread + 0.5 * (mean - SAMPLES[:, 0]).square() / torch.exp(2 * spread)).mean()


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        pytest.param(partial(penalised, factor=-1.0), True, id="a penalty that is subtracted"),
        pytest.param(partial(penalised, factor=0.01), False, id="a penalty"),
        pytest.param(likelihood, False, id="a likelihood"),
    ],
)
def test_a_loss_that_falls_for_ever_is_told(step: partial[Tensor], *, expected: bool, tmp_path: Path) -> None:
    kinds = [one.kind for one in trained(tmp_path, network(), step, steps=80, rate=0.02)]
    assert ("loss-unbounded" in kinds) == expected


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.times, self.body = nn.Embedding(10, 8), network(8, 8)

    def forward(self, noisy: Tensor, t: Tensor) -> Tensor:
        out: Tensor = self.body(noisy + self.times(t))
        return out


class Conditional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kinds, self.body = nn.Embedding(10, 8), network(8, 8)

    def forward(self, noisy: Tensor, token_type: Tensor) -> Tensor:
        out: Tensor = self.body(noisy + self.kinds(token_type))
        return out


def denoised(model: nn.Module, _: int, *, times: str) -> Tensor:
    at = torch.randint(len(SAMPLES), (32,))
    t = torch.zeros(32, dtype=torch.long) if times == "zero" else torch.randint(10, (32 if times == "drawn" else 1,))
    noise = torch.randn(32, 8)
    return F.mse_loss(model(SAMPLES[at] + noise * (t[:, None] + 1) / 10, t.expand(32)), noise)


@pytest.mark.parametrize(
    ("model", "times", "expected"),
    [
        pytest.param(Denoiser, "zero", True, id="always zero"),
        pytest.param(Denoiser, "drawn", False, id="drawn"),
        pytest.param(Denoiser, "one for a batch", False, id="one for a batch"),
        pytest.param(Conditional, "zero", False, id="one type of tokens"),
    ],
)
def test_a_time_that_stays_the_same_is_told(
    model: type[nn.Module], times: str, *, expected: bool, tmp_path: Path
) -> None:
    found = trained(tmp_path, model(), partial(denoised, times=times))
    assert [one.path for one in found if one.kind == "constant-input"] == (["input[1]"] if expected else [])


@pytest.mark.parametrize(
    ("change", "begins"),
    [
        pytest.param(0, "All elements of the model's input are 2, at all recorded steps:", id="the same"),
        pytest.param(
            1,
            "All elements of the model's input are equal to each other at each recorded step:",
            id="another one at each step",
        ),
    ],
)
def test_inputs_without_samples_are_told_as_they_are(change: int, begins: str, tmp_path: Path) -> None:
    def loss(model: nn.Module, number: int) -> Tensor:
        out: Tensor = model(torch.full((32, 8), 2.0 + change * number))
        return (out - torch.randn(32, 1)).square().mean()

    [one] = [one for one in trained(tmp_path, nn.Linear(8, 1), loss) if one.kind == "constant-input"]
    assert one.text.startswith(begins)


def with_outliers(model: nn.Module, number: int, *, largest: float, every: int) -> Tensor:
    at = torch.randint(len(SAMPLES), (32,))
    samples = SAMPLES[at].clone()
    if number % every == every - 1:
        samples[0, 0] = largest
    return F.cross_entropy(model(samples), CLASSES[at])


@pytest.mark.parametrize(
    ("body", "largest", "every", "expected"),
    [
        pytest.param(nn.ReLU, 1e5, 10, True, id="a sample in a thousand units"),
        pytest.param(nn.ReLU, 50.0, 10, False, id="a far sample"),
        pytest.param(nn.ReLU, 1e5, 1, False, id="at all steps"),
        pytest.param(nn.Tanh, 1e5, 10, False, id="a network that bounds it"),
    ],
)
def test_an_outlier_is_told(
    body: type[nn.Module], largest: float, every: int, *, expected: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Linear(8, 24), body(), nn.Linear(24, 3))
    found = trained(tmp_path, model, partial(with_outliers, largest=largest, every=every), rate=1e-4)
    assert [(one.kind, one.path) for one in found if one.kind == "input-outlier"] == (
        [("input-outlier", "input[0]")] if expected else []
    )
