"""Finds out from the Python frames whether a forward pass is still being executed."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

from torchgraph_explorer.interrupts import Restoring


def users_frame() -> Any:
    """The innermost Python frame outside of this folder: that of torch, which calls our hook.

    To be called by a function of this folder.
    """
    frame: Any = sys._getframe(2)
    while frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return frame


def is_caller(outer: Any, frame: Any) -> bool:
    """Whether `frame` is being executed within `outer`, or is it."""
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is not None


def is_running(frame: Any, thread: int) -> bool:
    """Whether `frame` is being executed in the thread with identifier `thread`."""
    return is_caller(frame, sys._getframe() if thread == threading.get_ident() else _innermost_frame(thread))


def _innermost_frame(thread: int) -> Any:
    """The innermost frame of another thread; None if that has ended.

    Up to Python 3.11 a garbage collection within the call can wait for ever for a lock that the call itself holds
    (https://github.com/python/cpython/issues/106883), so there is none meanwhile.
    """
    with Restoring(gc.enable if gc.isenabled() else gc.disable):
        gc.disable()
        return sys._current_frames().get(thread)
