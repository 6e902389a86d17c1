"""What belongs to a logged step, and when it is handed over."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening, assert_row
from torchgraph_explorer import attach, watch
from torchgraph_explorer.capture import captured_step
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.training import idle_timer
from torchgraph_explorer.training.watcher import Watcher

Act = Callable[[], object]


def nothing() -> None:
    """What happens within a model unless a test says otherwise."""


class Eventful(nn.Module):
    """Two layers. Something happens between them in the forward pass, and there again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 1)
        self.forwards: Act = nothing
        self.backwards: Act = nothing

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        self.forwards()
        if x.requires_grad:
            x.register_hook(self._passes)
        result: Tensor = self.last(x)
        return result

    def _passes(self, _gradient: Tensor) -> None:
        self.backwards()

    def loss(self) -> Tensor:
        result: Tensor = self(torch.randn(2, 3)).sum()
        return result


def watched(model: nn.Module, **options: Any) -> tuple[Watcher, Listening]:
    heard = Listening()
    return watch(model, log_freq=1, backend=heard, sample_n=None, verbose=False, **options), heard


def come_to_rest(watcher: Watcher) -> None:
    """What the idle timer does a few times a second."""
    watcher._train.tracker.settle()


@pytest.fixture
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that has come to rest is handed over at once."""
    for name in ("SECONDS_IDLE", "SECONDS_FOR_FIRST_UPDATE", "SECONDS_FOR_UPDATE", "SECONDS_FOR_BACKWARD"):
        monkeypatch.setattr(captured_step, name, -1.0)
    monkeypatch.setattr(idle_timer, "SECONDS", 60.0)  # the tests call it themselves


FIRST_GRADIENT = ("first", 0, "output", "output", "grad_norm")
WEIGHT_GRADIENT = ("first", None, "param", "weight", "grad")


def test_whatever_is_measured_is_measured_under_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are not to be added by two threads at once, nor to a step that is being handed over."""
    measure, owned = Batch._measure, []

    def spied(batch: Batch, *arguments: Any) -> int:
        owned.append(watcher._train.tracker._lock._is_owned())  # type: ignore[attr-defined]
        return measure(batch, *arguments)

    monkeypatch.setattr(Batch, "_measure", spied)
    model = Eventful()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watcher, _ = watched(model, optimizer=optimizer)
    model.forwards = lambda: attach(torch.ones(2), model, "ones")
    model.loss().backward()
    optimizer.step()
    watcher.close()
    assert owned
    assert all(owned)


@pytest.mark.usefixtures("_no_patience")
def test_a_step_is_not_handed_over_within_its_backward_pass() -> None:
    model = Eventful()
    watcher, heard = watched(model)
    model.backwards = lambda: come_to_rest(watcher)
    model.loss().backward()
    come_to_rest(watcher)
    watcher.close()
    assert {FIRST_GRADIENT, WEIGHT_GRADIENT} <= heard.recorded()


@pytest.mark.usefixtures("_no_patience")
def test_a_backward_pass_within_another_one_does_not_end_the_step() -> None:
    model = Eventful()
    watcher, heard = watched(model)
    other = model.loss()

    def nested() -> None:
        model.backwards = nothing
        other.backward()
        come_to_rest(watcher)

    loss = model.loss()
    model.backwards = nested
    loss.backward()
    watcher.close()
    gradient = model.first.weight.grad
    assert gradient is not None
    assert_row(heard.row(WEIGHT_GRADIENT), gradient.numpy())


def test_a_backward_pass_may_begin_long_after_the_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_step, "SECONDS_IDLE", -1.0)
    monkeypatch.setattr(captured_step, "SECONDS_FOR_UPDATE", -1.0)
    model = Eventful()
    watcher, heard = watched(model)
    loss = model.loss()
    come_to_rest(watcher)
    loss.backward()
    watcher.close()
    assert FIRST_GRADIENT in heard.recorded()


