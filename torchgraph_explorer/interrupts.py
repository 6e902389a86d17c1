"""Restores what our code has changed when a `KeyboardInterrupt`, or another asynchronous exception, ends it.

Such an exception may be raised between any two instructions, also between those that restore something. So code that
changes something for a moment first notes how to change it back. Each function that the user's code or torch calls
restores what was noted when such an exception passes through it. Without an exception this costs nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import py_object, pythonapi
from functools import wraps
from time import thread_time
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

    Python calls `PyObject_IsTrue` with it between two instructions of the main thread, and so `__bool__`. That function
    returns an int, as such calls must, and hands on what is raised: an interrupt, or what a signal's handler raises.

    Attributes:
        acts: Each returns whether it was done.
        until: It is tried until the main thread has computed for so many seconds; None: until a while after the first
            time.
        is_tried: Whether it is being tried now.
    """

    def __init__(self) -> None:
        self.acts: list[Callable[[], bool]] = []
        self.until: float | None = None
        self.is_tried = False
        self._place, self._calls = (0, 0), 0

    def begin(self) -> None:
        """Try it for a while."""
        self.until, self._place = None, (0, 0)
        for _ in range(WAITING):
            self.add()

    def add(self) -> None:
        """Try it between two instructions of the main thread."""
        pythonapi.Py_AddPendingCall(pythonapi.PyObject_IsTrue, py_object(self))

    def __bool__(self) -> bool:
        """Try it. False, which is 0 in C: without an error."""
        self.is_tried = True
        now = thread_time()
        self.until = now + MOST_SECONDS if self.until is None else self.until
        try:
            for act in tuple(self.acts if self._has_gone_on(sys._getframe(1)) else ()):
                self._try(act)
            if self.acts and now < self.until and not _is_traced():
                self.add()
        finally:
            self.is_tried = False
        return False

    def _try(self, act: Callable[[], bool]) -> None:
        """Call `act`, for the last time if it is done. It is, too, if it raises what is not an `Exception`."""
        is_done = True
        try:
            is_done = _is_done(act)
        finally:
            if is_done and act in self.acts:
                self.acts.remove(act)

    def _has_gone_on(self, frame: FrameType) -> bool:
        """Whether the main thread may have executed something since the call before.

        Python makes up to `AT_ONCE` such calls between two of its instructions, if each asks for another one.
        """
        before, self._place = self._place, (id(frame), frame.f_lasti)
        self._calls = 0 if self._place != before else self._calls + 1
        return self._calls % AT_ONCE == 0


def _is_traced() -> bool:
    """Whether a debugger or a profiler runs: Python 3.11 begins no function then while a call is pending, for ever."""
    return sys.gettrace() is not None or sys.getprofile() is not None


AT_ONCE = 32
"""Calls that C asks for and that Python makes at once."""

WAITING = 2 if sys.version_info >= (3, 13) else 1
"""Calls that wait at a time. Python 3.13 does not come back to the last of those that it makes at once, which has asked
for another one, unless a further one waits."""


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
    """A lock that is released after an interrupt, whatever the interrupted code did, and free in a forked process."""
    made = threading.RLock()
    _process.locks.add(made)
    return made


def _free_locks_of_other_threads() -> None:
    """In a forked process, which has only the thread that has forked it: nothing else would ever release them."""
    for each in tuple(_process.locks):
        if not each._is_owned():
            each._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_free_locks_of_other_threads)


def is_held(one: threading.RLock) -> bool:
    """Whether this thread has that lock: a signal's handler has interrupted our code, or that has called the user's."""
    return cast("Any", one)._is_owned() is True


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


def is_within_entry() -> bool:
    """Whether this thread is in an `entry`, which the caller has interrupted, as a signal's handler does."""
    return _within_entries(sys._getframe(1))


def call_when_left(act: Callable[[], None]) -> None:
    """Call `act` in the main thread as soon as that is in no `entry`."""

    def act_if_left() -> bool:
        if is_within_entry():
            return False
        act()
        return True

    call_in_main_thread(act_if_left)
    schedule_calls()


def _within_entries(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _process.entries:
            return True
        frame = frame.f_back
    return False


MOST_SECONDS = 0.1
"""How long it is tried, in computing time. What is waited for, such as the user's forward pass, may take longer."""


def call_in_main_thread(act: Callable[[], bool]) -> None:
    """After `schedule_calls`, call `act` between instructions of the main thread, until it returns True."""
    if act not in _process.waiting.acts:
        _process.waiting.acts.append(act)


def schedule_calls() -> None:
    """Begin to make those calls, or begin again after `MOST_SECONDS`. For any thread."""
    waiting = _process.waiting
    if waiting.acts and not waiting.is_tried:
        waiting.begin()


def _is_done(act: Callable[[], bool]) -> bool:
    try:
        return act()
    except Exception:  # nothing here could report it; it must not be called for ever
        return True
