"""`watcher.log` and `watcher.note`: at which step, which values, and what they never do to the training."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from torchgraph_explorer import OptionError, TorchgraphWarning, Watcher, open_run, watch
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Logged, NotFinite, Record
from torchgraph_explorer.training import scalar_log
from torchgraph_explorer.training.bad_values import BadValues
from torchgraph_explorer.training.scalar_log import ScalarLog


class Loop:
    """A training loop that logs the number of the update at one place of it."""

    def __init__(self, folder: Path, *, log_freq: int = 3, model: nn.Module | None = None) -> None:
        self.model = nn.Linear(2, 2) if model is None else model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.watcher = watch(self.model, log_freq=log_freq, backend="record", logdir=folder, run="r", verbose=False)
        self._folder = folder

    def update(self, place: str = "", number: int = 0, *, forward: Callable[[], Tensor] | None = None) -> None:
        loss = forward() if forward is not None else self.model(torch.ones(1, 2)).sum()
        self._log(place, "after the forward pass", number)
        loss.backward()
        self._log(place, "before the update", number)
        self.optimizer.step()
        self._log(place, "after the update", number)
        self.optimizer.zero_grad()
        self._log(place, "after zero_grad", number)

    def _log(self, place: str, here: str, number: int) -> None:
        if place == here:
            self.watcher.log({"number": number})

    def read(self) -> ModelRecord:
        self.watcher.close()
        return open_run(self._folder / "r").model()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path)
    yield made
    made.watcher.close()


PLACES = ("after the forward pass", "before the update", "after the update", "after zero_grad")


@pytest.mark.parametrize("place", PLACES)
def test_what_is_logged_anywhere_in_the_loop_belongs_to_the_update_of_its_pass(place: str, loop: Loop) -> None:
    for number in range(7):
        loop.update(place, number)
    found = loop.read().scalar("number")
    assert (found.steps.tolist(), found.values.tolist()) == ([*range(7)], [*range(7)])


@pytest.mark.parametrize("place", PLACES)
def test_the_step_is_right_where_the_loop_enters_the_model_elsewhere(place: str, tmp_path: Path) -> None:
    loop = Loop(tmp_path, model=nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    inner = loop.model[1]  # type: ignore[index]
    for number in range(7):
        loop.update(place, number, forward=lambda: inner(torch.ones(1, 2)).sum())
    found = loop.read().scalar("number")
    assert (found.steps.tolist(), found.values.tolist()) == ([*range(7)], [*range(7)])


def test_micro_batches_log_to_their_common_update(loop: Loop) -> None:
    for number in range(6):
        loop.model(torch.ones(1, 2)).sum().backward()
        loop.watcher.log({"number": number})
        if number % 2:
            loop.optimizer.step()
    found = loop.read().scalar("number")
    assert (found.steps.tolist(), found.values.tolist()) == ([0, 1, 2], [1, 3, 5])


def test_what_is_logged_before_the_first_pass_belongs_to_the_first_step(loop: Loop) -> None:
    loop.watcher.log({"rate": 0.1})
    loop.watcher.note("a new start")
    loop.watcher.step = 40
    loop.update()
    model = loop.read()
    assert model.scalar("rate").steps.tolist() == [40]
    assert [(note.step, note.text) for note in model.step_notes] == [(40, "a new start")]


@pytest.mark.parametrize("loads", ["before the first pass", "after the first pass"])
def test_a_resumed_training_logs_on_where_it_was(loads: str, tmp_path: Path) -> None:
    state: dict[str, Any] = {}
    for session in range(2):
        model = nn.Linear(2, 2)
        optimizer = torch.optim.Adam(model.parameters())
        with watch(model, log_freq=3, backend="record", logdir=tmp_path, run="r", verbose=False) as watcher:
            watcher.log({"session": session})
            for update in range(5):
                if state and loads == "before the first pass":
                    optimizer.load_state_dict(state)
                loss = model(torch.ones(1, 2)).sum()
                watcher.log({"number": 5 * session + update})
                if state and loads == "after the first pass":
                    optimizer.load_state_dict(state)
                loss.backward()
                optimizer.step()
                state = {} if session else state
        state = optimizer.state_dict()
    read = open_run(tmp_path / "r").model()
    assert read.scalar("number").values.tolist() == [*range(10)]
    assert read.scalar("session").steps.tolist() == [0, 5]


def test_what_is_logged_where_no_pass_comes_is_at_the_step_that_was_set(loop: Loop) -> None:
    loop.watcher.step = 40
    loop.watcher.log({"accuracy": 0.5})
    with pytest.warns(TorchgraphWarning, match="no step was recorded"):
        model = loop.read()
    assert model.scalar("accuracy").steps.tolist() == [40]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(2.5, 2.5, id="float"),
        pytest.param(3, 3.0, id="int"),
        pytest.param(True, 1.0, id="bool"),
        pytest.param(math.nan, math.nan, id="nan"),
        pytest.param(-math.inf, -math.inf, id="infinity"),
        pytest.param(1 / 3, 1 / 3, id="all digits of a float64"),
        pytest.param(np.float32(0.5), 0.5, id="numpy scalar"),
        pytest.param(np.int64(7), 7.0, id="numpy integer"),
        pytest.param(np.array([4.0]), 4.0, id="array with one element"),
        pytest.param(torch.tensor(1.5), 1.5, id="tensor"),
        pytest.param(torch.tensor([[1.5]]), 1.5, id="tensor with dimensions"),
        pytest.param(torch.tensor(1.5, requires_grad=True) * 2, 3.0, id="tensor with a gradient"),
        pytest.param(torch.tensor(3, dtype=torch.int16), 3.0, id="integer tensor"),
        pytest.param(torch.tensor(1.5, dtype=torch.bfloat16), 1.5, id="bfloat16"),
        pytest.param(nn.Parameter(torch.tensor(2.0)), 2.0, id="parameter"),
    ],
)
def test_a_scalar_is_recorded_as_it_was(value: object, expected: float, loop: Loop) -> None:
    loop.update()
    loop.watcher.log({"it": value})
    np.testing.assert_array_equal(loop.read().scalar("it").values, [expected])


@pytest.mark.parametrize(
    ("scalars", "message"),
    [
        pytest.param({"loss": "0.5"}, r"'loss' is '0.5', which is not a scalar\. Pass a real number", id="text"),
        pytest.param({"loss": None}, "'loss' is None", id="none"),
        pytest.param({"loss": 1j}, "'loss' is 1j", id="complex"),
        pytest.param({"loss": {"a": 1}}, "'loss' is {'a': 1}", id="nested"),
        pytest.param({"loss": torch.ones(3)}, r"a tensor of shape \(3,\) and torch.float32", id="a vector"),
        pytest.param({"loss": torch.ones(0)}, r"a tensor of shape \(0,\)", id="nothing"),
        pytest.param({"loss": np.ones(3)}, "'loss' is array", id="an array"),
        pytest.param({"loss": 10**400}, "'loss' is 1000", id="too large"),
        pytest.param({3: 1.0}, "3 is not a name for a scalar", id="name"),
        pytest.param({"": 1.0}, "'' is not a name for a scalar", id="empty name"),
        pytest.param(0.5, r"was given float\. Pass a dict", id="no dict"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_of_the_call_is_kept(scalars: object, message: str, loop: Loop) -> None:
    loop.update()
    both = {"fine": 1.0, **scalars} if isinstance(scalars, dict) else scalars
    with pytest.raises(OptionError, match=message):
        loop.watcher.log(both)  # type: ignore[arg-type]
    assert not loop.read().scalars()


def test_each_label_has_its_own_values_and_the_label_of_the_step_gives_none(loop: Loop) -> None:
    loop.update()
    loop.watcher.label("warm-up")
    for number, label in enumerate((None, "train", "eval", "eval")):
        loop.watcher.log({"loss": number}, label=label)
    loop.watcher.log({"acc": torch.tensor(0.5)}, "eval")
    model = loop.read()
    labels = (None, "train", "eval", "warm-up")
    found = {label: {name: one.values.tolist() for name, one in model.scalars(label).items()} for label in labels}
    assert found == {None: {"loss": [0]}, "train": {"loss": [1]}, "eval": {"loss": [3], "acc": [0.5]}, "warm-up": {}}
    assert (model.scalar("loss", "eval").label, model.scalar_labels) == ("eval", ("train", "eval"))


@pytest.mark.parametrize("label", ["", 3, "x" * 10_000, b"eval"], ids=["empty", "number", "long", "bytes"])
def test_what_is_no_label_is_refused_and_nothing_of_the_call_is_kept(label: object, loop: Loop) -> None:
    loop.update()
    with pytest.raises(OptionError, match=r"watcher\.log\(…, label=.* is not a label\. Pass a short text .*, or None"):
        loop.watcher.log({"loss": 1.0}, label=label)  # type: ignore[arg-type]
    model = loop.read()
    assert (model.logged.every, model.scalar_labels) == ((), ())


def test_nan_of_one_label_is_told_from_that_of_another() -> None:
    bad = BadValues()
    for step, label in ((3, None), (4, "eval")):
        bad.look(step, {"loss": math.nan}, label)
        bad.look(step + 10, {"loss": math.nan}, label)
        assert bad.take() == NotFinite(step, "scalar loss" if label is None else f"scalar loss ({label})")


def test_a_note_is_a_sentence(loop: Loop) -> None:
    with pytest.raises(OptionError, match=r"note\(3\) is not a note"):
        loop.watcher.note(3)  # type: ignore[arg-type]


def test_a_tensor_may_be_written_in_place_after_it_was_logged(loop: Loop) -> None:
    loop.update()
    total = torch.tensor(1.0)
    loop.watcher.log({"total": total})
    total += 5
    assert loop.read().scalar("total").values.tolist() == [1.0]


def test_of_several_values_at_a_step_the_last_one_counts(loop: Loop) -> None:
    loop.update()
    loop.watcher.log({"it": 1})
    loop.watcher.log({"it": 2})
    assert loop.read().scalar("it").values.tolist() == [2.0]


def test_nothing_is_logged_after_close_and_where_all_is_off(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    loop.watcher.close()
    loop.watcher.log({"it": "nonsense"})
    loop.watcher.note("late")
    monkeypatch.setenv("TORCHGRAPH", "off")
    off = watch(nn.Linear(2, 2), logdir=tmp_path / "off")
    off.log({"it": 1})
    off.note("never")
    assert not (tmp_path / "off").exists()


def test_compiled_code_that_logs_is_neither_broken_nor_refused(loop: Loop) -> None:
    @torch.compile(fullgraph=True, backend="eager")
    def compiled(x: Tensor) -> Tensor:
        loop.watcher.log({"it": x})
        return x + 1

    assert compiled(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_a_value_within_vmap_is_left_out_and_said(loop: Loop) -> None:
    def summed(x: Tensor) -> Tensor:
        loop.watcher.log({"it": x.sum()})
        return x.sum()

    loop.update()
    with pytest.warns(TorchgraphWarning, match="the scalar 'it' is not recorded"):
        torch.func.vmap(summed)(torch.ones(2, 3))


def test_a_mode_of_the_user_does_not_see_that_a_tensor_is_read(loop: Loop) -> None:
    seen: list[str] = []

    class Counting(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    loop.update()
    value = torch.tensor(2.0)
    with Counting():
        loop.watcher.log({"it": value})
    assert (seen, loop.read().scalar("it").values.tolist()) == ([], [2.0])


class Event:
    """An event of a GPU, as far as `scalar_log` knows one."""

    has_come = False

    def query(self) -> bool:
        return self.has_come

    def synchronize(self) -> None:
        self.has_come = True


def test_what_is_on_its_way_from_a_gpu_is_waited_for_at_the_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    event, log = Event(), ScalarLog()
    log.first_step = 0
    monkeypatch.setattr(scalar_log, "_arrival", lambda _device: event)

    def begin_copy(_name: str, value: object, copies: set[torch.device]) -> object:
        copies.add(torch.device("cuda:0"))
        return value

    monkeypatch.setattr(scalar_log, "_number", begin_copy)
    log.add(3, 5.0, {"loss": torch.tensor(2.0)})
    log.add(4, 6.0, {"rate": 0.5})
    assert log.take() is None
    block = log.take(ends_at=5)
    assert block is not None
    assert (block.names, block.steps.tolist(), block.values.tolist()) == (("loss", "rate"), [3, 4], [2.0, 0.5])


def test_a_gpu_is_only_asked_where_that_ends_no_capture_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The training's thread may capture one while the writer's thread looks."""
    is_relaxed, asked = False, list[bool]()

    @contextmanager
    def relaxed() -> Iterator[None]:
        nonlocal is_relaxed
        is_relaxed = True
        yield
        is_relaxed = False

    class Asked(Event):
        def query(self) -> bool:
            asked.append(is_relaxed)
            return True

        def synchronize(self) -> None:
            asked.append(is_relaxed)

    monkeypatch.setattr(scalar_log, "relaxed", relaxed, raising=False)
    log = ScalarLog()
    log.first_step = 0
    log._entries.append(scalar_log._Entry(0, 5.0, None, [("loss", 1.0)], (Asked(),)))  # type: ignore[arg-type]
    assert log.take() is not None
    assert asked == [True, True]


