"""`log=["cost"]`: how long each call takes, and the bytes of its outputs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.listening import Listening
from tests.processes import wait_for
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.capture.call_costs import CallCosts, bytes_of
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.comparison.matching import match_series
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import STATISTICS, TensorInfo

PAUSE = 0.02
MEAN = STATISTICS.index("mean")


class Slow(nn.Module):
    """It takes `PAUSE` at least."""

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(PAUSE)
        return x + 1.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slow, self.fast = Slow(), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fast(self.slow(self.slow(x)))


def recorded(folder: Path, *log: str, steps: int = 3) -> Model:
    model = Net()
    with watch(model, list(log), log_freq=1, backend="record", logdir=folder, run="run", verbose=False):
        for _ in range(steps):
            model(torch.randn(5, 4)).sum().backward()
    return open_run(folder / "run").model()


def test_the_costs_of_a_step_after_which_nothing_comes_are_recorded_with_it() -> None:
    model, heard = Net(), Listening()
    with watch(model, ["io", "cost"], log_freq=1, backend=heard, verbose=False):
        for _ in range(2):
            model(torch.randn(5, 4)).sum().backward()
        assert wait_for(lambda: len(heard.frames) == 2)
    assert ("", 0, "output", "output", "time") in heard.recorded()


def test_a_call_takes_its_own_time_and_that_of_the_calls_within_it(tmp_path: Path) -> None:
    model = recorded(tmp_path, "io", "cost")
    seconds = {(one.module, one.call): model.history(one) for one in model.find(kind="time")}
    assert set(seconds) == {("", 0), ("slow", 0), ("slow", 1), ("fast", 0)}
    assert all(found.steps.tolist() == [1, 2] for found in seconds.values())  # the first step is traced
    whole, first, second, fast = (
        seconds[place].statistics[:, MEAN] for place in (("", 0), ("slow", 0), ("slow", 1), ("fast", 0))
    )
    assert (first >= PAUSE).all()
    assert (whole >= first + second + fast).all()
    assert (fast > 0).all()


def test_memory_is_the_bytes_of_the_outputs(tmp_path: Path) -> None:
    model = recorded(tmp_path, "cost")
    found = {(one.module, one.call): model.history(one).statistics[-1, MEAN] for one in model.find(kind="memory")}
    assert found == {("", 0): 40.0, ("slow", 0): 80.0, ("slow", 1): 80.0, ("fast", 0): 40.0}


def test_it_is_recorded_only_where_it_is_asked_for(tmp_path: Path) -> None:
    assert not recorded(tmp_path, "io", "io_grad").find(kind="time")


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        pytest.param([("float32", (3, 4)), ("int64", (2,))], 64, id="several"),
        pytest.param([("bfloat16", ())], 2, id="a scalar"),
        pytest.param([("float32", (3, None))], 12, id="ragged"),
        pytest.param([("float7", (3,))], 0, id="a type that is not known"),
        pytest.param([("float32", (3, 0))], 0, id="empty"),
        pytest.param([], 0, id="none"),
    ],
)
def test_bytes_follow_from_type_and_shape(tensors: list[tuple[str, tuple[int | None, ...]]], expected: int) -> None:
    infos = tuple(TensorInfo("output", shape, dtype, requires_grad=False) for dtype, shape in tensors)
    assert bytes_of(infos) == expected


def test_what_calls_cost_is_no_change_and_no_difference_between_runs(tmp_path: Path) -> None:
    model = recorded(tmp_path, "io", "cost", steps=12)
    assert {one.series.kind for one in model.changes(11).ranked} == {"value"}
    modules = {one.module: one.module for one in model.series}
    matched = match_series(model.series, model.series, modules)
    assert {model.series[at].kind for at in matched.a.tolist()} == {"value"}
    assert not len(matched.only_a) + len(matched.only_b)


def test_an_interrupt_as_the_recording_of_a_call_ends_reaches_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, resume = Net(), CallCosts.resume

    def interrupted(costs: CallCosts, inside: list[OpenCall]) -> None:
        resume(costs, inside)
        if len(inside) > 1:
            raise KeyboardInterrupt

    with watch(model, ["io", "io_grad", "cost"], log_freq=1, backend="record", logdir=tmp_path, verbose=False):
        for _ in range(2):
            model(torch.randn(5, 4)).sum().backward()
        monkeypatch.setattr(CallCosts, "resume", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model(torch.randn(5, 4))
