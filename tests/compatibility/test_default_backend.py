"""What holds for a model that is compiled to code of its own, which rounds and draws otherwise than torch does."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.compatibility.cases.compiled import DEFAULT_BACKEND, NO_COMPILER
from tests.compatibility.walk import fingerprint
from tests.listening import Listening
from tests.tables import exhaustive, matrix, thinned
from torchgraph_explorer import watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group(DEFAULT_BACKEND["loads"]),  # its tests look at the same trainings
    pytest.mark.skipif(bool(NO_COMPILER), reason=NO_COMPILER),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own, when it imports the default backend
]

STEPS = 6
LOGGED = (0, 3)


class Rounding(nn.Module):
    """Much that is fused, and so rounded differently; with buffers, and with random numbers if `drops`."""

    def __init__(self, *, drops: bool) -> None:
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(16, 64), nn.BatchNorm1d(64), nn.Linear(64, 10)
        self.layer_norm, self.drop = nn.LayerNorm(64), nn.Dropout(0.3 if drops else 0.0)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer_norm(torch.tanh(self.norm(self.a(x))).exp())
        result: Tensor = self.b(self.drop(torch.softmax(x, -1) * x))
        return result


@dataclass(frozen=True)
class Moment:
    """What a step begins with, or ends with."""

    model: Any
    optimizer: Any
    random: Tensor


@dataclass(frozen=True)
class Step:
    before: Moment
    after: Moment
    loss: Tensor
    gradients: list[Tensor]

    def bytes(self) -> Any:
        return fingerprint([self.loss, self.gradients, self.after.model, self.after.random])


def train(drops: bool, *, backend: str = "inductor", each_from: list[Step] | None = None, **options: Any) -> list[Step]:
    """Trains it, watched if there are options; each step from where one of `each_from` began, if these are given."""
    torch.compiler.reset()
    torch.manual_seed(0)
    model = Rounding(drops=drops)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    called: Any = torch.compile(model, backend=backend)
    watcher = watch(called, backend=Listening(), verbose=False, **options) if options else None

    def moment() -> Moment:
        return Moment(*copy.deepcopy((model.state_dict(), optimizer.state_dict())), torch.get_rng_state())

    steps = []
    for number in range(STEPS):
        if each_from is not None:
            begin = copy.deepcopy(each_from[number].before)
            model.load_state_dict(begin.model)
            optimizer.load_state_dict(begin.optimizer)
            torch.set_rng_state(begin.random)
        before = moment()
        loss = nn.functional.cross_entropy(called(torch.randn(16, 16)), torch.arange(16) % 10)
        optimizer.zero_grad()
        loss.backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        optimizer.step()
        steps.append(Step(before, moment(), loss.detach(), gradients))
    if watcher is not None:
        watcher.close()
    return steps


def some(step: int) -> bool:
    return step in LOGGED


def none(_step: int) -> bool:
    return False


@cache
def unwatched(*, drops: bool, backend: str = "inductor") -> list[Step]:
    """The oracle. That it is the same twice shows where a watched training is equal to it."""
    return train(drops, backend=backend)


@cache
def watched(compiled: str, *, drops: bool) -> list[Step]:
    """Each step begins where the unwatched one does, and some are logged."""
    return train(drops, each_from=unwatched(drops=drops), log_freq=some, compiled=compiled)


@pytest.mark.parametrize(
    ("compiled", "drops"),
    [
        pytest.param("eager", True, id="eager-with dropout"),
        pytest.param("inline", False, id="inline-without random numbers"),
        exhaustive(pytest.param("eager", False, id="eager-without random numbers")),
        exhaustive(pytest.param("inline", True, id="inline-with dropout")),
    ],
)
def test_a_step_that_is_not_logged_runs_the_code_of_the_unwatched_training(compiled: str, drops: bool) -> None:
    plain, steps = unwatched(drops=drops), watched(compiled, drops=drops)
    others = [number for number in range(STEPS) if number not in LOGGED]
    assert [steps[number].bytes() for number in others] == [plain[number].bytes() for number in others]


@pytest.mark.parametrize("compiled", thinned(["eager", "inline"], 0))
def test_a_training_of_which_no_step_is_logged_is_the_unwatched_one(compiled: str) -> None:
    steps = train(True, log_freq=none, compiled=compiled)
    assert [step.bytes() for step in steps] == [step.bytes() for step in unwatched(drops=True)]


@pytest.mark.parametrize("compiled", thinned(["eager", "inline"], 1))
def test_a_step_that_is_logged_rounds_differently(compiled: str) -> None:
    plain, steps = unwatched(drops=False), watched(compiled, drops=False)
    assert steps[0].bytes() != plain[0].bytes(), "the exception that the documentation makes is none any more"
    for number in LOGGED:
        for one, other in zip(steps[number].gradients, plain[number].gradients, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_step_that_is_logged_draws_other_random_numbers() -> None:
    steps = watched("eager", drops=True)
    assert not torch.equal(steps[0].after.random, unwatched(drops=True)[0].after.random)


@pytest.mark.parametrize(("backend", "compiled"), matrix(["eager", "aot_eager"], ["eager", "inline"]))
def test_a_backend_that_computes_as_torch_does_is_undisturbed_in_every_step(backend: str, compiled: str) -> None:
    steps = train(True, backend=backend, log_freq=some, compiled=compiled)
    assert [step.bytes() for step in steps] == [step.bytes() for step in unwatched(drops=True, backend=backend)]