def test_a_step_whose_outputs_are_gone_is_handed_over_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_step, "SECONDS_FOR_FIRST_UPDATE", -1.0)
    model = Eventful()
    watcher, _ = watched(model)
    model.loss()
    come_to_rest(watcher)
    assert watcher._train.saw_a_step
    watcher.close()


def test_the_first_update_may_come_long_after_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_step, "SECONDS_FOR_FIRST_UPDATE", -1.0)
    model = Eventful()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watcher, heard = watched(model)
    model.loss().backward()
    come_to_rest(watcher)
    optimizer.step()
    watcher.close()
    assert [frame.facts.end for frame in heard.frames if frame.facts is not None] == ["update"]


def test_a_step_waits_for_its_update_as_long_as_more_forward_passes_come() -> None:
    model = Eventful()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    heard = Listening()
    watcher = watch(model, log_freq=9, backend=heard, verbose=False, optimizer=optimizer)
    model.loss().backward()
    one = watcher._train.tracker._current.one
    assert one is not None
    one.state.since -= 2 * captured_step.SECONDS_FOR_UPDATE
    loss = model.loss()
    come_to_rest(watcher)
    loss.backward()
    optimizer.step()
    watcher.close()
    assert ("first", None, "param", "weight", "update") in heard.recorded()


def test_a_backward_pass_that_failed_does_not_keep_the_next_one_from_ending_the_step() -> None:
    model = Eventful()
    watcher, heard = watched(model, log=["params_grad"])

    def fail() -> None:
        model.backwards = nothing
        raise ZeroDivisionError

    loss = model.loss()
    model.backwards = fail
    with pytest.raises(ZeroDivisionError):
        loss.backward(retain_graph=True)
    loss.backward()
    expected = model.first.weight.grad
    assert expected is not None
    model.zero_grad()
    watcher.close()
    assert_row(heard.row(WEIGHT_GRADIENT), expected.numpy())


class Around(nn.Module):
    """A model that is compiled, and a part of it that is reached late."""

    def __init__(self, inner: nn.Module, late: Act) -> None:
        super().__init__()
        self.inner, self.late = inner, torch.compiler.disable(late)

    def forward(self, x: Tensor) -> Tensor:
        x = x * 2
        self.late()
        result: Tensor = self.inner(x)
        return result


@pytest.mark.slow
@pytest.mark.usefixtures("_no_patience")
def test_a_part_of_a_compiled_model_may_be_reached_late() -> None:
    part = nn.Linear(3, 3)
    watchers: list[Watcher] = []

    def late() -> None:
        for each in watchers:
            come_to_rest(each)

    whole = torch.compile(Around(part, late), backend="eager")
    whole(torch.randn(2, 3)).sum().backward()
    watcher, heard = watched(part)
    watchers.append(watcher)
    whole(torch.randn(2, 3)).sum().backward()
    watcher.close()
    assert ("", 0, "output", "output", "value") in heard.recorded()


class TwoWays(nn.Module):
    """Gives its input back in two ways, whose gradients come one after the other."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()


class Solver(nn.Module):
    """Runs a backward pass through a part of itself when gradient comes, as implicit layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.two, self.inner = TwoWays(), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        sine, cosine = self.two(x)
        start = torch.randn(2, 3, requires_grad=True)
        end = self.inner(start).tanh()
        sine.register_hook(lambda gradient: (torch.autograd.grad(end, start, gradient, retain_graph=True), None)[1])
        result: Tensor = sine * 2 + cosine * 3
        return result


def test_shares_of_a_gradient_add_up_though_another_backward_pass_ends_between_them() -> None:
    model = Solver()
    watcher, heard = watched(model)
    x = torch.randn(2, 3, requires_grad=True)
    model(x).sum().backward()
    watcher.close()
    assert x.grad is not None
    assert_row(heard.row(("two", 0, "input", "input[0]", "grad_norm")), x.grad.norm(dim=1).numpy())


