"""Puts right what an exception leaves behind that may come anywhere in our code: `KeyboardInterrupt`, above all.

Such an exception has nothing to do with what we are doing, and may be raised between any two instructions of ours, also
between those that give something back. So what is changed for a moment is noted here before, with how it is changed
back, and each function of ours that the user's code or torch calls puts it right when such an exception flies through
it. That costs nothing as long as none does.
"""

from __future__ import annotations

import sys
import threading
from _thread import interrupt_main
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import CFUNCTYPE, c_int, c_void_p, pythonapi
from functools import wraps
from types import CodeType, FrameType
from typing import Any, Protocol, TypeVar, cast
from weakref import WeakSet

Function = TypeVar("Function", bound="Callable[..., Any]")


class Changed(Protocol):
    """Something that is not ours, and is changed for a moment."""

    def restore(self) -> object:
        """Change it back. May be called again, and before anything was changed."""


class Interruptible(Protocol):
    """Somebody whose work may be interrupted."""

    def interrupted(self, at_work: Sequence[object]) -> None:
        """An interrupt came in this thread, in the midst of what the objects `at_work` were doing."""


class _Here(threading.local):
    """What this thread has changed, the latest last."""

    def __init__(self) -> None:
        self.changed: list[Changed] = []


class Restoring:
    """A context that calls `restore` at its end, however it ends."""

    __slots__ = ("_depth", "restore")

    def __init__(self, restore: Callable[[], object]) -> None:
        """`restore` may be called twice, and before anything was changed."""
        self.restore = restore

    def __enter__(self) -> None:
        self._depth = len(here.changed)
        here.changed.append(self)

    def __exit__(self, *exception: object) -> None:
        self.restore()
        del here.changed[self._depth :]


class _Waiting:
    """What is to be done in the main thread, soon.

    Attributes:
        acts: Each returns whether it was done.
        tries: How often it was tried since it was asked for.
    """

    def __init__(self) -> None:
        self.acts: list[Callable[[], bool]] = []
        self.tries = 0


class _Process:
    """What of this process has to be put right after an interrupt. It lasts as long as the process.

    Attributes:
        locks: Those that no interrupt may leave held.
        interruptible: The objects that are told of an interrupt.
        entries: The code of the functions that the user's code or torch calls.
        waiting: What the main thread still has to do.
    """

    def __init__(self) -> None:
        self.locks: WeakSet[Any] = WeakSet()
        self.interruptible: WeakSet[Any] = WeakSet()
        self.entries: set[CodeType] = set()
        self.waiting = _Waiting()


here = _Here()
_process = _Process()


def lock() -> threading.RLock:
    """A lock that no interrupt leaves held."""
    made = threading.RLock()
    _process.locks.add(made)
    return made


def tell(one: Interruptible) -> None:
    """Tell `one` of each interrupt, as long as it lives."""
    _process.interruptible.add(one)


def entry(function: Function) -> Function:
    """Mark a function that the user's code or torch calls, and that calls `put_right` should it be interrupted."""
    _process.entries.add(function.__code__)
    return function


def guarded(function: Function) -> Function:
    """`function` as an `entry` that puts everything right itself."""

    @entry
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            raise
        except BaseException:
            put_right()
            raise

    return cast("Function", call)


def put_right() -> None:
    """Put everything right that this thread has changed. To be called in an `entry`, by which an exception flies.

    Nothing is done in one that was called within another, which will do it.
    """
    if _within_entries(sys._getframe(1).f_back):
        return
    while here.changed:
        with suppress(Exception):
            here.changed[-1].restore()
        del here.changed[-1]
    at_work = _at_work()
    for one in tuple(_process.interruptible):
        with suppress(Exception):
            one.interrupted(at_work)
    for each in tuple(_process.locks):
        while each._is_owned():
            each.release()
    ask()  # at the end: it is tried all the time from here on


def _at_work() -> list[object]:
    """Of which objects the methods are that the exception which is being handled flew through."""
    found, error = [], sys.exc_info()[1]
    traceback = error.__traceback__ if error is not None else None
    while traceback is not None:
        found.append(traceback.tb_frame.f_locals.get("self"))
        traceback = traceback.tb_next
    return found


def _within_entries(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _process.entries:
            return True
        frame = frame.f_back
    return False


MOST_TRIES = 10_000
"""Some ten milliseconds' worth. The user may have stopped the interrupt on its way, and goes on where it came."""


def soon(act: Callable[[], bool]) -> None:
    """Call `act` in the main thread between its instructions, from `ask` on, again and again until it returns True."""
    if act not in _process.waiting.acts:
        _process.waiting.acts.append(act)


def ask() -> None:
    """Begin, or begin again after too many tries. For any thread."""
    if _process.waiting.acts:
        _process.waiting.tries = 0
        pythonapi.Py_AddPendingCall(_run_waiting, None)


def _try_all(_: object) -> int:
    try:
        for act in tuple(_process.waiting.acts):
            if _is_done(act):
                _process.waiting.acts.remove(act)
    except KeyboardInterrupt:  # which would be lost here
        interrupt_main()
    _process.waiting.tries += 1
    if _process.waiting.acts and _process.waiting.tries < MOST_TRIES:
        pythonapi.Py_AddPendingCall(_run_waiting, None)
    return 0


_run_waiting = CFUNCTYPE(c_int, c_void_p)(_try_all)  # as C calls it; it has to be kept


def _is_done(act: Callable[[], bool]) -> bool:
    try:
        return act()
    except Exception:  # for want of anybody to tell: it is not to be called for ever
        return True
