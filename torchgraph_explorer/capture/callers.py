"""Tells whether a forward pass is still being executed, by the Python frames above us."""

from __future__ import annotations

import sys
from typing import Any


def users_frame() -> Any:
    """The innermost Python frame that is not this package's: that of torch, which calls our hook."""
    frame: Any = sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("torchgraph_explorer."):
        frame = frame.f_back
    return frame


def is_running(frame: Any, thread: int) -> bool:
    """Whether `frame` is being executed in the thread with identifier `thread`."""
    caller: Any = sys._current_frames().get(thread)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is not None
