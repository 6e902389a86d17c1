"""Which steps a chart shows."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

STEPS = 48
"""Steps that a chart shows, at most; one column each in a heat strip."""


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
