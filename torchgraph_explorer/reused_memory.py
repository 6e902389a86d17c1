"""Memory that is used again from step to step. New memory costs more than a copy into it: the system clears it."""

from __future__ import annotations

import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Memory: TypeAlias = "npt.NDArray[np.uint8]"

MOST_REUSED = 128 << 20
"""Bytes that wait for the next step at most."""


class Pieces:
    """Pieces of memory of earlier steps. One is used again when nothing refers to it any more."""

    def __init__(self) -> None:
        """There is none yet."""
        self._pieces: list[Memory] = []
        self._alone = _references([np.empty(0, np.uint8)], 0)

    def take(self, size: int) -> Memory:
        """A piece of at least `size` bytes."""
        fits = (at for at, each in enumerate(map(len, self._pieces)) if size <= each <= 4 * size and self._is_free(at))
        at = next(fits, None)
        if at is not None:
            return self._pieces[at]
        made = np.empty(size, np.uint8)
        if self._size() + size > MOST_REUSED:
            self._pieces = [self._pieces[at] for at in range(len(self._pieces)) if not self._is_free(at)]
        if self._size() + size <= MOST_REUSED:
            self._pieces.append(made)
        return made

    def _size(self) -> int:
        return sum(map(len, self._pieces))

    def _is_free(self, at: int) -> bool:
        return _references(self._pieces, at) == self._alone


def _references(pieces: list[Memory], at: int) -> int:
    """How often a piece is referred to; how often this function does it depends on Python's version."""
    return sys.getrefcount(pieces[at])
