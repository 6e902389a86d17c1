"""Whether a forward pass is still being executed is known without waiting for anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

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
@pytest.mark.timeout(60)
def test_to_ask_what_runs_ends_while_garbage_is_collected() -> None:
    command = [sys.executable, "-c", ASKED_WHILE_COLLECTING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.strip() == "answered", done.stderr
