"""Samples in order, weights of two optimizers, detached states and positions of samples are told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.findings.trainings import trained
from torchgraph_explorer import open_run, watch

pytestmark = pytest.mark.slow

SAMPLES = torch.randn(1200, 8, generator=torch.Generator().manual_seed(1))
CLASSES = (2 * SAMPLES[:, :5]).argmax(1)
ORDER = CLASSES.argsort()


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def network(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, outputs))


def of_class(_: int) -> Tensor:
    return ORDER[:64]


def sorted_ones(number: int) -> Tensor:
    """A fifth of the data set further at each step, a class or nearly so."""
    return ORDER[(240 * number + torch.arange(64)) % len(ORDER)]


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param(sorted_ones, True, id="sorted"),
        pytest.param(lambda _: torch.randint(len(SAMPLES), (64,)), False, id="shuffled"),
        pytest.param(of_class, False, id="one class for long"),
    ],
)
def test_first_batches_in_the_order_of_their_labels_are_told(
    batch: Callable[[int], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        at = batch(number)
        return F.cross_entropy(model(SAMPLES[at]), CLASSES[at])

    found = trained(tmp_path, network(5), step, steps=6)
    assert ("one-class-batches" in {one.kind for one in found}) == expected


def test_real_and_generated_samples_in_turn_are_not_in_order(tmp_path: Path) -> None:
    def step(model: nn.Module, number: int) -> Tensor:
        samples = SAMPLES[torch.randint(len(SAMPLES), (64,))] + number % 2
        return F.cross_entropy(model(samples), torch.full((64,), number % 2))

    assert "one-class-batches" not in {one.kind for one in trained(tmp_path, network(2), step, steps=6)}


class Wrapping(torch.optim.SGD):
    """Steps an optimizer of torch that it shares its parameters with."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, 0.1)
        self.inner = inner

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.inner.step(closure)


