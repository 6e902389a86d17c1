"""Which steps a chart shows, and when it is logged anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

STEPS = 48
"""Steps that a chart shows, at most; one column each in a heat strip."""

GROWTH = 1.12
"""Each snapshot comes after so many times the logged steps of the one before: 60 for 2,000 steps, 112 for a million."""

MOST = 130
"""Snapshots of a run, at most, besides the one at its end."""

SHARE = 0.1
"""Of the time, at most, in which a snapshot is being made. That happens in another process."""


class Thinned(Generic[T]):
    """A sequence that keeps its length: evenly thinned whenever it is full, first and last always kept."""

    def __init__(self, most: int = STEPS) -> None:
        self._most = most
        self._stride = 1
        self._count = 0
        self._kept: list[T] = []
        self._last: list[T] = []

    def __len__(self) -> int:
        """How many were added, kept or not."""
        return self._count

    def add(self, item: T) -> None:
        """Take the next one."""
        if self._count % self._stride == 0:
            if len(self._kept) >= self._most - 1:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self._kept.append(item)
        self._last = [item]
        self._count += 1

    @property
    def kept(self) -> list[T]:
        """Those that are kept, in order."""
        return self._kept if self._kept[-1:] == self._last or not self._last else self._kept + self._last


def thinned_numbers(count: int, most: int = STEPS) -> list[int]:
    """Which of `count` things `Thinned` would have kept."""
    chosen: Thinned[int] = Thinned(most)
    for number in range(count):
        chosen.add(number)
    return chosen.kept


@dataclass(slots=True)
class Schedule:
    """When to log: ever more rarely, and never for more than a small share of the time.

    Uploads cost sockets that wandb frees only at the end of a run, so their number is what has to stay small.
    """

    taken: int = 0
    _next_count: int = 1
    _next_time: float = 0.0

    def is_due(self, count: int, now: float) -> bool:
        """Whether to make a snapshot, when so many steps have been recorded."""
        return count >= self._next_count and now >= self._next_time and self.taken < MOST

    def began(self, count: int, now: float) -> None:
        """One is being made. If it fails, the next one comes as if it had not."""
        self.taken += 1
        self._next_count = max(count + 1, round(count * GROWTH))
        self._next_time = now

    def took(self, seconds: float) -> None:
        """The one that was begun last was made in so many seconds."""
        self._next_time += seconds / SHARE


def is_page_due(count: int, pages: int) -> bool:
    """Whether to log the large page again, when so many steps were recorded and so many pages logged.

    That is at 1, 8, 64, 512 and so on.
    """
    return count >= 1 << 3 * pages
