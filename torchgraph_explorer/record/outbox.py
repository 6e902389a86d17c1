"""Records on their way to a store that may take nothing for a while: a full disk, a network that is down."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple, Protocol

from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.gaps import Missing
from torchgraph_explorer.record.format.places import Extent

FIRST_PAUSE = 1.0
"""Seconds until a store that refused is tried again; each pause is twice the one before."""

LONGEST_PAUSE = 60.0

MOST_WAITING = 64 << 20
"""Bytes that may wait meanwhile. Steps beyond that are dropped, with a warning; what later steps need is kept."""


class Encoded(NamedTuple):
    """A record as bytes.

    Attributes:
        data: The bytes as they are in a segment.
        step: The step of a frame; None for other records.
        is_needed: Frames depend on it, so it is never dropped.
        ending: At the end of a session: gives the record that follows `data`, of the place where it comes to lie.
    """

    data: bytes | memoryview
    step: int | None = None
    is_needed: bool = True
    ending: Callable[[Extent], bytes] | None = None


class Store(Protocol):
    """What encoded records are written to."""

    def is_due(self, size: int, /) -> bool:
        """Whether to write what waits, which has `size` bytes."""

    def put(self, waiting: deque[Encoded]) -> None:
        """Write what waits, in order, and remove from `waiting` what is safely written.

        Raises:
            Exception: The store refuses. Each store has its own types of errors.
        """

    @property
    def reached(self) -> Extent | None:
        """What was written so far; None if nothing was."""

    def close(self) -> None:
        """No more will come."""


class Outbox:
    """Keeps encoded records until they are written, and warns of those that cannot be. A failing store raises nothing.

    Attributes:
        notes: What is missing in the record, in sentences.
    """

    def __init__(self, store: Store, *, place: str) -> None:
        self.notes: list[str] = []
        self._store, self._place = store, place
        self._waiting: deque[Encoded] = deque()
        self._size = 0
        self._has_put = False
        self._dropped = Missing()
        self._dropped_blocks = 0
        self._pause = 0.0
        self._next_try = 0.0
        self._warned: set[str] = set()
        self._has_warned = False

    def add(self, record: Encoded) -> bool:
        """Add a record, and write all that wait if it is time to. Returns False if it was dropped."""
        if self._is_too_much(record):
            self.put_if_due()  # which may make room
        if not record.is_needed and self._is_too_much(record):
            self._drop(record)
            return False
        self._waiting.append(record)
        self._size += len(record.data)
        self.put_if_due()
        return True

    def _drop(self, record: Encoded) -> None:
        if record.step is not None:
            self._dropped.add(record.step)
        else:
            self._dropped_blocks += 1

    def _is_too_much(self, record: Encoded) -> bool:
        return bool(self._pause) and self._size + len(record.data) > MOST_WAITING

    def put_if_due(self) -> None:
        """Write what waits, if it is time to. Call it now and then, also while nothing is added."""
        is_due = monotonic() >= self._next_try if self._pause else self._store.is_due(self._size)
        if self._waiting and is_due and (fault := self._put()) is not None:
            self._fail(fault)

    def reached(self) -> Extent | None:
        """Write what waits; what was then written in all, None if nothing was or something still waits."""
        if self._waiting and (fault := self._put()) is not None:
            self._fail(fault)
        return None if self._waiting else self._store.reached

    def close(self) -> None:
        """Try once more to write what waits, and warn of what could not be written."""
        fault = self._put() if self._waiting else None
        try:
            self._store.close()
        except Exception as failed:  # a network's disk may tell only now that it did not take what was written
            fault = fault or failed
        if fault is None or (self._has_warned and not self._has_put):  # there was a warning that nothing is written
            return
        for record in self._waiting:
            if record.step is not None:
                self._dropped.add(record.step)
        lacks = f"The record lacks {self._dropped}" if self._dropped else "The record lacks its end"
        warn(f"{lacks}, since {self._place} could not be written to ({reason(fault)}).")

    def _put(self) -> Exception | None:
        """Write what waits; the fault if that failed."""
        before = len(self._waiting)
        try:
            self._store.put(self._waiting)
        except Exception as fault:
            return fault
        else:
            self._recover()
        finally:
            self._has_put = self._has_put or len(self._waiting) < before
            self._size = sum(len(record.data) for record in self._waiting)
        return None

    def _fail(self, fault: Exception) -> None:
        self._pause = min(2 * self._pause, LONGEST_PAUSE) or FIRST_PAUSE
        self._next_try = monotonic() + self._pause
        sentence = (
            f"{self._place} cannot be written to ({reason(fault)}). Training goes on. Up to {MOST_WAITING >> 20} MB of "
            f"records wait in memory and are tried again, finally every {LONGEST_PAUSE:g} s. What cannot be written "
            f"before the watcher is closed is lost."
        )
        if sentence not in self._warned:
            self._warned.add(sentence)
            self._has_warned = True
            warn(sentence)

    def _recover(self) -> None:
        self._pause = 0.0
        had_warned, self._has_warned = self._has_warned, False
        dropped, self._dropped = self._dropped, Missing()
        if dropped:
            self.notes.append(f"{dropped} are missing, since {self._place} could not be written to for a while.")
            warn(f"{self.notes[-1]} It can be written to again, and recording goes on.")
        if blocks := self._dropped_blocks:
            self._dropped_blocks = 0
            self.notes.append(
                f"{blocks} blocks of logged scalars are missing, since {self._place} could not be written to for a "
                f"while."
            )
        if had_warned and not (dropped or blocks):
            info(f"{self._place} can be written to again; the record lacks nothing.")
