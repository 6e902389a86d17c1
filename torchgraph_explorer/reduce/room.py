"""Memory for what is kept of many tensors."""

from __future__ import annotations

import ctypes

import numpy as np

from torchgraph_explorer.reused_memory import Memory, Pieces

FIRST_PIECE, LARGEST_PIECE = 1 << 14, 1 << 22
"""Bytes of a piece. A tensor that takes more has one of its own."""

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
        """The address of what kept.c knows of this memory."""
        return ctypes.addressof(self._place)

    @property
    def left(self) -> int:
        """How many bytes may still be kept."""
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
