"""Does in a thread of its own what may hang, and waits for it for a stated time: stores are never touched otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")

SECONDS = 5.0
"""How long the training waits for a store, in `watch` and wherever it has to know something of one."""

SECONDS_TO_END = 30.0
"""How long the end of a watch, or of the process with all that it still watches, waits for what is to be written."""


def until_the_end() -> float:
    """The moment of the monotonic clock up to which an end that begins now waits."""
    return monotonic() + SECONDS_TO_END


class NoAnswerError(Exception):
    """It takes longer than one waits for it, or cannot be begun. Not for users."""


class NoThreadError(NoAnswerError):
    """No thread can be started."""


class _Asked(Generic[T]):
    """What was begun in a thread."""

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
        except BaseException as fault:  # the asking thread gets it, if it still waits
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
        with suppress(Exception):  # nobody waits for this either
            self._too_late(result)

    def wait(self, seconds: float) -> None:
        try:
            self._ended.wait(seconds)
        finally:
            with self._lock:
                self._is_awaited = False


def in_time(act: Callable[[], T], *, seconds: float, too_late: Callable[[T], object] = id) -> T:
    """What `act` gives, or raises, if it does within so many seconds; `too_late` is given what comes after that.

    Raises:
        NoAnswerError: Nothing came.
        NoThreadError: It was not begun.
    """
    asked = _Asked(act, too_late)
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