def test_steps_that_run_in_the_threads_of_a_pool_are_let_go_of() -> None:
    pools = [ThreadPoolExecutor(1) for _ in range(2)]

    def trained_in_turns() -> weakref.ref[nn.Module]:
        model = Eventful()
        watcher, _ = watched(model)
        for number in range(6):
            pools[number % 2].submit(lambda: model.loss().backward()).result()
        watcher.close()
        return weakref.ref(model)

    left = trained_in_turns()
    gc.collect()
    assert left() is None  # while the threads are still there
    for pool in pools:
        pool.shutdown()


def test_a_tensor_is_attached_only_in_the_thread_of_its_step() -> None:
    model = Eventful()
    watcher, heard = watched(model)

    def attach_elsewhere() -> None:
        other = threading.Thread(target=attach, args=(torch.ones(2), model, "elsewhere"))
        other.start()
        other.join()
        attach(torch.ones(2), model, "here")

    model.forwards = attach_elsewhere
    model.loss().backward()
    watcher.close()
    assert {key[3] for key in heard.recorded() if key[2] == "attached"} == {"here"}


def test_a_name_that_is_no_text_is_made_one() -> None:
    model = Eventful()
    watcher, heard = watched(model)
    model.forwards = lambda: attach(torch.ones(2), model, 1)  # type: ignore[arg-type]
    model.loss().backward()
    watcher.close()
    assert {key[3] for key in heard.recorded() if key[2] == "attached"} == {"1"}


@pytest.mark.filterwarnings("error")
def test_closing_in_a_hook_of_the_models_that_runs_before_ours_is_closing() -> None:
    model = Eventful()
    closing: list[Watcher] = []

    def close(*_: object) -> None:
        for each in closing:
            each.close()

    model.register_forward_pre_hook(close)
    watcher, heard = watched(model)
    model.loss().backward()
    closing.append(watcher)
    model.loss().backward()
    assert heard.finished.notes == ()
    assert [frame.step for frame in heard.frames] == [0]


@pytest.mark.parametrize("kept", [0, 400], ids=["whole", "in part"])
def test_a_parameter_whose_memory_was_freed_costs_only_itself(kept: int) -> None:
    """As those of experts that are not called are, where what is not in use lies elsewhere."""
    model = Eventful()
    model.idle = nn.Linear(10, 10, bias=False)
    buffer = torch.randn(300)
    model.idle.weight.data = buffer[100:200].view(10, 10)
    buffer.untyped_storage().resize_(kept)
    watcher, heard = watched(model)
    model.loss().backward()
    watcher.close()
    assert heard.finished.notes == ()
    assert {key[0] for key in heard.recorded() if key[2] == "param"} == {"first", "last"}


def test_facts_are_recorded_although_the_backward_pass_frees_the_memory_of_parameters() -> None:
    """As that of fully sharded modules, whose parameters are gathered anew for the next pass."""
    model = Eventful()
    kept = {each: each.data for each in model.parameters()}
    for parameter in kept:
        freed = torch.empty_like(parameter)
        freed.untyped_storage().resize_(0)
        parameter.register_post_accumulate_grad_hook(lambda each, freed=freed: setattr(each, "data", freed))
    watcher, heard = watched(model)
    for _ in range(2):
        for parameter, values in kept.items():
            parameter.data = values
        model.loss().backward()
    watcher.close()
    assert heard.finished.notes == ()
    assert all(each.training is not None for each in heard.frames)


def test_a_gradient_whose_memory_was_freed_costs_only_itself() -> None:
    model = Eventful()
    optimizer = torch.optim.SGD([model.first.bias, *model.last.parameters()], 0.1)
    watcher, heard = watched(model, optimizer=optimizer)
    loss = model.loss()
    loss.backward()
    assert model.first.weight.grad is not None
    model.first.weight.grad.untyped_storage().resize_(0)
    optimizer.step()
    watcher.close()
    updated = {(key[0], key[3]) for key in heard.recorded() if key[4] == "optimizer_grad"}
    assert updated == {("first", "bias"), ("last", "weight"), ("last", "bias")}
    assert heard.finished.notes == ()
