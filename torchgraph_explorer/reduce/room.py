"""Memory for what is kept of many tensors: pieces that are used again from step to step."""

from __future__ import annotations

import ctypes
import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Memory: TypeAlias = "npt.NDArray[np.uint8]"

FIRST_PIECE, LARGEST_PIECE = 1 << 14, 1 << 22
"""Bytes of a piece. A tensor that takes more has one of its own."""

MOST_REUSED = 128 << 20
"""Bytes that wait for the next step at most."""

UNBOUNDED = 1 << 62


class _Place(ctypes.Structure):
    """`Memory` in kept.c."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("used", ctypes.c_int64),
        ("left", ctypes.c_int64),
        ("has_replaced", ctypes.c_int64),
    )


class Pieces:
    """Memory of earlier steps. New memory costs more than a copy into it: the system has to clear it first.

    A piece is used again when nothing refers to it any more.
    """

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


class Room:
    """Memory for what is kept of the tensors of one step, in few pieces.

    Making an array and finding its address takes longer than a small tensor takes to be copied.

    Attributes:
        current: The piece that is in use, alone in a list, for kept.c.
    """

    def __init__(self, pieces: Pieces | None = None, *, first: int = FIRST_PIECE, left: int = UNBOUNDED) -> None:
        """There is none yet. The first piece has `first` bytes, and `left` may be kept."""
        self._pieces = pieces or Pieces()
        self.current: list[Memory] = [np.empty(0, np.uint8)]
        self._place = _Place(None, 0, 0, left, 0)
        self._next = min(max(first, FIRST_PIECE), LARGEST_PIECE)

    @property
    def address(self) -> int:
        """Of what kept.c knows of it."""
        return ctypes.addressof(self._place)

    @property
    def left(self) -> int:
        """Bytes that may still be kept."""
        return int(self._place.left)

    @left.setter
    def left(self, size: int) -> None:
        self._place.left = size

    @property
    def has_replaced(self) -> bool:
        """Whether kept.c has put a copy in place of another one."""
        return bool(self._place.has_replaced)

    def take(self, size: int) -> tuple[Memory, int]:
        """An array of `size` bytes, and its address, for any type of elements."""
        place = self._place
        if place.used + size > place.size:
            self._begin(max(size, self._next))
        start = place.used
        place.used = min(start + size + (-size & 7), place.size)
        return self.current[0][start : start + size], (place.address or 0) + start

    def _begin(self, size: int) -> None:
        memory = self.current[0] = self._pieces.take(size)
        self._place.address, self._place.size, self._place.used = memory.ctypes.data, len(memory), 0
        self._next = min(2 * self._next, LARGEST_PIECE)
