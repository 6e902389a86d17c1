"""Whether a forward pass is still being executed is known without waiting for anybody."""

from __future__ import annotations

import gc
import queue
import sys
import threading
from types import FrameType

import pytest

from tests import warm
from tests.shared import FORKED
from torchgraph_explorer.capture import call_stack
from torchgraph_explorer.capture.call_stack import is_running

ASKED_WHILE_COLLECTING = """
import gc, sys, threading
from torchgraph_explorer.capture.call_stack import is_running

class Garbage:
    def __init__(self):
        self.me = self
        self.local = threading.local()  # to free it takes the lock that sys._current_frames holds

told = []

def ask(frame, thread):
    for later in range(50):
        gc.disable()
        for _ in range(50):
            Garbage()
        gc.set_threshold(gc.get_count()[0] + later)  # so that it is collected so many allocations later
        gc.enable()
        told.append(is_running(frame, thread))
    assert gc.isenabled()

def forward():
    ask(sys._getframe(), threading.get_ident())
    other = threading.Thread(target=ask, args=(sys._getframe(), threading.get_ident()))
    other.start()
    other.join()

forward()
assert told == [True] * 100, told
assert not is_running((lambda: sys._getframe())(), threading.get_ident())
print("answered")
"""


@pytest.mark.slow
@FORKED
def test_to_ask_what_runs_ends_while_garbage_is_collected() -> None:
    done = warm.run("-c", ASKED_WHILE_COLLECTING, timeout=30)
    assert done.stdout.strip() == "answered", done.stderr


@pytest.mark.parametrize("is_built", [True, False], ids=["in C", "in Python"])
def test_another_threads_call_is_known_to_run_or_to_be_over(is_built: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_built:
        monkeypatch.setattr(call_stack, "_is_running_in_c", lambda: None)
    elif call_stack._is_running_in_c() is None:
        pytest.skip("calls.c is not built for this system")
    frames, has_returned, may_end = queue.SimpleQueue[FrameType](), threading.Event(), threading.Event()

    def called() -> None:
        frames.put(sys._getframe())
        assert may_go_on.wait(30)

    def run() -> None:
        frames.put(sys._getframe())
        called()
        has_returned.set()
        assert may_end.wait(30)

    may_go_on = threading.Event()
    other = threading.Thread(target=run)
    other.start()
    outer, inner = frames.get(), frames.get()
    assert other.ident is not None
    assert (is_running(outer, other.ident), is_running(inner, other.ident)) == (True, True)
    may_go_on.set()
    assert has_returned.wait(30)
    assert (is_running(outer, other.ident), is_running(inner, other.ident)) == (True, False)
    assert not is_running(sys._getframe(), other.ident)
    may_end.set()
    other.join()
    assert not is_running(outer, other.ident)
    assert gc.isenabled()
