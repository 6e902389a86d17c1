"""Runs in a thread of its own what may hang, and waits for it for a stated time. Stores are only used in this way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

SECONDS = 5.0
"""How long the training waits for a store, in `watch` and wherever it needs an answer of one."""

SECONDS_TO_END = 30.0
"""How long closing a watcher, or ending a process with open watchers, waits for what is still to be written."""


def until_the_end() -> float:
    """The moment of the monotonic clock until which closing waits if it begins now."""
    return monotonic() + SECONDS_TO_END


class NoAnswerError(Exception):
    """It took longer than the time limit, or could not be begun. Not for users."""


class NoThreadError(NoAnswerError):
    """No thread can be started."""


class _Call(Generic[T]):
    """A function that runs in a thread."""

    def __init__(self, act: Callable[[], T], too_late: Callable[[T], object]) -> None:
        self._act, self._too_late = act, too_late
        self._lock = threading.Lock()
        self._is_awaited = True
        self._ended = threading.Event()
        self.results: list[T] = []
        self.fault: BaseException | None = None

    def run(self) -> None:
        """In the thread."""
        try:
            result = self._act()
        except BaseException as fault:  # raised in the calling thread, if that still waits
            self.fault = fault
        else:
            self._deliver(result)
        finally:
            self._ended.set()

    def _deliver(self, result: T) -> None:
        with self._lock:
            if self._is_awaited:
                self.results.append(result)
                return
        with suppress(Exception):  # no one waits for this either
            self._too_late(result)

    def wait(self, seconds: float) -> None:
        try:
            self._ended.wait(seconds)
        finally:
            with self._lock:
                self._is_awaited = False


def in_time(act: Callable[[], T], *, seconds: float, too_late: Callable[[T], object] = id) -> T:
    """Call `act` in another thread, and return what it returns within so many seconds, or raise what it raises.

    A later result is given to `too_late`, in that other thread.

    Raises:
        NoAnswerError: There was no result in time.
        NoThreadError: No thread can be started.
    """
    asked = _Call(act, too_late)
    try:
        threading.Thread(target=asked.run, name="torchgraph-asking", daemon=True).start()
    except RuntimeError as fault:
        raise NoThreadError(str(fault)) from fault
    asked.wait(seconds)
    if asked.fault is not None:
        raise asked.fault
    if not asked.results:
        raise NoAnswerError(f"no answer within {seconds:g} s")
    return asked.results[0]
