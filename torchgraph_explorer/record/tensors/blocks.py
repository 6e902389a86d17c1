"""The body of the kept tensors of a step: docs/format.md, Kept tensors.

A table has two rows for each tensor, of its values and of its statistics, and behind it are the blocks that the rows
tell of. Tensors may share blocks. A block with many zeros is packed: a bit for each of its words says whether the word
is zero, and those that are not follow.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.native import library
from torchgraph_explorer.record.format.envelope import DamageError, row_check
from torchgraph_explorer.reused_memory import Memory
from torchgraph_explorer.schema import KeptArrays

BUILT = Path(__file__).parent / "built" / "blocks.so"

WORDS = 3
"""Words of 32 bits in a row of the table: where the block begins after the table, its size, and the check of both."""

ROW_BYTES = 4 * WORDS

_START_AND_SIZE = struct.Struct("<II")

FEW_BYTES = 64
"""A shorter block is not packed."""

LOOKED_AT, RUNS = 1 << 10, 16
"""Bytes of a block that are looked at to choose how it is packed, in so many runs that are spread over it."""

WORD_BYTES = (8, 4, 2, 1)
"""Sizes of the words that are kept or left out. Of two that pack as well, the first is taken."""

LEAST_SAVED = 1 / 8
"""A block is packed only if that spares so much of its size, as far as a sample of it shows."""

SPARE = 8
"""Bytes behind a body that are written to: a word is written before it is known to be left out."""


class Block(NamedTuple):
    """A row of the table."""

    start: int
    size: int
    check: int


class Body(Protocol):
    """A body that is still to be written."""

    @property
    def size(self) -> int:
        """The size of the body in bytes."""

    def write(self, into: Memory, head_check: int) -> None:
        """Write it at the beginning of `into`, which has `SPARE` bytes more, for the head with this crc32."""


def body_of(arrays: KeptArrays) -> Body:
    """The body that holds `arrays`."""
    return body_in_c(arrays) or body_in_python(arrays)


@dataclass(frozen=True, slots=True)
class _BodyInPython:
    """A body of which Python has encoded the blocks already.

    Attributes:
        rows: The table, as if it belonged to no head; None for a row of no block.
        blocks: What follows it.
    """

    rows: list[Block | None]
    blocks: bytes

    @property
    def size(self) -> int:
        return len(self.rows) * ROW_BYTES + len(self.blocks)

    def write(self, into: Memory, head_check: int) -> None:
        table = [
            (0, 0, 0) if one is None else (one.start, one.size, row_check(one.check, head_check, row))
            for row, one in enumerate(self.rows)
        ]
        data = b"".join((*(struct.pack("<3I", *words) for words in table), self.blocks))
        into[: self.size] = np.frombuffer(data, np.uint8)


def body_in_python(arrays: KeptArrays) -> Body:
    """The body as Python makes it: where `blocks.c` was not built, and as the reference for that."""
    blocks: list[bytes] = []
    rows: dict[int, Block | None] = {-1: None}
    end = 0
    for number, (memory, start, size) in enumerate(arrays.places.tolist()):
        data = _packed(arrays.memories[memory][start : start + size].tobytes())
        rows[number] = Block(end, len(data), _check(end, data))
        blocks.append(data)
        end += len(data)
    return _BodyInPython([rows[number] for number in arrays.blocks.ravel().tolist()], b"".join(blocks))


@dataclass(frozen=True, slots=True)
class _BodyInC:
    """One of which `blocks.c` has found out how each block is packed.

    Attributes:
        arrays: What it holds.
        numbers: That of the block of each row.
        blocks: Of each block, the address, the size, the size when packed, and the size of the words it is packed by.
        functions: Those of blocks.c.
    """

    arrays: KeptArrays
    numbers: npt.NDArray[np.int64]
    blocks: tuple[npt.NDArray[Any], ...]
    functions: _Functions

    @property
    def size(self) -> int:
        return len(self.numbers) * ROW_BYTES + int(self.blocks[2].sum())

    def write(self, into: Memory, head_check: int) -> None:
        count = len(self.blocks[0])
        table = np.empty((count, WORDS), np.uint32)
        places = (each.ctypes.data for each in (*self.blocks, table, into))
        self.functions.encode_blocks(len(self.numbers), self.numbers.ctypes.data, count, *places, head_check)


def body_in_c(arrays: KeptArrays) -> Body | None:
    """As `body_in_python`, made in C while other threads run Python; None where blocks.c was not built."""
    functions = _functions()
    if functions is None:
        return None
    memory, start, size = arrays.places.T
    addresses = np.array([each.ctypes.data for each in arrays.memories], np.int64)[memory] + start
    sizes = np.ascontiguousarray(size)
    blocks = addresses, sizes, np.empty_like(sizes), np.empty(len(sizes), np.uint8)
    functions.plan_blocks(len(sizes), *(each.ctypes.data for each in blocks))
    return _BodyInC(arrays, np.ascontiguousarray(arrays.blocks, np.int64).ravel(), blocks, functions)


def block_at(table: bytes, row: int) -> Block:
    """Row number `row` of a table."""
    start, size, check = np.frombuffer(table, "<u4", WORDS, row * ROW_BYTES).tolist()
    return Block(start, size, check)


def decode_block(data: bytes, block: Block, expected: int, *, head_check: int | None, row: int) -> bytes:
    """The `expected` bytes that are in `block`, which was read as `data`, and which row number `row` tells of.

    `head_check` is as for `envelope.row_check`.

    Raises:
        DamageError: The check is wrong, or it holds something else.
    """
    if len(data) != block.size or block.size > expected:
        raise DamageError
    if row_check(_check(block.start, data), head_check, row) != block.check:
        raise DamageError
    return data if block.size == expected else _unpacked(data, expected)


def _packed(data: bytes) -> bytes:
    size = _word_size(data)
    if size == 0:
        return data
    words = np.frombuffer(data, f"u{size}", len(data) // size)
    is_kept = words != 0
    bits = np.packbits(is_kept, bitorder="little").tobytes()
    packed = b"".join((bytes([size]), bits, words[is_kept].tobytes(), data[words.nbytes :]))
    return packed if len(packed) < len(data) else data


def _unpacked(data: bytes, expected: int) -> bytes:
    if not data or data[0] not in WORD_BYTES:
        raise DamageError
    size = data[0]
    count = expected // size
    first = 1 + (count + 7) // 8
    if len(data) < first:  # else `expected` is at most 64 times what was read
        raise DamageError
    is_kept = np.unpackbits(np.frombuffer(data, np.uint8, first - 1, 1), count=count, bitorder="little").view(np.bool_)
    kept = int(np.count_nonzero(is_kept))
    if first + kept * size + expected % size != len(data):
        raise DamageError
    words = np.zeros(count, f"u{size}")
    words[is_kept] = np.frombuffer(data, words.dtype, kept, first)
    return words.tobytes() + data[first + kept * size :]


def _word_size(data: bytes) -> int:
    """The size of the words with which `data` is packed best, as far as a sample of it shows; 0 if it is not packed."""
    if len(data) < FEW_BYTES:
        return 0
    if len(data) > LOOKED_AT:
        longest, run = max(WORD_BYTES), LOOKED_AT // RUNS
        spacing = len(data) // RUNS // longest * longest
        data = b"".join([data[at * spacing : at * spacing + run] for at in range(RUNS)])
    best, saved = 0, 8 * LEAST_SAVED * len(data)
    for size in WORD_BYTES:
        words = np.frombuffer(data, f"u{size}", len(data) // size)
        bits = 8 * size * (len(words) - int(np.count_nonzero(words))) - len(words)
        if bits > saved:
            best, saved = size, bits
    return best


def _check(start: int, data: bytes) -> int:
    return crc32(data, crc32(_START_AND_SIZE.pack(start, len(data))))


class _Functions(NamedTuple):
    """The functions of blocks.c."""

    plan_blocks: Any
    encode_blocks: Any


@cache
def _functions() -> _Functions | None:
    built = library(BUILT)
    if built is None:
        return None
    found = _Functions(built.torchgraph_plan_blocks, built.torchgraph_encode_blocks)
    number, place = ctypes.c_int64, ctypes.c_void_p
    found.plan_blocks.argtypes, found.plan_blocks.restype = (number, *[place] * 4), None
    found.encode_blocks.argtypes, found.encode_blocks.restype = (
        (number, place, number, *[place] * 6, ctypes.c_uint32),
        None,
    )
    return found