class Stuck:
    """A sink that waits until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.blocks: list[Logged] = []

    def write(self, record: Record) -> None:
        self.go.wait(60)
        if isinstance(record, Logged):
            self.blocks.append(record)

    def close(self) -> None:
        pass


def log_many(watcher: Watcher, count: int) -> None:
    for number in range(count):
        watcher.log({"it": number})


def test_memory_is_bounded_while_the_writer_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalar_log, "MOST_WAITING", 100)
    monkeypatch.setattr("torchgraph_explorer.timeouts.SECONDS", 0.01)
    sink, model = Stuck(), nn.Linear(2, 2)
    with pytest.warns(TorchgraphWarning, match="has not answered"):
        watcher = watch(model, backend=sink, verbose=False)
    with pytest.warns(TorchgraphWarning, match="some logged scalars are not recorded"):
        log_many(watcher, 1000)
    sink.go.set()
    watcher.close()
    [block] = sink.blocks
    assert block.values.tolist() == [*map(float, range(100))]


def test_a_value_can_be_read_while_training_goes_on(loop: Loop, tmp_path: Path) -> None:
    loop.update()
    loop.watcher.log({"it": 5})
    run = open_run(tmp_path / "r")
    for _ in range(600):
        if run.refresh() and run.model().scalars():
            break
        threading.Event().wait(0.02)
    assert run.model().scalar("it").values.tolist() == [5.0]
