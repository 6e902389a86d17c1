"""Which steps a chart shows."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

MAX_STEPS = 48
"""The most steps that a chart shows; each is a column of a heat strip."""


class ThinnedSequence(Generic[T]):
    """A sequence of bounded length: thinned evenly whenever it is full. The first and the last item are always kept."""

    def __init__(self, most: int = MAX_STEPS) -> None:
        self._most = most
        self._stride = 1
        self._count = 0
        self._kept: list[T] = []
        self._last: list[T] = []

    def __len__(self) -> int:
        """How many items were added, kept or not."""
        return self._count

    def add(self, item: T) -> None:
        """Add the next item."""
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
        """The items that are kept, in order."""
        return self._kept if self._kept[-1:] == self._last or not self._last else self._kept + self._last


def thinned_indices(count: int, most: int = MAX_STEPS) -> list[int]:
    """The indices of the items that `ThinnedSequence` would keep of `count` items."""
    chosen: ThinnedSequence[int] = ThinnedSequence(most)
    for number in range(count):
        chosen.add(number)
    return chosen.kept
