"""Losses of one sample, halves of recurrences, and parts that are no longer trained are told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained

pytestmark = pytest.mark.slow

SAMPLES = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :4]).argmax(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Sequence(nn.Module):
    """A sequence is fed as one sample, and its last place is asked for."""

    def __init__(self, mixes: nn.Module) -> None:
        super().__init__()
        self.first, self.mixes, self.last = nn.Linear(8, 8), mixes, nn.Linear(8, 4)

    def forward(self, places: Tensor) -> Tensor:
        result = self.mixes(self.first(places))
        out: Tensor = self.last(result[0] if isinstance(result, tuple) else result)
        return out


class Means(nn.Module):
    """Each place gets the mean of all up to it."""

    def forward(self, places: Tensor) -> Tensor:
        return places.cumsum(0) / torch.arange(1, len(places) + 1)[:, None]


def perceptron(*between: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 24), *between, nn.Tanh(), nn.Linear(24, 4))


def of_first(losses: Tensor) -> Tensor:
    return losses[0]


@pytest.mark.parametrize(
    ("model", "reduce", "expected"),
    [
        pytest.param(perceptron, of_first, True, id="first"),
        pytest.param(lambda: perceptron(nn.BatchNorm1d(24)), lambda losses: losses[-1], True, id="last, normalised"),
        pytest.param(perceptron, lambda losses: losses[:2].mean(), False, id="two"),
        pytest.param(perceptron, torch.mean, False, id="mean"),
        pytest.param(lambda: Sequence(nn.GRU(8, 8)), lambda losses: losses[-1], False, id="last place of a recurrence"),
        pytest.param(lambda: Sequence(Means()), lambda losses: losses[-1], False, id="last place of means"),
    ],
)
def test_a_loss_of_one_sample_of_each_batch_is_told_as_that(
    model: Callable[[], nn.Module], reduce: Callable[[Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    def step(network: nn.Module, _: int) -> Tensor:
        at = torch.randint(len(SAMPLES), (32,))
        return reduce(F.cross_entropy(network(SAMPLES[at]), CLASSES[at], reduction="none"))

    found = {one.kind: one.text for one in trained(tmp_path, model(), step, steps=12)}
    assert ("samples-left-out" in found) == expected
    assert "one-class-batches" not in found
    assert not expected or "only one of the 32 samples of a batch has a gradient" in found["samples-left-out"]
