"""Calls `rows.c` for tensors that are kept: chosen samples, and statistics of each neuron over the whole batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce.row_buffer import TYPES, library
from torchgraph_explorer.reduce.sampling import is_contiguous_plain

Statistics: TypeAlias = "npt.NDArray[np.float32] | npt.NDArray[np.float64]"

DOUBLE = frozenset({torch.float64, torch.int32, torch.int64})
"""Types whose statistics are in double precision: a float does not hold their elements."""


FIRST_PIECE, LARGEST_PIECE = 1 << 14, 1 << 20
"""Bytes of the pieces of memory in a `Room`."""


class Room:
    """Memory for what is kept of many small tensors, in few pieces.

    Making an array and finding its address takes longer than a small tensor takes to be copied. A piece is freed with
    the last array in it.
    """

    def __init__(self) -> None:
        """There is none yet."""
        self._memory: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._address = self._used = 0
        self._next = FIRST_PIECE

    def take(self, size: int) -> tuple[npt.NDArray[np.uint8], int]:
        """An array of `size` bytes, and its address, for any type of elements."""
        start = self._used
        if start + size > len(self._memory):
            self._begin(max(size, self._next))
            start = 0
        self._used = start + size + (-size & 7)
        return self._memory[start : start + size], self._address + start

    def _begin(self, size: int) -> None:
        self._memory = np.empty(size, np.uint8)
        self._address = self._memory.ctypes.data
        self._next = min(2 * self._next, LARGEST_PIECE)


def is_readable_at_once(tensor: Tensor) -> bool:
    """Whether the functions below take `tensor`: in host memory, in order, and of a common type."""
    return tensor.is_cpu and is_contiguous_plain(tensor)


def whole(tensor: Tensor) -> npt.NDArray[np.uint8]:
    """The bytes of a tensor."""
    return np.frombuffer(ctypes.string_at(tensor.data_ptr(), tensor.nbytes), np.uint8)


def samples_and_statistics(
    tensor: Tensor, dim: int, chosen: tuple[int, ...], *, room: Room
) -> tuple[npt.NDArray[np.uint8], Statistics]:
    """The bytes of the samples `chosen` along `dim`, and the statistics of `schema.KeptArray`, as one row in `room`."""
    outer, batch, inner = _sizes(tensor.shape, dim)
    neurons, size, dtype = outer * inner, tensor.itemsize, tensor.dtype
    is_double = dtype in DOUBLE
    first = 3 * neurons * (8 if is_double else 4)
    memory, address = room.take(first + neurons * len(chosen) * size)
    statistics: Statistics = memory[:first].view(np.float64) if is_double else memory[:first].view(np.float32)
    if not batch:
        statistics.fill(np.nan)
        return memory[first:], statistics
    _keep()(
        tensor.data_ptr(),
        TYPES[dtype],
        size,
        outer,
        batch,
        inner,
        _numbers(chosen),
        len(chosen),
        address + first,
        address,
        is_double,
    )
    return memory[first:], statistics


@lru_cache(maxsize=1 << 12)
def _sizes(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Elements of the dimensions before `dim`, of `dim`, and of those after it."""
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


@lru_cache(maxsize=64)
def _numbers(chosen: tuple[int, ...]) -> Any:
    """Cached, since the same ones come for every tensor."""
    return (ctypes.c_int64 * len(chosen))(*chosen)


@cache
def _keep() -> Callable[..., None]:
    keep = library().torchgraph_keep
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    keep.argtypes = (pointer, *[number] * 5, pointer, number, pointer, pointer, number)
    keep.restype = None
    return keep