def of_all(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [torch.optim.SGD(model.parameters(), 0.1), torch.optim.Adam(model.parameters(), 1e-3)]


def of_parts(model: nn.Sequential) -> list[torch.optim.Optimizer]:
    return [torch.optim.SGD(model[0].parameters(), 0.1), torch.optim.SGD(model[2].parameters(), 0.1)]


def wrapped(model: nn.Module) -> list[torch.optim.Optimizer]:
    return [Wrapping(torch.optim.SGD(model.parameters(), 0.1))]


@pytest.mark.parametrize(
    ("make", "in_turns", "expected"),
    [
        pytest.param(of_all, False, True, id="all in both"),
        pytest.param(of_parts, False, False, id="parts"),
        pytest.param(of_all, True, False, id="in turns"),
        pytest.param(wrapped, False, False, id="one that wraps another"),
    ],
)
def test_weights_of_two_optimizers_are_told(
    make: Callable[[nn.Module], list[torch.optim.Optimizer]], *, in_turns: bool, expected: bool, tmp_path: Path
) -> None:
    model = network(5)
    optimizers = make(model)
    with watch(model, log_freq=1, backend="record", logdir=str(tmp_path), run="run", verbose=False):
        for number in range(12):
            at = torch.randint(len(SAMPLES), (32,))
            model.zero_grad()
            F.cross_entropy(model(SAMPLES[at]), CLASSES[at]).backward()
            for one in optimizers[number % 2 :][:1] if in_turns else optimizers:
                one.step()
    kinds = {one.kind for one in open_run(str(tmp_path / "run")).model().findings()}
    assert ("updated-twice" in kinds) == expected


class Stepwise(nn.Module):
    """A cell that is called for each place, and whose state is detached after every so many."""

    def __init__(self, cell: Callable[[int, int], nn.Module], every: int, *, looks: bool = False) -> None:
        super().__init__()
        self.cell, self.head, self.every, self.looks = cell(1, 12), nn.Linear(12, 1), every, looks

    def forward(self, numbers: Tensor) -> Tensor:
        zeros = numbers.new_zeros(len(numbers), 12)
        state: Any = (zeros, zeros) if isinstance(self.cell, nn.LSTMCell) else zeros
        for place in range(numbers.shape[1]):
            if place % self.every == 0:
                state = tuple(one.detach() for one in state) if isinstance(state, tuple) else state.detach()
            state = self.cell(numbers[:, place], zeros if self.looks else state)
        result: Tensor = self.head(state[0] if isinstance(state, tuple) else state)
        return result


class OwnCell(nn.Module):
    """As an `RNNCell`."""

    def __init__(self, inputs: int, states: int) -> None:
        super().__init__()
        self.fed, self.fed_back = nn.Linear(inputs, states), nn.Linear(states, states)

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        return torch.tanh(self.fed(inputs) + self.fed_back(state))


class Rollout(nn.Module):
    """Predicts from its own predictions, which are detached: each step has a loss of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(12, 12), nn.Tanh())

    def forward(self, numbers: Tensor) -> Tensor:
        state, found = numbers.expand(-1, -1, 12)[:, 0], []
        for _ in range(numbers.shape[1]):
            found.append(self.cell(state))
            state = found[-1].detach()
        return torch.stack(found).sum(0)[:, :1]


class Chosen(Stepwise):
    """The cell gets what was chosen by its own output, as a policy does, and not that output."""

    def forward(self, numbers: Tensor) -> Tensor:
        state = numbers.new_zeros(len(numbers), 12)
        total: Any = 0
        for place in range(numbers.shape[1]):
            given = self.cell(numbers[:, place], state)
            state, total = F.one_hot(given.argmax(1), 12).float(), total + self.head(given)
        result: Tensor = total
        return result


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(partial(Stepwise, OwnCell, 1), True, id="each time, of a cell of one's own"),
        pytest.param(partial(Stepwise, OwnCell, 4), False, id="every fourth time, of a cell of one's own"),
        pytest.param(partial(Stepwise, OwnCell, 99), False, id="never, of a cell of one's own"),
        pytest.param(partial(Chosen, OwnCell, 1), False, id="what is chosen"),
        pytest.param(Rollout, False, id="a rollout"),
        pytest.param(partial(Stepwise, nn.GRUCell, 1), True, id="each time"),
        pytest.param(partial(Stepwise, nn.LSTMCell, 1), True, id="each time, of an LSTM"),
        pytest.param(partial(Stepwise, nn.GRUCell, 4), False, id="every fourth time"),
        pytest.param(partial(Stepwise, nn.GRUCell, 99), False, id="never"),
        pytest.param(partial(Stepwise, nn.LSTMCell, 99), False, id="never, of an LSTM"),
        pytest.param(partial(Stepwise, nn.GRUCell, 99, looks=True), False, id="no state"),
    ],
)
def test_a_state_that_is_detached_each_time_is_told(
    model: Callable[[], nn.Module], *, expected: bool, tmp_path: Path
) -> None:
    def step(model: nn.Module, _: int) -> Tensor:
        numbers = torch.rand(16, 8, 1)
        return F.mse_loss(model(numbers), numbers.sum(1))

    found = trained(tmp_path, model(), step, steps=12)
    assert [one.module for one in found if one.kind == "state-detached"] == (["cell"] if expected else [])


class Placed(nn.Module):
    def __init__(self, numbers: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.words, self.places, self.numbers = nn.Embedding(9, 8), nn.Embedding(32, 8), numbers
        self.head = nn.Linear(8, 9)

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.head(self.words(tokens) + self.places(self.numbers(tokens)))
        return result


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param(lambda tokens: torch.arange(len(tokens))[:, None], True, id="numbers of the samples"),
        pytest.param(lambda tokens: torch.arange(tokens.shape[1]), False, id="places"),
        pytest.param(lambda tokens: torch.randint(12, (len(tokens), 1)), False, id="a number of each sample"),
    ],
)
def test_positions_in_columns_are_told_if_they_are_of_samples(
    numbers: Callable[[Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    assert ("positions-over-batch" in kinds_of(Placed(numbers), tmp_path)) == expected


class Attending(Placed):
    """Tokens `[length, samples]`."""

    def __init__(self, numbers: Callable[[Tensor], Tensor]) -> None:
        super().__init__(numbers)
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(self.numbers(tokens))
        result: Tensor = self.head(x + self.attention(x, x, x, need_weights=False)[0])
        return result


def test_positions_of_tokens_whose_first_dimension_is_the_length_are_not_told(tmp_path: Path) -> None:
    assert "positions-over-batch" not in kinds_of(
        Attending(lambda tokens: torch.arange(len(tokens))[:, None]), tmp_path
    )


class Broadcast(Placed):
    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.head(self.words(tokens) + self.places(self.numbers(tokens))[:, None])
        return result


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        pytest.param(lambda tokens: torch.arange(len(tokens)), True, id="numbers of the samples"),
        pytest.param(lambda tokens: torch.randint(12, (len(tokens),)), False, id="a class of each sample"),
    ],
)
def test_positions_in_rows_are_told_if_they_are_of_samples(
    numbers: Callable[[Tensor], Tensor], *, expected: bool, tmp_path: Path
) -> None:
    assert ("positions-over-batch" in kinds_of(Broadcast(numbers), tmp_path)) == expected


def kinds_of(model: nn.Module, folder: Path) -> set[str]:
    def step(model: nn.Module, _: int) -> Tensor:
        tokens = torch.randint(9, (12, 10))
        return F.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(1, 1).flatten())

    return {one.kind for one in trained(folder, model, step, steps=12)}
