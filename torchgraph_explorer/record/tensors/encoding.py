"""The kept tensors of a step as bytes, and back: docs/format.md, Kept tensors.

The body is a table with two rows for each tensor, of its values and of its statistics, and then the blocks that the
rows tell of: `blocks.py` encodes it.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from zlib import crc32

import numpy as np
from google.protobuf.message import DecodeError

from torchgraph_explorer.printable import printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, aligned, enveloped_head, inflated
from torchgraph_explorer.record.format.messages import KIND_NAMES, KINDS, ROLE_NAMES, ROLES
from torchgraph_explorer.record.limits import (
    CATEGORIES,
    GRAPH_BYTES_FREE,
    GRAPH_BYTES_PER_BYTE,
    KEPT_DIMENSIONS,
    KEPT_LAYOUT_BYTES,
    KEPT_TENSORS,
    REASONS,
)
from torchgraph_explorer.record.tensors.blocks import SPARE, body_of
from torchgraph_explorer.record.tensors.dtypes import SIZES
from torchgraph_explorer.record.tensors.graphs import TENSOR_KINDS, kind_of
from torchgraph_explorer.reused_memory import Pieces
from torchgraph_explorer.schema import KeptArrays, KeptForm, KeptStep, Kind, Role, TensorKind


@dataclass(frozen=True, slots=True)
class KeptLayout:
    """What is known of one kept tensor without reading it. See `schema.KeptArrays`.

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
        """The `Series.key`."""
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


class LayoutEncoder:
    """Encodes what is known of the tensors of a step besides their elements. Most steps have the same as the last."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self._latest: tuple[object, bytes] = (), b""

    def encode(self, arrays: KeptArrays) -> bytes:
        """The `TensorLayout` of `arrays`, compressed."""
        known, encoded = self._latest
        if arrays.traits != known:
            encoded = zlib.compress(_layout_message(arrays).SerializeToString())
            self._latest = arrays.traits, encoded
        return encoded


def encode_step(
    step: KeptStep, graph: int | None = None, *, layouts: LayoutEncoder, pieces: Pieces, mark: int
) -> memoryview:
    """The record of a step's tensors, in its envelope and in memory of `pieces`.

    `graph` is the number of the step's dependency graph, and `mark` is the session's.
    """
    head = pb.Tensors(
        step=step.step,
        time=step.time,
        gradient_scale=step.gradient_scale,
        layout=layouts.encode(step.arrays),
        label=None if step.label is None else printable(step.label),
        reasons=[printable(reason) for reason in step.reasons[:REASONS]],
        graph=graph,
    )
    body, encoded = body_of(step.arrays), pb.Head(session=mark, tensors=head).SerializeToString()
    begun = np.frombuffer(enveloped_head(encoded, body.size), np.uint8)
    first, end = len(begun), len(begun) + body.size
    memory = pieces.take(aligned(end) + SPARE)
    memory[:first] = begun
    body.write(memory[first:], crc32(encoded))
    memory[end : aligned(end)] = 0
    return memory.data[: aligned(end)]


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


def _layout_message(arrays: KeptArrays) -> pb.TensorLayout:
    categories = dict.fromkeys(name for names in arrays.categories for name in names)
    number = {name: at for at, name in enumerate(categories)} if len(categories) <= CATEGORIES else {}
    tensors = [_message(number, *one) for one in zip(*arrays.traits, strict=True)]
    return pb.TensorLayout(tensors=tensors, categories=[printable(name) for name in number])


def _message(  # noqa: PLR0917  # in the order of the columns
    numbers: Mapping[str, int],
    key: tuple[str, int | None, str, str, str],
    form: KeptForm,
    samples: tuple[int, ...],
    loss: str,
    categories: tuple[str, ...],
    named: TensorKind,
    node: str,
) -> pb.KeptTensor:
    module, call, role, path, kind = key
    return pb.KeptTensor(
        module=printable_path(module),
        call=call,
        role=ROLES[role],
        path=printable(path),
        kind=KINDS[kind],
        dtype=form.dtype,
        shape=form.shape,
        batch_dim=form.batch_dim,
        sample=np.diff(np.array(samples, np.int64), prepend=0).tolist(),
        is_double=form.is_double,
        loss=printable(loss),
        category=[numbers[name] for name in categories] if numbers else (),
        named=TENSOR_KINDS[named],
        node=printable(node),
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
