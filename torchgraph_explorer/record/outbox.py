"""Records on their way to a store that may take nothing for a while: a full disk, a network that is down."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import NamedTuple, Protocol

from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.gaps import Missing

FIRST_PAUSE = 1.0
"""Seconds until a store that has taken nothing is tried again; each pause is twice the one before."""

LONGEST_PAUSE = 60.0

MOST_WAITING = 64 << 20
"""Bytes that may wait meanwhile. Steps beyond that are dropped, and told; what later steps need is kept."""


class Encoded(NamedTuple):
    """A record as bytes.

    Attributes:
        data: As it stands in a segment.
        step: Of a frame; None for what frames depend on, which is never dropped.
    """

    data: bytes
    step: int | None = None


class Store(Protocol):
    """Where the pieces go."""

    def is_due(self, size: int, /) -> bool:
        """Whether to put what waits, which is so many bytes."""

    def put(self, waiting: deque[Encoded]) -> None:
        """Write what waits, in order, and take out of `waiting` what is safe.

        Raises:
            Exception: The store refuses, for which each has errors of its own.
        """

    def close(self) -> None:
        """No more will come."""


class Outbox:
    """Keeps what is to be written until it is, and says what is not. Nothing here raises for the store's sake.

    Attributes:
        notes: What the record lacks, in sentences.
    """

    def __init__(self, store: Store, *, place: str) -> None:
        self.notes: list[str] = []
        self._store, self._place = store, place
        self._waiting: deque[Encoded] = deque()
        self._size = 0
        self._has_put = False
        self._dropped = Missing()
        self._pause = 0.0
        self._next_try = 0.0
        self._told: set[str] = set()
        self._is_told = False

    def add(self, piece: Encoded) -> None:
        """Take a piece, and put all that waits if it is time to."""
        if self._is_too_much(piece):
            self.put_if_due()  # which may make room
        if piece.step is not None and self._is_too_much(piece):
            self._dropped.add(piece.step)
            return
        self._waiting.append(piece)
        self._size += len(piece.data)
        self.put_if_due()

    def _is_too_much(self, piece: Encoded) -> bool:
        return bool(self._pause) and self._size + len(piece.data) > MOST_WAITING

    def put_if_due(self) -> None:
        """Put what waits, if it is time to. To be called now and then, also when nothing comes."""
        is_due = monotonic() >= self._next_try if self._pause else self._store.is_due(self._size)
        if self._waiting and is_due and (fault := self._put()) is not None:
            self._fail(fault)

    def close(self) -> None:
        """Put what still waits, for a last time, and say what could not be."""
        fault = self._put() if self._waiting else None
        self._store.close()
        if fault is None or (self._is_told and not self._has_put):  # it was said that nothing is written
            return
        for piece in self._waiting:
            if piece.step is not None:
                self._dropped.add(piece.step)
        lacks = f"The record lacks {self._dropped}" if self._dropped else "The record lacks its end"
        warn(f"{lacks}, since {self._place} could not be written to ({reason(fault)}).")

    def _put(self) -> Exception | None:
        """Put what waits; the fault if that could not be."""
        before = len(self._waiting)
        try:
            self._store.put(self._waiting)
        except Exception as fault:
            return fault
        else:
            self._recover()
        finally:
            self._has_put = self._has_put or len(self._waiting) < before
            self._size = sum(len(piece.data) for piece in self._waiting)
        return None

    def _fail(self, fault: Exception) -> None:
        self._pause = min(2 * self._pause, LONGEST_PAUSE) or FIRST_PAUSE
        self._next_try = monotonic() + self._pause
        sentence = (
            f"{self._place} cannot be written to ({reason(fault)}). Training goes on. Up to {MOST_WAITING >> 20} MB of "
            f"records wait in memory and are tried again, every {LONGEST_PAUSE:g} s in the end; what cannot be written "
            f"until the watcher is closed is lost."
        )
        if sentence not in self._told:
            self._told.add(sentence)
            self._is_told = True
            warn(sentence)

    def _recover(self) -> None:
        self._pause = 0.0
        is_told, self._is_told = self._is_told, False
        dropped, self._dropped = self._dropped, Missing()
        if dropped:
            self.notes.append(f"{dropped} are missing, since {self._place} could not be written to for a while.")
            warn(f"{self.notes[-1]} It can be again, and recording goes on.")
        elif is_told:
            info(f"{self._place} can be written to again; the record lacks nothing.")
