"""Where steps begin in a run that holds earlier ones, and what is said of how they join."""

from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from torchgraph_explorer import open_run, timeouts, watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.record.earlier import Earlier, look_back
from torchgraph_explorer.record.session_notes import mixed_sessions
from torchgraph_explorer.schema import Finished
from torchgraph_explorer.sinks import Resumed, SinkContext
from torchgraph_explorer.training import first_step
from torchgraph_explorer.training.first_step import Start, begin_in
from torchgraph_explorer.training.watcher import Watcher


def train(logdir: Path, steps: int, *, first: int | None = None, name: str = "net", log_freq: int = 1) -> Watcher:
    """A session of the run `exp1`: so many steps, from `first` on if that is given."""
    model = nn.Linear(3, 2)
    with watch(
        model, backend="record", logdir=logdir, run="exp1", name=name, log_freq=log_freq, verbose=False
    ) as watcher:
        if first is not None:
            watcher.step = first
        for _ in range(steps):
            model(torch.randn(4, 3)).sum().backward()
    return watcher


def notes(watcher: Watcher) -> list[str]:
    """What the run says of `net`: of how its sessions join, and at their ends."""
    assert watcher.run_dir is not None
    model = open_run(watcher.run_dir).model("net")
    return [*model.notes, *(model.finished.notes if model.finished else ())]


def test_a_run_that_is_used_again_says_loudly_that_its_steps_are_mixed(tmp_path: Path) -> None:
    train(tmp_path, 6)
    with pytest.warns(TorchgraphWarning, match=r"Step 0 is recorded again.*steps up to 5.*watcher\.step = 6"):
        again = train(tmp_path, 4)
    mixed, warned = notes(again)
    assert mixed.startswith("Two sessions are mixed: 2 of 6 recorded steps, from 4 to 5, are of an earlier session")
    assert "Step 0 is recorded again" in warned


@pytest.mark.parametrize(
    ("first", "name"),
    [
        pytest.param(6, "net", id="goes on"),
        pytest.param(3, "net", id="taken back"),
        pytest.param(None, "other", id="another model"),
    ],
)
def test_whoever_says_how_steps_join_is_not_warned(tmp_path: Path, first: int | None, name: str) -> None:
    train(tmp_path, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = train(tmp_path, 4, first=first, name=name)
    assert notes(again) == []


def test_a_session_that_was_recorded_over_in_full_is_mixed_with_nothing(tmp_path: Path) -> None:
    train(tmp_path, 3)
    with pytest.warns(TorchgraphWarning, match="recorded again"):
        again = train(tmp_path, 5)
    assert [note for note in notes(again) if note.startswith("Two sessions are mixed")] == []


@pytest.mark.parametrize(
    ("order", "told"),
    [
        pytest.param([0, 0, 1, 1], (), id="one after the other"),
        pytest.param([1, 1, 0, 0], "2 of 4 recorded steps, from 20 to 30, are", id="begun again"),
        pytest.param([0, 2, 1, 2], "Step 20 is", id="in the middle"),
    ],
)
def test_steps_are_mixed_where_an_older_one_follows_a_newer(order: list[int], told: str | tuple[()]) -> None:
    found = mixed_sessions(np.array([0, 10, 20, 30]), np.array(order))
    assert found == () if told == () else str(told) in found[0]


def test_it_is_known_how_many_steps_were_counted_and_not_only_logged(tmp_path: Path) -> None:
    watcher = train(tmp_path, 12, log_freq=5)
    assert watcher.run_dir is not None
    assert list(look_back(watcher.run_dir, "net"))[-1] == Earlier(steps=12, reached=11)
    finished = open_run(watcher.run_dir).model().finished
    assert isinstance(finished, Finished)
    assert finished.steps == 12


@pytest.mark.slow
def test_the_latest_session_says_where_to_go_on(tmp_path: Path) -> None:
    train(tmp_path, 9)
    watcher = train(tmp_path, 2, first=4)
    train(tmp_path, 20, name="other")
    assert watcher.run_dir is not None
    assert list(look_back(watcher.run_dir, "net"))[-1] == Earlier(steps=6, reached=9)


def test_a_session_that_was_killed_goes_on_after_its_last_step(tmp_path: Path) -> None:
    watcher = train(tmp_path, 5)
    [segment] = Path(str(watcher.run_dir)).rglob("*.tgraph")
    segment.write_bytes(segment.read_bytes()[:-40])  # into its end
    assert list(look_back(str(watcher.run_dir), "net"))[-1].steps == 5


def context(logdir: Path) -> SinkContext:
    return SinkContext(str(logdir / "exp1"), str(logdir), "exp1", "net")


@pytest.mark.parametrize(
    ("resumed", "first", "told", "note"),
    [
        pytest.param(Resumed("W&B", 6), 6, "go on at 6, where its record ends", "", id="both know"),
        pytest.param(Resumed("W&B", None), 6, "go on at 6, where its record ends", "", id="the record knows"),
        pytest.param(Resumed("W&B", 4), 6, "go on at 6", "", id="the service is behind"),
        pytest.param(
            Resumed("W&B", 9), 9, "the count in W&B ends", "Steps 6 to 8 were recorded elsewhere", id="elsewhere"
        ),
        pytest.param(None, 0, "", "", id="not resumed"),
    ],
)
def test_a_resumed_run_goes_on_after_what_is_known_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumed: Resumed | None, first: int, told: str, note: str
) -> None:
    train(tmp_path, 6)
    monkeypatch.setattr(first_step, "resumed_run", lambda *_: resumed)
    begin = begin_in(context(tmp_path), (), None, is_named=True, seconds=timeouts.SECONDS)
    assert (begin.step, begin.recorded) == (first, 6)
    assert told in begin.message
    assert bool(begin.message) == bool(told)
    assert note in " ".join(begin.notes)
    assert bool(begin.notes) == bool(note)


@pytest.mark.parametrize(("is_certain", "said"), [(True, "begin at 0, since no earlier one is known"), (False, "")])
def test_a_run_of_which_nothing_is_known_begins_at_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_certain: bool, said: str
) -> None:
    monkeypatch.setattr(first_step, "resumed_run", lambda *_: Resumed("W&B", None, is_certain))
    begin = begin_in(context(tmp_path), (), None, is_named=True, seconds=timeouts.SECONDS)
    assert begin.step == 0
    assert said in begin.message
    assert bool(begin.message) == bool(said)


def test_a_store_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(timeouts, "SECONDS", 0.2)
    monkeypatch.setattr(first_step, "look_back", lambda *_: iter([Earlier(3, 3)] if hangs.wait(30) else []))
    began = time.monotonic()
    begin = begin_in(context(tmp_path), (), None, is_named=True, seconds=timeouts.SECONDS)
    hangs.set()
    assert time.monotonic() - began < 20
    assert begin == Start(
        notes=("Not all earlier steps of this run could be looked for (there was no answer within 0.2 s).",)
    )


def test_a_service_that_raises_costs_nothing_but_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: object) -> Resumed:
        raise ConnectionError("gone")

    monkeypatch.setattr(first_step, "resumed_run", raising)
    watcher = train(tmp_path, 2)
    assert notes(watcher) == ["Not all earlier steps of this run could be looked for (ConnectionError: gone)."]
