"""Faults of everyday scripts are told, and what comes close to them is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.records import chain, module, recorded, weight
from tests.findings.trainings import trained
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import TrainingFacts

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "expected"), [pytest.param(1.0, False, id="clipped"), pytest.param(None, True, id="not clipped")]
)
def test_peaks_of_the_gradient_that_are_clipped_are_not_told(
    limit: float | None, *, expected: bool, tmp_path: Path
) -> None:
    norms = [1.0 if step % 3 else 5000.0 for step in range(60)]
    facts = [
        # At every fifth step, the norms were not known.
        TrainingFacts(gradient_norm=norm, clipped_norm=min(norm, limit or norm)) if step % 5 else TrainingFacts()
        for step, norm in enumerate(norms)
    ]
    norms[0] = 1.0
    frames = [
        {("fc", "param", "weight", "value"): [1.0 + step / 100, 2.0], ("fc", "param", "weight", "grad"): [norm, 0.0]}
        for step, norm in enumerate(norms)
    ]
    model = recorded(tmp_path, chain(module("fc", "Linear", weight(2, 2))), frames, training=facts)
    assert ("exploding-gradient" in kinds(model.findings())) == expected
