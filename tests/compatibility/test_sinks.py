"""Sinks that fail or hang do not hold up training for longer than is stated, and the record says what it lacks."""

from __future__ import annotations

import re
import threading
import time
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from tests import warm
from tests.listening import Listening
from tests.processes import wait_for
from tests.record.examples import SESSION
from tests.shared import FORKED
from torchgraph_explorer import timeouts, watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.schema import Frame, Record
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.training import writer_thread


class Hanging(Listening):
    """Does not come back from its first frame until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def write(self, record: Record) -> None:
        super().write(record)
        if isinstance(record, Frame):
            self.let_go.wait()


def train(model: nn.Module, *, steps: int) -> None:
    for _ in range(steps):
        model(torch.randn(4, 3)).sum().backward()


@pytest.mark.slow
def test_a_sink_that_hangs_holds_training_up_once_and_for_a_stated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "MOST_SECONDS", 0.5)
    model, sink = nn.Linear(3, 2), Hanging()
    watcher = watch(model, backend=sink, log_freq=1, verbose=False)
    began = time.monotonic()
    with pytest.warns(TorchgraphWarning, match="Some steps are not recorded: writing is slower than the training"):
        train(model, steps=300)
    assert time.monotonic() - began < 30, "it was held up more than once"
    sink.let_go.set()
    watcher.close()
    assert any(re.search(r"steps \(3[2-5] to 29[89]\) were dropped", note) for note in sink.finished.notes), (
        sink.finished.notes
    )
    assert len(sink.frames) < 300


@pytest.mark.slow
def test_that_steps_are_dropped_is_said_once_although_a_sink_hangs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "MOST_SECONDS", 0.05)
    model, sink = nn.Linear(3, 2), Hanging()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        watcher = watch(model, backend=sink, log_freq=1, verbose=False)
        for _ in range(2):
            train(model, steps=2 * writer_thread.WAITING)
            sink.let_go.set()
            wait_for(lambda: watcher._train._writer._queue.qsize() == 0)
            sink.let_go.clear()
        sink.let_go.set()
        watcher.close()
    said = [str(one.message) for one in caught if issubclass(one.category, TorchgraphWarning)]
    assert [sentence[:27] for sentence in said] == ["Some steps are not recorded"]
    assert len(sink.frames) < 4 * writer_thread.WAITING - 2, "steps were dropped twice"


def test_a_step_that_is_dropped_gives_the_room_of_its_tensors_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_thread, "MOST_SECONDS", 0.01)
    monkeypatch.setattr(writer_thread, "WAITING", 0)
    writer, given_back = writer_thread.WriterThread(SESSION, [Listening()], now=time.time), list[Any]()
    step: Any = SimpleNamespace(step=3, kept=SimpleNamespace(done=given_back.append))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        writer.put(step)
        writer.end()
        writer.wait(time.monotonic() + 10)
    assert given_back == [None]


class Failing:
    """Fails when it is given a frame, or when it is closed."""

    def __init__(self, at: str) -> None:
        self.at, self.closed = at, 0

    def write(self, record: Record) -> None:
        if self.at == "a frame" and isinstance(record, Frame):
            raise OSError("no more")

    def close(self) -> None:
        self.closed += 1
        if self.at == "its end":
            raise OSError("no more")


@pytest.mark.parametrize("at", ["a frame", "its end"])
def test_a_sink_that_fails_is_closed_once(at: str) -> None:
    sink = Failing(at)
    with pytest.warns(TorchgraphWarning, match=r"Failing failed and gets no more records: .*no more"):
        train_watched(sink)
    assert sink.closed == 1


def train_watched(sink: Sink) -> None:
    model = nn.Linear(3, 2)
    with watch(model, backend=sink, log_freq=1, verbose=False):
        train(model, steps=2)


class Slow(Listening):
    """Takes longer for a frame than the training does for a step."""

    def write(self, record: Record) -> None:
        super().write(record)
        if isinstance(record, Frame):
            time.sleep(0.01)


@pytest.mark.slow
def test_a_sink_that_is_slower_than_the_training_is_waited_for_and_loses_nothing() -> None:
    model, sink = nn.Linear(3, 2), Slow()
    with watch(model, backend=sink, log_freq=1, verbose=False) as watcher:
        train(model, steps=3 * writer_thread.WAITING)
        assert watcher._train._writer._queue.qsize() <= writer_thread.WAITING
    assert [frame.step for frame in sink.frames] == list(range(3 * writer_thread.WAITING))
    assert not sink.finished.notes


@pytest.mark.slow
def test_closing_does_not_wait_for_ever_for_a_sink_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "SECONDS_TO_END", 0.5)
    model, sink = nn.Linear(3, 2), Hanging()
    watcher = watch(model, backend=sink, log_freq=1, verbose=False)
    train(model, steps=2)
    closing = threading.Thread(target=watcher.close, daemon=True)
    closing.start()
    closing.join(timeout=10)
    assert not closing.is_alive()
    sink.let_go.set()


@pytest.mark.slow
@FORKED
def test_a_layout_cannot_fail_or_hang_in_the_training_process() -> None:
    """It is made by the viewer, in a process of its own, when somebody looks."""
    script = (
        "import sys, torch; from torchgraph_explorer import watch; from tests.listening import Listening\n"
        "m = torch.nn.Linear(2, 2)\n"
        "with watch(m, backend=Listening(), log_freq=1, verbose=False): m(torch.ones(1, 2)).sum().backward()\n"
        "sys.exit(any(name.startswith(('torchgraph_explorer.layout', 'pygraphviz')) for name in sys.modules))"
    )
    assert warm.run("-c", script, frees_all=True).returncode == 0
