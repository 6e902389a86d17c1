"""Parses the modules, calls, nodes and edges of a compressed graph stretch by stretch.

An empty message takes fifty times its bytes in memory, and these may be compressed a thousandfold. So the messages are
counted after each stretch of bytes, rather than parsed all at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, inflated
from torchgraph_explorer.record.limits import (
    GRAPH_BYTES,
    GRAPH_BYTES_FREE,
    GRAPH_BYTES_PER_BYTE,
    GRAPH_PARTS_FREE,
    GRAPH_PARTS_PER_BYTE,
    PART_BYTES,
)

_STRETCH = 1 << 15
"""Bytes that are parsed at a time, and the rest of the part that they end in. As messages, they take 2 MB at most."""

_LONG_SHAPE = 8
"""Dimensions of a tensor that count as one message."""

_LONGEST_VARINT = 10
"""Bytes."""

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
"""Protobuf's wire types. Source: https://protobuf.dev/programming-guides/encoding/"""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """The messages that a `GraphBody` is cut into."""

    modules: list[pb.Module] = field(default_factory=list)
    calls: list[pb.Call] = field(default_factory=list)
    nodes: list[pb.Node] = field(default_factory=list)
    edges: list[pb.Edge] = field(default_factory=list)


def graph_parts(body: bytes) -> GraphParts:
    """The parts of the `GraphBody` that was compressed to `body`.

    Raises:
        DamageError: It is not a `GraphBody`, or has more parts than a graph of its size can have.
    """
    parts, room = GraphParts(), GRAPH_PARTS_FREE + GRAPH_PARTS_PER_BYTE * len(body)
    for data in _stretches(_uncompressed(body)):
        room -= _take(parts, data)
        if room < 0:
            raise DamageError("it has more parts than a graph of so many bytes can have")
    return parts


def _uncompressed(body: bytes) -> bytes:
    return inflated(body, min(GRAPH_BYTES, GRAPH_BYTES_FREE + GRAPH_BYTES_PER_BYTE * len(body)))


def _take(parts: GraphParts, data: bytes) -> int:
    """Parse `data` and add it to `parts`; how many messages it has."""
    try:
        body = pb.GraphBody.FromString(data)
    except DecodeError as error:
        raise DamageError from error
    parts.modules.extend(body.modules)
    parts.calls.extend(body.calls)
    parts.nodes.extend(body.nodes)
    parts.edges.extend(body.edges)
    return (
        sum(map(_module_size, body.modules))
        + sum(map(_call_size, body.calls))
        + sum(2 + len(node.tensor.shape) // _LONG_SHAPE for node in body.nodes)
        + sum(1 + len(edge.series) for edge in body.edges)
    )


def _module_size(module: pb.Module) -> int:
    return 1 + len(module.extra_repr) + sum(map(_tensor_size, module.params))


def _call_size(call: pb.Call) -> int:
    return 1 + sum(map(_tensor_size, call.inputs)) + sum(map(_tensor_size, call.outputs))


def _tensor_size(tensor: pb.Tensor) -> int:
    return 1 + len(tensor.shape) // _LONG_SHAPE


def _stretches(data: bytes) -> Iterator[bytes]:
    """`data`, cut between fields."""
    begin = at = 0
    for at in _ends(data):
        if at - begin >= _STRETCH:
            yield data[begin:at]
            begin = at
    yield data[begin:at]


def _ends(data: bytes) -> Iterator[int]:
    """Where each field of `data` ends."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        size, at = _varint(data, at) if tag & 7 == _SIZED else _extent(data, at, tag & 7)
        at += size
        if at > end:
            raise DamageError
        if size > PART_BYTES:
            raise DamageError(f"one of its parts has {size} bytes")
        yield at


def _extent(data: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """The size of a field that is not length-delimited, whose tag ends at `at`, and where its content begins."""
    if wire_type == _VARINT:
        return 0, _varint(data, at)[1]
    if wire_type == _EIGHT_BYTES:
        return 8, at
    if wire_type == _FOUR_BYTES:
        return 4, at
    raise DamageError


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    if at < len(data) and data[at] < 0x80:  # nearly always
        return data[at], at + 1
    number = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise DamageError
