"""Tells whether a forward pass is still being executed, by the Python frames above us."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any


def users_frame() -> Any:
    """The innermost Python frame that is not this package's: that of torch, which calls our hook."""
    frame: Any = sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("torchgraph_explorer."):
        frame = frame.f_back
    return frame


def is_running(frame: Any, thread: int) -> bool:
    """Whether `frame` is being executed in the thread with identifier `thread`."""
    caller: Any = sys._getframe() if thread == threading.get_ident() else _innermost_frame(thread)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is not None


def _innermost_frame(thread: int) -> Any:
    """The innermost frame of some other thread; None if it has ended.

    Up to Python 3.11 a garbage collection within the call can wait for ever for a lock that the call itself holds
    (https://github.com/python/cpython/issues/106883), so there is none meanwhile.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if collects:
            gc.enable()
