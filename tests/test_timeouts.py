"""What may hang is done in a thread of its own, and waited for as long as is said."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path
from types import FrameType

import pytest
import torch
from torch import nn

from tests import warm
from tests.listening import Listening
from tests.processes import wait_for
from tests.shared import FORKED
from tests.tables import every
from torchgraph_explorer import watch
from torchgraph_explorer.timeouts import NoAnswerError, NoThreadError, in_time


def test_what_is_given_or_raised_in_time_is_the_callers() -> None:
    assert in_time(lambda: threading.current_thread() is threading.main_thread(), seconds=10) is False
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 / 0, seconds=10)


@pytest.mark.parametrize("fails", [False, True], ids=["", "and cannot be put away"])
def test_what_comes_too_late_is_put_away_and_says_nothing(fails: bool, capsys: pytest.CaptureFixture[str]) -> None:
    let_go, late = threading.Event(), list[int]()

    def act() -> int:
        let_go.wait(10)
        return 3

    def put_away(result: int) -> None:
        late.append(result)
        if fails:
            raise ValueError

    with pytest.raises(NoAnswerError, match=r"no answer within 0\.05 s"):
        in_time(act, seconds=0.05, too_late=put_away)
    let_go.set()
    assert wait_for(lambda: late == [3])
    assert capsys.readouterr().err == ""


def test_a_fault_that_comes_too_late_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    let_go, ended = threading.Event(), threading.Event()

    def act() -> None:
        let_go.wait(10)
        try:
            raise OSError("gone")
        finally:
            ended.set()

    with pytest.raises(NoAnswerError):
        in_time(act, seconds=0.05)
    let_go.set()
    assert ended.wait(10)
    assert capsys.readouterr().err == ""


def test_where_no_thread_can_be_had_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done = list[int]()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(NoThreadError, match="can't start new thread"):
        in_time(lambda: done.append(1), seconds=1)
    assert done == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer that interrupts")
@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
@pytest.mark.parametrize("seed", every(4, range(4)))
def test_a_signal_whose_handler_closes_the_watcher_may_come_at_any_moment(seed: int) -> None:
    """As a scheduler's SIGTERM does. Nothing that the two threads share is locked for the one that holds it."""
    model, choices = nn.Linear(3, 2), random.Random(seed)

    def close(_signal: int, _frame: FrameType | None) -> None:
        watcher.close()

    before = signal.signal(signal.SIGALRM, close)
    try:
        for _ in range(25):
            heard = Listening()
            watcher = watch(model, log_freq=1, backend=heard, verbose=False)
            signal.setitimer(signal.ITIMER_REAL, choices.uniform(1e-4, 0.02))
            end = time.monotonic() + 10
            while not watcher.finished:
                model(torch.randn(4, 3)).sum().backward()
                assert time.monotonic() < end
            watcher.close()
            assert wait_for(lambda heard=heard: heard.closed)  # type: ignore[misc]
            steps = [frame.step for frame in heard.frames]
            assert steps == list(range(len(steps)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    model(torch.randn(4, 3))  # the last close may have come when torch had already listed the hooks that it calls
    assert not model._forward_pre_hooks


PROFILED = """
import cProfile, signal, sys
import torch
from torchgraph_explorer import watch

class Interrupted(torch.nn.Linear):
    def extra_repr(self):
        signal.raise_signal(signal.SIGTERM)
        return super().extra_repr()

def close(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    watcher.close()

signal.signal(signal.SIGTERM, close)
model = Interrupted(3, 2)
watcher = watch(model, log_freq=1, backend="record", logdir=sys.argv[1], verbose=False)
with cProfile.Profile():
    for _ in range(20):
        model(torch.randn(4, 3)).sum().backward()
watcher.close()
print(watcher.finished)
"""


@pytest.mark.slow
@FORKED
def test_a_handler_that_closes_the_watcher_within_a_hook_of_a_profiled_training_ends(tmp_path: Path) -> None:
    done = warm.run("-c", PROFILED, str(tmp_path), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"]
