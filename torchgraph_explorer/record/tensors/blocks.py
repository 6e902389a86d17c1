"""The body of the kept tensors of a step: docs/format.md, Kept tensors.

A table has two rows for each tensor, of its values and of its statistics, and behind it are the blocks that the rows
tell of. Tensors may share blocks. A block is compressed if that makes it shorter than its elements.
"""

from __future__ import annotations

import ctypes
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from torchgraph_explorer.native import library
from torchgraph_explorer.record.format.envelope import DamageError, inflated
from torchgraph_explorer.record.limits import MOST_INFLATED
from torchgraph_explorer.schema import KeptArrays

BUILT = Path(__file__).parent / "built" / "blocks.so"

WORDS = 3
"""Words of 32 bits in a row of the table: where the block begins after the table, its size, and the check of both."""

ROW_BYTES = 4 * WORDS

_START_AND_SIZE = struct.Struct("<II")

FEW_BYTES = 512
"""A shorter block is not compressed: of many small tensors, that would take longer than all else."""

LOOKED_AT, RUNS = 1 << 10, 16
"""Bytes of a block that are looked at before it is compressed, in so many runs that are spread over it."""

LEAST_ZEROS = 1 / 4
"""A block is compressed only if so many of these bytes are zero, as in a ReLU's output, integers, and padding.

Floating-point numbers without zeros become a tenth shorter at most, and compressing takes 20 times as long as writing.
"""


class Block(NamedTuple):
    """A row of the table."""

    start: int
    size: int
    check: int


def encode_blocks(arrays: KeptArrays) -> bytes | memoryview:
    """The body that holds `arrays`."""
    body = encode_in_c(arrays)
    return encode_in_python(arrays) if body is None else body


def encode_in_python(arrays: KeptArrays) -> bytes:
    """The same where `blocks.c` was not built, and the reference for it."""
    blocks: list[bytes] = []
    rows: dict[int, tuple[int, int, int]] = {-1: (0, 0, 0)}
    end = 0
    for number, (memory, start, size) in enumerate(arrays.places.tolist()):
        elements = arrays.memories[memory][start : start + size].tobytes()
        data = _packed(elements) if _has_zeros(elements) else elements
        rows[number] = (end, len(data), _check(end, data))
        blocks.append(data)
        end += len(data)
    table = [word for number in arrays.blocks.ravel().tolist() for word in rows[number]]
    return b"".join((struct.pack(f"<{len(table)}I", *table), *blocks))


def encode_in_c(arrays: KeptArrays) -> memoryview | None:
    """The same, while other threads run Python; None where that was not built."""
    functions = _functions()
    if functions is None:
        return None
    numbers = np.ascontiguousarray(arrays.blocks, np.int64).ravel()
    memory, start, size = arrays.places.T
    addresses = np.array([each.ctypes.data for each in arrays.memories], np.int64)[memory] + start
    sizes = size.copy()
    are_found = np.empty(len(sizes), np.bool_)
    functions.find_zeros(len(sizes), addresses.ctypes.data, sizes.ctypes.data, are_found.ctypes.data)
    packed = []  # holds the memory of what is compressed
    for at in np.flatnonzero(are_found).tolist():
        data = _packed(arrays.memories[memory[at]][start[at] : start[at] + size[at]].tobytes())
        packed.append(np.frombuffer(data, np.uint8))
        addresses[at], sizes[at] = packed[-1].ctypes.data, len(data)
    table = np.empty((len(sizes), WORDS), np.uint32)
    body = np.empty(len(numbers) * ROW_BYTES + int(sizes.sum()), np.uint8)
    places = (each.ctypes.data for each in (addresses, sizes, table, body))
    functions.encode_blocks(len(numbers), numbers.ctypes.data, len(sizes), *places)
    return body.data


def block_at(table: bytes, row: int) -> Block:
    """Row number `row` of a table."""
    start, size, check = np.frombuffer(table, "<u4", WORDS, row * ROW_BYTES).tolist()
    return Block(start, size, check)


def decode_block(data: bytes, block: Block, expected: int) -> bytes:
    """The `expected` bytes that are in `block`, which was read as `data`.

    Raises:
        DamageError: The check is wrong, or it holds something else.
    """
    if len(data) != block.size or _check(block.start, data) != block.check or block.size > expected:
        raise DamageError
    if block.size == expected:
        return data
    if expected > MOST_INFLATED * block.size:
        raise DamageError
    content = inflated(data, expected)
    if len(content) != expected:
        raise DamageError
    return content


def _packed(data: bytes) -> bytes:
    packed = zlib.compress(data, 1)
    return packed if len(packed) < len(data) else data


def _has_zeros(data: bytes) -> bool:
    """Whether it is to be compressed: a quarter of the bytes are zero, as far as a sample of them shows."""
    if len(data) < FEW_BYTES:
        return False
    if len(data) <= LOOKED_AT:
        return data.count(0) >= LEAST_ZEROS * len(data)
    spacing, run = len(data) // RUNS, LOOKED_AT // RUNS
    looked_at = b"".join([data[at * spacing : at * spacing + run] for at in range(RUNS)])
    return looked_at.count(0) >= LEAST_ZEROS * LOOKED_AT


def _check(start: int, data: bytes) -> int:
    return crc32(data, crc32(_START_AND_SIZE.pack(start, len(data))))


class _Functions(NamedTuple):
    """Those of blocks.c."""

    find_zeros: Any
    encode_blocks: Any


@cache
def _functions() -> _Functions | None:
    built = library(BUILT)
    if built is None:
        return None
    found = _Functions(built.torchgraph_find_zeros, built.torchgraph_encode_blocks)
    number, place = ctypes.c_int64, ctypes.c_void_p
    found.find_zeros.argtypes, found.find_zeros.restype = (number, *[place] * 3), None
    found.encode_blocks.argtypes, found.encode_blocks.restype = (number, place, number, *[place] * 4), None
    return found
