"""Torch's global hooks on optimizers are told of from any thread."""

from __future__ import annotations

import sys
import threading
from itertools import count
from types import FrameType
from typing import Any

from torchgraph_explorer.capture.optimizer_steps import OptimizerSteps


def is_met(steps: OptimizerSteps, instruction: int) -> bool:
    """Walk over the listeners; whether so many instructions later another thread has begun a walk, which ends after."""
    has_begun, may_end, left = threading.Event(), threading.Event(), instruction

    def stay(_listener: object) -> None:
        has_begun.set()
        assert may_end.wait(30)

    other = threading.Thread(target=steps._tell, args=(stay,))

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if frame.f_code is not OptimizerSteps._tell.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == -1:
                other.start()
                assert has_begun.wait(30)
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 traces instructions only if it knows of this by now
    sys.settrace(trace)
    try:
        steps._tell(lambda _listener: None)
    finally:
        sys.settrace(before)
    may_end.set()
    if left < 0:
        other.join()
    return left < 0


def test_a_walk_is_counted_wherever_another_thread_begins_one() -> None:
    steps, met = OptimizerSteps(), 0
    steps._listeners[object()] = None  # type: ignore[index]  # what it can do is not asked for
    for instruction in count():
        if not is_met(steps, instruction):
            break
        met += 1
        assert not steps._walks, f"at instruction {instruction}"
    assert met > 10
