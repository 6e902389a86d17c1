"""Calls `rows.c` for tensors that are kept: chosen samples, and statistics of each neuron over the whole batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.reduce.room import Room
from torchgraph_explorer.reduce.row_buffer import TYPES, library
from torchgraph_explorer.reduce.sampling import is_contiguous_plain
from torchgraph_explorer.reused_memory import Memory

Statistics: TypeAlias = "npt.NDArray[np.float32] | npt.NDArray[np.float64]"

DOUBLE = frozenset({torch.float64, torch.int32, torch.int64})
"""Types whose statistics are in double precision: a float does not hold their elements."""


def is_readable_at_once(tensor: Tensor) -> bool:
    """Whether the functions below take `tensor`: in host memory, in order, and of a common type."""
    return tensor.is_cpu and is_contiguous_plain(tensor)


def whole(tensor: Tensor, *, room: Room) -> Memory:
    """The bytes of a tensor, in `room`."""
    memory, address = room.take(tensor.nbytes)
    ctypes.memmove(address, tensor.data_ptr(), tensor.nbytes)
    return memory


def samples_and_statistics(
    tensor: Tensor, dim: int, chosen: tuple[int, ...], *, room: Room
) -> tuple[Memory, Statistics]:
    """The bytes of the samples `chosen` along `dim`, and statistics as in `schema.KeptArrays`, as one row in `room`."""
    outer, batch, inner = _sizes(tensor.shape, dim)
    neurons, size, dtype = outer * inner, tensor.itemsize, tensor.dtype
    first = statistics_size(dtype, neurons)
    memory, address = room.take(first + neurons * len(chosen) * size)
    statistics = as_statistics(memory[:first], dtype)
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
        samples_for_c(chosen).address,
        len(chosen),
        address + first,
        address,
    )
    return memory[first:], statistics


@lru_cache(maxsize=1 << 12)
def _sizes(shape: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Elements of the dimensions before `dim`, of `dim`, and of those after it."""
    return prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])


class Samples(NamedTuple):
    """Numbers of samples, and where C reads them: `address` and `length`. The memory lives as long as this."""

    samples: tuple[int, ...]
    address: int
    length: int
    memory: Any


@lru_cache(maxsize=64)
def samples_for_c(chosen: tuple[int, ...]) -> Samples:
    """Cached, since the same ones come for every tensor."""
    memory = (ctypes.c_int64 * len(chosen))(*chosen)
    return Samples(chosen, ctypes.addressof(memory), len(chosen), memory)


def statistics_size(dtype: torch.dtype, neurons: int) -> int:
    """How many bytes the statistics of `neurons` neurons take."""
    return 3 * neurons * (8 if dtype in DOUBLE else 4)


def as_statistics(memory: Memory, dtype: torch.dtype) -> Statistics:
    """These bytes as the statistics of a tensor of `dtype`."""
    return memory.view(np.float64) if dtype in DOUBLE else memory.view(np.float32)


@cache
def _keep() -> Callable[..., None]:
    keep = library().torchgraph_keep_samples
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    keep.argtypes = (pointer, *[number] * 5, pointer, number, pointer, pointer)
    keep.restype = None
    return keep
