"""Parses the modules, calls, nodes and edges of a compressed graph one by one.

An empty message takes fifty times its bytes in memory, and these may be compressed a thousandfold. So the messages are
counted while they are parsed, rather than parsed all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

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

_LONG_SHAPE = 8
"""Dimensions of a tensor that count as one message."""

_LONGEST_VARINT = 10
"""Bytes."""

_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
"""Protobuf's wire types. Source: https://protobuf.dev/programming-guides/encoding/"""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """The messages of a `GraphBody`."""

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
    for number, data in _fields(_uncompressed(body)):
        if number in _PARTS:
            room -= _take(parts, number, data)
        if room < 0:
            raise DamageError("it has more parts than a graph of so many bytes can have")
    return parts


def _uncompressed(body: bytes) -> bytes:
    return inflated(body, min(GRAPH_BYTES, GRAPH_BYTES_FREE + GRAPH_BYTES_PER_BYTE * len(body)))


def _take(parts: GraphParts, number: int, data: bytes) -> int:
    """Parse `data` and add it to `parts`; how many messages it has."""
    name, parse, size = _PARTS[number]
    try:
        part = parse(data)
    except DecodeError as error:
        raise DamageError from error
    getattr(parts, name).append(part)
    return size(part)


def _module_size(module: pb.Module) -> int:
    return 1 + len(module.extra_repr) + sum(map(_tensor_size, module.params))


def _call_size(call: pb.Call) -> int:
    return 1 + sum(map(_tensor_size, call.inputs)) + sum(map(_tensor_size, call.outputs))


def _node_size(node: pb.Node) -> int:
    return 1 + _tensor_size(node.tensor)


def _tensor_size(tensor: pb.Tensor) -> int:
    return 1 + len(tensor.shape) // _LONG_SHAPE


_PARTS: Mapping[int, tuple[str, Callable[[bytes], Any], Callable[[Any], int]]] = MappingProxyType(
    {
        1: ("modules", pb.Module.FromString, _module_size),
        2: ("calls", pb.Call.FromString, _call_size),
        3: ("nodes", pb.Node.FromString, _node_size),
        4: ("edges", pb.Edge.FromString, lambda edge: 1 + len(edge.series)),
    }
)
"""By field number in `GraphBody`."""


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and content of each length-delimited field of `data`."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        size, begin = _varint(data, at) if tag & 7 == _SIZED else _extent(data, at, tag & 7)
        at = begin + size
        if at > end:
            raise DamageError
        if tag & 7 == _SIZED:
            if size > PART_BYTES:
                raise DamageError(f"one of its parts has {size} bytes")
            yield tag >> 3, data[begin:at]


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
    number = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        at += 1
        if byte < 0x80:
            return number | byte << shift, at
        number |= (byte & 0x7F) << shift
        shift += 7
    raise DamageError
