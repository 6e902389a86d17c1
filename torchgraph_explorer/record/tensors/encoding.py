"""The kept tensors of a step as bytes, and back: docs/format.md, Kept tensors.

The body is a table with two rows for each tensor, of its values and of its statistics, and then the blocks that the
rows tell of. Tensors may share blocks. A block is compressed if that makes it shorter than its elements.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast
from zlib import crc32

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from torchgraph_explorer.printable import printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, enveloped, inflated
from torchgraph_explorer.record.format.messages import KIND_NAMES, KINDS, ROLE_NAMES, ROLES
from torchgraph_explorer.record.limits import (
    CATEGORIES,
    GRAPH_BYTES_FREE,
    GRAPH_BYTES_PER_BYTE,
    KEPT_DIMENSIONS,
    KEPT_LAYOUT_BYTES,
    KEPT_TENSORS,
    MOST_INFLATED,
    REASONS,
)
from torchgraph_explorer.record.tensors.dtypes import SIZES
from torchgraph_explorer.record.tensors.graphs import TENSOR_KINDS, kind_of
from torchgraph_explorer.schema import KeptArray, KeptStep, Kind, Role, TensorKind

WORDS = 3
"""Words of 32 bits in a row of the table: where the block begins after the table, its size, and the check of both."""

ROW_BYTES = 4 * WORDS

_IS_LITTLE = sys.byteorder == "little"

_START_AND_SIZE = struct.Struct("<II")

FEW_BYTES = 512
"""A shorter block is not compressed: of many small tensors, that would take longer than all else."""

LOOKED_AT, RUNS = 1 << 10, 16
"""Bytes of a block that are looked at before it is compressed, in so many runs that are spread over it."""

LEAST_ZEROS = 1 / 4
"""A block is compressed only if so many of these bytes are zero, as in a ReLU's output, integers, and padding.

Floating-point numbers without zeros become a tenth shorter at most, and compressing takes 20 times as long as writing.
"""


@dataclass(frozen=True, slots=True)
class KeptLayout:
    """What is known of one kept tensor without reading it. See `schema.KeptArray`.

    Attributes:
        is_double: Its statistics are float64.
    """

    module: str
    call: int | None
    role: Role
    path: str
    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    batch_dim: int | None
    samples: tuple[int, ...]
    is_double: bool
    loss: str
    categories: tuple[str, ...]
    named: TensorKind
    node: str

    @property
    def key(self) -> tuple[str, int | None, Role, str, Kind]:
        """As `Series.key`."""
        return (self.module, self.call, self.role, self.path, self.kind)

    @property
    def neurons(self) -> tuple[int, ...]:
        """The tensor's shape without the batch."""
        dim = self.batch_dim
        return self.shape if dim is None else self.shape[:dim] + self.shape[dim + 1 :]

    @property
    def kept_shape(self) -> tuple[int, ...]:
        """The shape of what was kept."""
        dim = self.batch_dim
        return self.shape if dim is None else (*self.shape[:dim], len(self.samples), *self.shape[dim + 1 :])

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of the values and of the statistics, not compressed."""
        statistics = 0 if self.batch_dim is None else 3 * math.prod(self.neurons) * (8 if self.is_double else 4)
        return math.prod(self.kept_shape) * SIZES[self.dtype], statistics


class Block(NamedTuple):
    """A row of the table."""

    start: int
    size: int
    check: int


class LayoutEncoder:
    """Encodes what is known of the tensors of a step besides their elements. Most steps have the same as the last."""

    def __init__(self) -> None:
        """No step was encoded."""
        self._latest: tuple[list[object], bytes] = [], b""

    def encode(self, arrays: Sequence[KeptArray]) -> bytes:
        """The `TensorLayout` of `arrays`, compressed."""
        known, encoded = self._latest
        traits: list[object] = [_traits(one) for one in arrays]
        if traits != known or not encoded:
            encoded = zlib.compress(_layout_message(arrays).SerializeToString())
            self._latest = traits, encoded
        return encoded


def encode_step(step: KeptStep, graph: int | None = None, *, layouts: LayoutEncoder | None = None) -> bytes:
    """The record of a step's tensors, in its envelope; `graph` is the number of its dependency graph."""
    head = pb.Tensors(
        step=step.step,
        time=step.time,
        gradient_scale=step.gradient_scale,
        layout=(layouts or LayoutEncoder()).encode(step.arrays),
        label=None if step.label is None else printable(step.label),
        reasons=[printable(reason) for reason in step.reasons[:REASONS]],
        graph=graph,
    )
    return enveloped(pb.Head(tensors=head).SerializeToString(), _body(step.arrays))


