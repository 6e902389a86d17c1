"""Restores what our code has changed when a `KeyboardInterrupt`, or another asynchronous exception, ends it.

Such an exception may be raised between any two instructions, also between those that restore something. So code that
changes something for a moment first notes how to change it back. Each function that the user's code or torch calls
restores what was noted when such an exception passes through it. Without an exception this costs nothing.
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
    """Something of the user's or of torch's that is changed for a moment."""

    def restore(self) -> object:
        """Change it back. May be called twice, and before anything was changed."""


class Interruptible(Protocol):
    """An object whose work may be interrupted."""

    def interrupted(self, at_work: Sequence[object]) -> None:
        """An interrupt came in this thread, within methods of the objects `at_work`."""


class _Here(threading.local):
    """What this thread has changed, the latest change last."""

    def __init__(self) -> None:
        self.changed: list[Changed] = []


class Deliberate(BaseException):
    """Carries an exception of the user's from a function that may end the training, out of our code.

    It passes what catches exceptions there, as an interrupt does, and `restore_all` raises the exception itself.
    """

    def __init__(self, fault: Exception) -> None:
        """`fault` is what the user's function raised."""
        super().__init__(fault)
        self.fault = fault


class Restoring:
    """A context that calls `restore` at its end, also if it is interrupted."""

    __slots__ = ("_depth", "restore")

    def __init__(self, restore: Callable[[], object]) -> None:
        """`restore` may be called twice, and before anything was changed."""
        self.restore = restore

    def __enter__(self) -> None:
        self._depth = len(this_thread.changed)
        this_thread.changed.append(self)

    def __exit__(self, *exception: object) -> None:
        self.restore()
        del this_thread.changed[self._depth :]


class _Waiting:
    """What is to be done in the main thread as soon as possible.

    Attributes:
        acts: Each returns whether it was done.
        tries: How often it was tried since it was scheduled.
    """

    def __init__(self) -> None:
        self.acts: list[Callable[[], bool]] = []
        self.tries = 0


class _Process:
    """What has to be restored after an interrupt. There is one, for as long as the process lasts.

    Attributes:
        locks: Locks that are released after an interrupt.
        interruptible: Objects that are notified of an interrupt.
        entries: The code of the functions that the user's code or torch calls.
        waiting: What the main thread still has to do.
    """

    def __init__(self) -> None:
        self.locks: WeakSet[Any] = WeakSet()
        self.interruptible: WeakSet[Any] = WeakSet()
        self.entries: set[CodeType] = set()
        self.waiting = _Waiting()


this_thread = _Here()
_process = _Process()


def lock() -> threading.RLock:
    """A lock that is released after an interrupt, whatever the interrupted code did."""
    made = threading.RLock()
    _process.locks.add(made)
    return made


def subscribe(one: Interruptible) -> None:
    """Notify `one` of each interrupt, as long as it lives."""
    _process.interruptible.add(one)


def entry(function: Function) -> Function:
    """Mark a function that the user's code or torch calls, and that calls `restore_all` if it is interrupted."""
    _process.entries.add(function.__code__)
    return function


def guarded(function: Function) -> Function:
    """`function` as an `entry` that calls `restore_all` itself."""

    @entry
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            raise
        except BaseException:
            restore_all()
            raise

    return cast("Function", call)


def restore_all() -> None:
    """Restore everything that this thread has changed. To be called in an `entry` that an exception passes through.

    Does nothing in an entry that was called within another one: the outer one restores.

    Raises:
        Exception: The one that a `Deliberate` carries.
    """
    if _within_entries(sys._getframe(1).f_back):
        return
    if isinstance(passing := sys.exc_info()[1], Deliberate):  # nothing of ours was interrupted
        raise passing.fault from None
    while this_thread.changed:
        with suppress(Exception):
            this_thread.changed[-1].restore()
        del this_thread.changed[-1]
    at_work = _interrupted_objects()
    for one in tuple(_process.interruptible):
        with suppress(Exception):
            one.interrupted(at_work)
    for each in tuple(_process.locks):
        while each._is_owned():
            each.release()
    schedule_calls()  # last: from here on, it is tried all the time


def _interrupted_objects() -> list[object]:
    """The objects whose methods the exception that is being handled passed through."""
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
"""About ten milliseconds. The user may have caught the interrupt where it was raised, and go on there."""


def call_in_main_thread(act: Callable[[], bool]) -> None:
    """After `schedule_calls`, call `act` between instructions of the main thread, until it returns True."""
    if act not in _process.waiting.acts:
        _process.waiting.acts.append(act)


def schedule_calls() -> None:
    """Begin to make those calls, or begin again after `MOST_TRIES`. For any thread."""
    if _process.waiting.acts:
        _process.waiting.tries = 0
        pythonapi.Py_AddPendingCall(_run_waiting, None)


def _try_all(_: object) -> int:
    try:
        for act in tuple(_process.waiting.acts):
            if _is_done(act):
                _process.waiting.acts.remove(act)
    except KeyboardInterrupt:  # it would be lost here
        interrupt_main()
    _process.waiting.tries += 1
    if _process.waiting.acts and _process.waiting.tries < MOST_TRIES:
        pythonapi.Py_AddPendingCall(_run_waiting, None)
    return 0


_run_waiting = CFUNCTYPE(c_int, c_void_p)(_try_all)  # the callback for C; it must not be freed


def _is_done(act: Callable[[], bool]) -> bool:
    try:
        return act()
    except Exception:  # nothing here could report it; it must not be called for ever
        return True
