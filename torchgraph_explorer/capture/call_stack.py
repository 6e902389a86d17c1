"""Finds out from the Python frames whether a forward pass is still being executed."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from torchgraph_explorer.capture.native_calls import BUILT
from torchgraph_explorer.interrupts import Restoring
from torchgraph_explorer.native import library_for_python


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
    if thread == threading.get_ident():
        return is_caller(frame, sys._getframe())
    return _is_running_elsewhere(frame, thread)


def _is_running_elsewhere(frame: Any, thread: int) -> bool:
    """The same for another thread, which may go on at each instruction of ours, but not within C.

    Where one of its frames ends while it is held here, what `torch.compile` has made of it may have another object in
    place of its caller (seen with torch 2.13 and Python 3.11). Up to Python 3.11 a garbage collection meanwhile can
    wait for ever for a lock that `sys._current_frames` holds (https://github.com/python/cpython/issues/106883), so
    there is none.
    """
    in_c = _is_running_in_c()
    with Restoring(gc.enable if gc.isenabled() else gc.disable):
        gc.disable()
        if in_c is not None:
            return in_c(sys._current_frames, thread, frame, "f_back")
        return is_caller(frame, sys._current_frames().get(thread))


@cache
def _is_running_in_c() -> Callable[[Callable[[], dict[int, Any]], int, Any, str], bool] | None:
    library = library_for_python(BUILT)
    if library is None:
        return None
    function = library.torchgraph_is_running
    function.argtypes, function.restype = (ctypes.py_object,) * 4, ctypes.py_object
    found: Callable[[Callable[[], dict[int, Any]], int, Any, str], bool] = function
    return found