def decode_layout(data: bytes) -> tuple[KeptLayout | None, ...]:
    """The tensors of a step; None in place of those that a newer release wrote.

    Raises:
        DamageError: `data` is no layout, contradicts itself, or exceeds a bound.
    """
    content = inflated(data, min(KEPT_LAYOUT_BYTES, GRAPH_BYTES_FREE + GRAPH_BYTES_PER_BYTE * len(data)))
    try:
        message = pb.TensorLayout.FromString(content)
    except DecodeError as error:
        raise DamageError from error
    if len(message.tensors) > KEPT_TENSORS or len(message.categories) > CATEGORIES:
        raise DamageError
    categories = tuple(message.categories)
    return tuple(_layout(one, categories) for one in message.tensors)


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


def _traits(one: KeptArray) -> tuple[object, ...]:
    """All of an array but its elements."""
    statistics = None if one.statistics is None else one.statistics.dtype
    said = (one.loss, one.categories, one.kind, one.node)
    return (one.key, one.dtype, one.shape, one.batch_dim, one.samples, statistics, said)


def _layout_message(arrays: Sequence[KeptArray]) -> pb.TensorLayout:
    categories = dict.fromkeys(name for one in arrays for name in one.categories)
    number = {name: at for at, name in enumerate(categories)} if len(categories) <= CATEGORIES else {}
    return pb.TensorLayout(
        tensors=[_message(one, number) for one in arrays], categories=[printable(name) for name in number]
    )


def _message(one: KeptArray, categories: Mapping[str, int]) -> pb.KeptTensor:
    module, call, role, path, kind = one.key
    return pb.KeptTensor(
        module=printable_path(module),
        call=call,
        role=ROLES[role],
        path=printable(path),
        kind=KINDS[kind],
        dtype=one.dtype,
        shape=one.shape,
        batch_dim=one.batch_dim,
        sample=np.diff(np.array(one.samples, np.int64), prepend=0).tolist(),
        is_double=one.statistics is not None and one.statistics.dtype == np.float64,
        loss=printable(one.loss),
        category=[categories[name] for name in one.categories] if categories else (),
        named=TENSOR_KINDS[one.kind],
        node=printable(one.node),
    )


def _layout(message: pb.KeptTensor, categories: tuple[str, ...]) -> KeptLayout | None:
    if message.role not in ROLE_NAMES or message.kind not in KIND_NAMES or message.dtype not in SIZES:
        return None
    shape = tuple(message.shape)
    dim = message.batch_dim if message.HasField("batch_dim") else None
    if len(shape) > KEPT_DIMENSIONS or (dim is not None and dim >= len(shape)):
        raise DamageError
    samples = np.cumsum(message.sample, dtype=np.uint64).tolist()
    if any(step == 0 for step in message.sample[1:]) or sum(message.sample) >= 1 << 63:
        raise DamageError
    if samples and (dim is None or samples[-1] >= shape[dim]):
        raise DamageError
    if len(message.category) not in (0, len(samples)) or max(message.category, default=-1) >= len(categories):
        raise DamageError
    return KeptLayout(
        module=message.module,
        call=message.call if message.HasField("call") else None,
        role=cast("Role", ROLE_NAMES[message.role]),
        path=message.path,
        kind=cast("Kind", KIND_NAMES[message.kind]),
        dtype=message.dtype,
        shape=shape,
        batch_dim=dim,
        samples=tuple(samples),
        is_double=message.is_double,
        loss=message.loss,
        categories=tuple(categories[at] for at in message.category),
        named=kind_of(message.named),
        node=message.node,
    )


def _body(arrays: Sequence[KeptArray]) -> bytes:
    table: list[int] = []
    blocks: list[bytes] = []
    known: dict[int, tuple[int, ...]] = {id(None): (0,) * WORDS}
    end = 0
    for one in arrays:
        for piece in (one.values, one.statistics):
            block = known.get(id(piece))
            if block is None and piece is not None:
                data = _packed(piece)
                block = known[id(piece)] = (end, len(data), _check(end, data))
                blocks.append(data)
                end += len(data)
            table += block or ()
    return b"".join((struct.pack(f"<{len(table)}I", *table), *blocks))


def _packed(piece: npt.NDArray[np.uint8 | np.float32 | np.float64]) -> bytes:
    data = piece.tobytes() if _IS_LITTLE else piece.astype(piece.dtype.newbyteorder("<"), copy=False).tobytes()
    if len(data) < FEW_BYTES or not _has_zeros(data):
        return data
    packed = zlib.compress(data, 1)
    return packed if len(packed) < len(data) else data


def _has_zeros(data: bytes) -> bool:
    """Whether a quarter of the bytes are zero, as far as a sample of them shows."""
    if len(data) <= LOOKED_AT:
        return data.count(0) >= LEAST_ZEROS * len(data)
    spacing, run = len(data) // RUNS, LOOKED_AT // RUNS
    looked_at = b"".join([data[at * spacing : at * spacing + run] for at in range(RUNS)])
    return looked_at.count(0) >= LEAST_ZEROS * LOOKED_AT


def _check(start: int, data: bytes) -> int:
    return crc32(data, crc32(_START_AND_SIZE.pack(start, len(data))))
