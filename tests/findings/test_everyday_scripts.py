"""Faults of everyday scripts are told, and what comes close to them is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained
from torchgraph_explorer.finding import Finding

SAMPLES = torch.randn(256, 20, 2, generator=torch.Generator().manual_seed(1))
NUMBERS = SAMPLES[:, -3:].sum((1, 2))[:, None]
BATCH = 32

Change = Callable[[Tensor], Tensor]


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def batch(number: int) -> Tensor:
    return (torch.arange(BATCH) + number * BATCH) % len(SAMPLES)


def kinds(found: Sequence[Finding]) -> set[str]:
    return {one.kind for one in found if one.severity != "info"}


class LSTM(nn.Module):
    """What many people call a model of theirs."""

    def __init__(self, layer: nn.Module, arrange: Change, last: Change) -> None:
        super().__init__()
        self.lstm, self.out, self.arrange, self.last = layer, nn.Linear(16, 1), arrange, last

    def forward(self, samples: Tensor) -> Tensor:
        states, _ = self.lstm(self.arrange(samples))
        result: Tensor = self.out(self.last(states))
        return result


class Derived(nn.LSTM):
    """A recurrent layer by inheritance."""


Derived.__name__ = "LSTM"


def first(states: Tensor) -> Tensor:
    return states[:, -1]


def second(states: Tensor) -> Tensor:
    return states[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "arrange", "last", "expected"),
    [
        pytest.param(lambda: nn.LSTM(2, 16, batch_first=True), Tensor.clone, first, set(), id="a model called LSTM"),
        pytest.param(lambda: nn.LSTM(2, 16), lambda x: x.transpose(0, 1), second, set(), id="places first"),
        pytest.param(lambda: nn.LSTM(2, 16), Tensor.clone, first, {"batch-as-sequence"}, id="samples for places"),
        pytest.param(lambda: Derived(2, 16), Tensor.clone, first, {"batch-as-sequence"}, id="in a derived layer"),
    ],
)
def test_the_order_of_what_a_recurrent_layer_is_given(  # a case
    layer: Callable[[], nn.Module], arrange: Change, last: Change, expected: set[str], tmp_path: Path
) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        return F.mse_loss(model(SAMPLES[batch(number)]), NUMBERS[batch(number)])

    found = trained(tmp_path, LSTM(layer(), arrange, last), step, steps=8)
    assert kinds(found) & {"batch-as-sequence", "view-for-transpose"} == expected
