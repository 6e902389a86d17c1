"""Walks every transition between the states of a logged step, by what a training does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from torchgraph_explorer import TorchgraphWarning, watch
from torchgraph_explorer.capture.gradient_hooks import GradientHooks
from torchgraph_explorer.capture.step_admission import StepAdmission
from torchgraph_explorer.capture.step_states import TRANSITIONS, Event, State, StepState
from torchgraph_explorer.training import idle_timer
from torchgraph_explorer.training.watcher import Watcher

STEPS_PAGE = Path(__file__).parents[2] / "docs" / "steps.md"

Transition = tuple[State, Event]


def nothing() -> None:
    """What happens in a model unless a training says otherwise."""


class Net(nn.Module):
    """Something may happen in its forward pass, and in its backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.forwards: Callable[[], object] = nothing
        self.backwards: Callable[[], object] = nothing

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        self.forwards()
        x.register_hook(lambda _: self.backwards() and None)
        result: Tensor = self.last(x)
        return result


@dataclass
class Training:
    """A watched model and its optimizer."""

    model: Net = field(default_factory=Net)
    heard: Listening = field(default_factory=Listening)

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.watcher: Watcher = watch(self.model, log_freq=1, backend=self.heard, verbose=False)

    def loss(self) -> Tensor:
        result: Tensor = self.model(torch.randn(2, 3)).sum()
        return result

    def step(self) -> None:
        self.loss().backward()
        self.optimizer.step()

    def close(self) -> None:
        self.watcher.close()


def one_pass(training: Training) -> None:
    training.step()


def micro_batches(training: Training) -> None:
    training.loss().backward()
    training.step()


def two_passes_then_backward(training: Training) -> None:
    (training.loss() + training.loss()).backward()
    training.optimizer.step()


def update_in_backward(training: Training) -> None:
    training.model.backwards = training.optimizer.step
    training.loss().backward()


def update_without_backward(training: Training) -> None:
    training.loss()
    training.optimizer.step()


def update_in_forward(training: Training) -> None:
    training.model.forwards = training.optimizer.step
    training.loss()


def mark_in_forward(training: Training) -> None:
    training.model.forwards = training.watcher.step_done
    training.loss()


def backward_that_raises(training: Training) -> None:
    def fail() -> None:
        training.model.backwards = nothing
        raise ZeroDivisionError

    training.model.backwards = fail
    with pytest.raises(ZeroDivisionError):
        training.loss().backward()
    training.step()


def backward_that_ends_after_another_forward(training: Training) -> None:
    loss, is_within_backward, is_forward_over = training.loss(), threading.Event(), threading.Event()

    def wait_for_forward() -> None:
        is_within_backward.set()
        is_forward_over.wait(30)

    training.model.backwards = wait_for_forward
    backward = threading.Thread(target=loss.backward)

    def begin_backward() -> None:
        backward.start()
        assert is_within_backward.wait(30)

    training.model.forwards = begin_backward
    training.loss()
    is_forward_over.set()
    backward.join()


def close_in_forward(training: Training) -> None:
    training.model.forwards = training.close
    training.loss()


def close_before_backward(training: Training) -> None:
    training.loss()


def close_in_backward(training: Training) -> None:
    training.model.backwards = training.close
    training.loss().backward()


def close_before_the_update(training: Training) -> None:
    training.loss().backward()


