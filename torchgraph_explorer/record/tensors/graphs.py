"""The dependency graph of named tensors as bytes, and back."""

from __future__ import annotations

import zlib
from types import MappingProxyType
from typing import cast
from zlib import crc32

from google.protobuf.message import DecodeError

from torchgraph_explorer.printable import printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, enveloped, inflated
from torchgraph_explorer.record.format.messages import ROLE_NAMES, ROLES
from torchgraph_explorer.record.limits import (
    GRAPH_BYTES_FREE,
    GRAPH_BYTES_PER_BYTE,
    KEPT_TENSORS,
    TENSOR_GRAPH_BYTES,
    TENSOR_GRAPH_EDGES,
)
from torchgraph_explorer.schema import NamedTensor, Role, TensorEdge, TensorGraph, TensorKind

TENSOR_KINDS = MappingProxyType(
    {
        "intermediate": pb.NamedTensor.INTERMEDIATE,
        "input": pb.NamedTensor.INPUT,
        "parameter": pb.NamedTensor.PARAMETER,
        "target": pb.NamedTensor.TARGET,
        "loss": pb.NamedTensor.LOSS,
    }
)
_KIND_NAMES = MappingProxyType({int(number): name for name, number in TENSOR_KINDS.items()})


def kind_of(number: int) -> TensorKind:
    """The kind that is written as `number`; `intermediate` for one of a later release."""
    return cast("TensorKind", _KIND_NAMES.get(number, "intermediate"))


def encode_tensor_graph(graph: TensorGraph, number: int, *, mark: int) -> bytes:
    """The record of a graph, in its envelope, with the session's `mark`."""
    body = pb.TensorGraphBody(
        tensors=[
            pb.NamedTensor(
                module=printable_path(one.module),
                call=one.call,
                role=ROLES[one.role],
                path=printable(one.path),
                kind=TENSOR_KINDS[one.kind],
                node=printable(one.node),
            )
            for one in graph.tensors
        ],
        edges=[pb.Edge(source=one.source, target=one.target, gradient=one.gradient) for one in graph.edges],
    )
    data = zlib.compress(body.SerializeToString())
    head = pb.Head(session=mark, tensor_graph=pb.TensorGraph(id=number, check=crc32(data)))
    return enveloped(head.SerializeToString(), data)


def decode_tensor_graph(data: bytes, check: int) -> TensorGraph:
    """The graph whose record has the body `data`. Tensors of unknown roles are left out.

    Raises:
        DamageError: The check is wrong, or it is no graph, contradicts itself, or exceeds a bound.
    """
    if crc32(data) != check:
        raise DamageError
    content = inflated(data, min(TENSOR_GRAPH_BYTES, GRAPH_BYTES_FREE + GRAPH_BYTES_PER_BYTE * len(data)))
    try:
        body = pb.TensorGraphBody.FromString(content)
    except DecodeError as error:
        raise DamageError from error
    count = len(body.tensors)
    if count > KEPT_TENSORS or len(body.edges) > TENSOR_GRAPH_EDGES:
        raise DamageError
    if any(edge.source >= count or edge.target >= count for edge in body.edges):
        raise DamageError
    known = [at for at, one in enumerate(body.tensors) if one.role in ROLE_NAMES]
    place = {old: new for new, old in enumerate(known)}
    return TensorGraph(
        tensors=tuple(_tensor(body.tensors[at]) for at in known),
        edges=tuple(
            TensorEdge(place[edge.source], place[edge.target], edge.gradient)
            for edge in body.edges
            if edge.source in place and edge.target in place
        ),
    )


def _tensor(message: pb.NamedTensor) -> NamedTensor:
    return NamedTensor(
        module=message.module,
        call=message.call if message.HasField("call") else None,
        role=cast("Role", ROLE_NAMES[message.role]),
        path=message.path,
        kind=kind_of(message.kind),
        node=message.node,
    )