def in_compiled_code(training: Training, act: Callable[[], object]) -> None:
    """Compiled code calls the model, and before it `act`."""

    class Around(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.act = training.model, torch.compiler.disable(act)

        def forward(self, x: Tensor) -> Tensor:
            self.act()
            result: Tensor = self.inner(x)
            return result

    torch.compile(Around(), backend="eager")(torch.randn(2, 3))


def close_before_the_model_is_called(training: Training) -> None:
    in_compiled_code(training, training.close)


def update_before_the_model_is_called(training: Training) -> None:
    in_compiled_code(training, training.optimizer.step)


def compiled_code_that_raises_before_it_calls_the_model(training: Training) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_compiled_code(training, fail)


def broken(training: Training, *, at: tuple[type, str], then: Callable[[], object]) -> None:
    """Do `then`, while a function of ours raises."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a fault of ours")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*at, fail)
        with pytest.warns(TorchgraphWarning, match="a fault of ours"):
            then()


def fault_in_forward(training: Training) -> None:
    training.model.forwards = lambda: training.watcher._train.tracker._fail("", RuntimeError("a fault of ours"))
    with pytest.warns(TorchgraphWarning, match="a fault of ours"):
        training.loss()


def fault_before_backward(training: Training) -> None:
    training.loss()
    broken(training, at=(StepAdmission, "admits"), then=training.loss)


def fault_in_backward(training: Training) -> None:
    loss = training.loss()
    broken(training, at=(GradientHooks, "end_backward"), then=loss.backward)


def fault_before_the_update(training: Training) -> None:
    training.loss().backward()
    broken(training, at=(StepAdmission, "admits"), then=training.loss)


def fault_after_the_update(training: Training) -> None:
    training.step()
    broken(training, at=(StepAdmission, "admits"), then=training.loss)


FORWARD = [State.ARMED, State.FORWARD, State.FORWARD_OVER]
PASS = [*FORWARD, State.BACKWARD, State.BACKWARD_OVER]
UPDATE = [*PASS, State.UPDATED, State.DONE]

TRAININGS: dict[Callable[[Training], None], list[State]] = {
    one_pass: UPDATE,
    micro_batches: [*PASS, State.FORWARD, *UPDATE[2:]],
    two_passes_then_backward: [*FORWARD, State.FORWARD, *UPDATE[2:]],
    update_in_backward: [*FORWARD, State.BACKWARD, State.UPDATED, State.DONE],
    update_without_backward: [*FORWARD, State.UPDATED, State.DONE],
    update_in_forward: [*FORWARD, State.DONE],
    mark_in_forward: [State.ARMED, State.FORWARD, State.UPDATED, State.DONE],
    backward_that_raises: [*FORWARD, State.BACKWARD, State.FORWARD, *UPDATE[2:]],
    backward_that_ends_after_another_forward: [
        *FORWARD,
        State.FORWARD,
        State.FORWARD_OVER,
        State.BACKWARD_OVER,
        State.DONE,
    ],
    close_in_forward: [State.ARMED, State.FORWARD, State.DONE],
    close_before_backward: [*FORWARD, State.DONE],
    close_in_backward: [*FORWARD, State.BACKWARD, State.DONE],
    close_before_the_update: [*PASS, State.DONE],
    close_before_the_model_is_called: [State.ARMED, State.DONE],
    update_before_the_model_is_called: [State.ARMED, State.UPDATED, State.LOST],
    compiled_code_that_raises_before_it_calls_the_model: [State.ARMED, State.LOST],
    fault_in_forward: [State.ARMED, State.FORWARD, State.LOST],
    fault_before_backward: [*FORWARD, State.LOST],
    fault_in_backward: [*FORWARD, State.BACKWARD, State.LOST],
    fault_before_the_update: [*PASS, State.LOST],
    fault_after_the_update: [*PASS, State.UPDATED, State.LOST],
}
"""Trainings, and the states that their first step comes through."""


@dataclass
class Walked:
    """The states that each step came through, and by which events."""

    states: dict[StepState, list[State]] = field(default_factory=dict)
    transitions: set[Transition] = field(default_factory=set)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Walked:
    found, on = Walked(), StepState.on

    def spied(state: StepState, event: Event) -> None:
        before = state.now
        on(state, event)
        if state.now is not before:
            found.states.setdefault(state, [before]).append(state.now)
            found.transitions.add((before, event))

    monkeypatch.setattr(StepState, "on", spied)
    monkeypatch.setattr(idle_timer, "SECONDS", 60.0)
    return found


def walk(train: Callable[[Training], None]) -> None:
    training = Training()
    train(training)
    training.close()


@pytest.mark.parametrize("train", TRAININGS, ids=lambda each: each.__name__)
def test_a_step_comes_through_these_states(train: Callable[[Training], None], walked: Walked) -> None:
    walk(train)
    assert next(iter(walked.states.values())) == TRAININGS[train]


@pytest.mark.slow
def test_these_trainings_make_every_transition_there_is(walked: Walked) -> None:
    for train in TRAININGS:
        walk(train)
    assert walked.transitions == set(TRANSITIONS)


def test_no_event_brings_a_step_back_that_is_over() -> None:
    assert not [before for before, _ in TRANSITIONS if before in {State.DONE, State.LOST}]


def test_the_table_in_docs_is_that_of_the_code() -> None:
    assert table() in STEPS_PAGE.read_text()


def table() -> str:
    """The transitions, in Markdown."""
    lines = ["| | " + " | ".join(event.value for event in Event) + " |", "|---" * (len(Event) + 1) + "|"]
    for state in State:
        cells = (TRANSITIONS.get((state, event)) for event in Event)
        lines.append(f"| **{state.value}** | " + " | ".join(each.value if each else "" for each in cells) + " |")
    return "\n".join(lines)
