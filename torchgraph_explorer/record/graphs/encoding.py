"""Module graphs as compressed protobuf, and back."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias, cast

from torchgraph_explorer.printable import LONGEST_TEXT, printable, printable_path
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.messages import ROLE_NAMES, ROLES
from torchgraph_explorer.record.graphs.parts import GraphParts, graph_parts
from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Node, NodeKind, Role, SeriesKey, TensorInfo
from torchgraph_explorer.shapes import MOST_SIZES

_KINDS = MappingProxyType(
    {"input": pb.Node.INPUT, "output": pb.Node.OUTPUT, "call": pb.Node.CALL, "attached": pb.Node.ATTACHED}
)
_KIND_NAMES = MappingProxyType({number: name for name, number in _KINDS.items()})
_VARIED = -1

_Decode: TypeAlias = Callable[[pb.Tensor], TensorInfo]


def encode_graph(graph: ModuleGraph) -> tuple[pb.Graph, bytes]:
    """The head and the body of the record of `graph`."""
    numbers = {module.name: number for number, module in enumerate(graph.modules)}
    places: dict[tuple[str, int | None], int] = {(one.module, one.call): at for at, one in enumerate(graph.calls)}
    message = pb.GraphBody(
        modules=[_module_message(module) for module in graph.modules],
        calls=[_call_message(call, numbers[call.module]) for call in graph.calls],
        nodes=[_node_message(node) for node in graph.nodes],
        edges=[_edge_message(edge, places) for edge in graph.edges],
    )
    body = zlib.compress(message.SerializeToString())
    return pb.Graph(id=graph.id, first_step=graph.first_step, check=zlib.crc32(body)), body


def decode_graph(head: pb.Graph, body: bytes) -> tuple[ModuleGraph, int]:
    """The graph that `encode_graph` turned into `head` and `body`, and how many nodes of unknown kinds it lacks.

    The caller has verified the check of `body`.

    Raises:
        DamageError: They are not a graph, or one with an invalid index.
    """
    parts = graph_parts(body)
    _require_sound(parts)
    tensor = _Tensors().value
    modules = tuple(_module_value(module, tensor) for module in parts.modules)
    calls = tuple(_call_value(call, modules[call.module].name, tensor) for call in parts.calls)
    known = [at for at, node in enumerate(parts.nodes) if node.kind in _KIND_NAMES]
    graph = ModuleGraph(
        id=head.id,
        first_step=head.first_step,
        modules=modules,
        calls=calls,
        nodes=tuple(_node_value(parts.nodes[at], tensor) for at in known),
        edges=_edges_between(parts.edges, known, calls),
    )
    return graph, len(parts.nodes) - len(known)


def _edge_message(edge: Edge, places: Mapping[tuple[str, int | None], int]) -> pb.Edge:
    series = [
        pb.EdgeSeries(call=places[module, call], role=ROLES[role], path=printable(path))
        for module, call, role, path, _ in edge.series
    ]
    return pb.Edge(source=edge.source, target=edge.target, gradient=edge.gradient, series=series)


def _edge_series(messages: Iterable[pb.EdgeSeries], calls: Sequence[Call]) -> tuple[SeriesKey, ...]:
    """The series of one edge; none if one of them is not known, since only all of them together are its gradient."""
    found: list[SeriesKey] = []
    for one in messages:
        if one.role not in ROLE_NAMES:
            return ()
        call = calls[one.call]
        found.append((call.module, call.call, cast("Role", ROLE_NAMES[one.role]), one.path, "grad_norm"))
    return tuple(found)


def _edges_between(edges: Sequence[pb.Edge], known: Sequence[int], calls: Sequence[Call]) -> tuple[Edge, ...]:
    """The edges between nodes of known kinds, which are renumbered."""
    place = {node: at for at, node in enumerate(known)}
    ends = ((place.get(edge.source), place.get(edge.target), edge) for edge in edges)
    return tuple(
        Edge(source, target, edge.gradient, _edge_series(edge.series, calls))
        for source, target, edge in ends
        if source is not None and target is not None
    )


def _require_sound(parts: GraphParts) -> None:
    """Refuse a graph with an index out of range, or with a call inside itself."""
    nodes = len(parts.nodes)
    sound = (
        all(_is_sound_call(call, at, len(parts.modules)) for at, call in enumerate(parts.calls))
        and all(_is_sound_node(node, len(parts.calls)) for node in parts.nodes)
        and all(edge.source < nodes and edge.target < nodes for edge in parts.edges)
        and all(one.call < len(parts.calls) for edge in parts.edges for one in edge.series)
    )
    if not sound:
        raise DamageError("it refers to what it does not hold")


def _is_sound_call(call: pb.Call, at: int, modules: int) -> bool:
    return call.module < modules and (call.parent < at or not call.HasField("parent"))


def _is_sound_node(node: pb.Node, calls: int) -> bool:
    if node.kind not in _KIND_NAMES:
        return True  # it is left out
    if node.kind == pb.Node.CALL:
        return node.HasField("call") and node.call < calls and (node.inside < node.call or not node.HasField("inside"))
    return node.HasField("tensor") and (node.inside < calls or not node.HasField("inside"))


def _module_message(module: Module) -> pb.Module:
    return pb.Module(
        name=printable_path(module.name),
        class_name=printable(module.class_name),
        class_path=printable_path(module.class_path),
        extra_repr=[pb.Fact(key=printable(key), value=_text(value)) for key, value in module.extra_repr],
        params=[_tensor_message(tensor) for tensor in module.params],
        own_params=module.own_params,
        total_params=module.total_params,
        trainable_params=module.trainable_params,
        forward_parameters=module.forward_parameters,
    )


def _module_value(message: pb.Module, tensor: _Decode) -> Module:
    return Module(
        name=message.name,
        class_name=message.class_name,
        class_path=message.class_path,
        extra_repr=tuple((fact.key, fact.value) for fact in message.extra_repr),
        params=tuple(map(tensor, message.params)),
        own_params=message.own_params,
        total_params=message.total_params,
        trainable_params=message.trainable_params,
        forward_parameters=tuple(message.forward_parameters),
    )


def _call_message(call: Call, module: int) -> pb.Call:
    return pb.Call(
        module=module,
        call=call.call,
        parent=call.parent,
        inputs=[_tensor_message(tensor) for tensor in call.inputs],
        outputs=[_tensor_message(tensor) for tensor in call.outputs],
    )


def _call_value(message: pb.Call, module: str, tensor: _Decode) -> Call:
    return Call(
        module=module,
        call=message.call,
        parent=message.parent if message.HasField("parent") else None,
        inputs=tuple(map(tensor, message.inputs)),
        outputs=tuple(map(tensor, message.outputs)),
    )


def _node_message(node: Node) -> pb.Node:
    tensor = None if node.tensor is None else _tensor_message(node.tensor)
    return pb.Node(kind=_KINDS[node.kind], inside=node.inside, call=node.call, tensor=tensor)


def _node_value(message: pb.Node, tensor: _Decode) -> Node:
    return Node(
        kind=cast("NodeKind", _KIND_NAMES[message.kind]),
        inside=message.inside if message.HasField("inside") else None,
        call=message.call if message.kind == pb.Node.CALL else None,
        tensor=tensor(message.tensor) if message.HasField("tensor") else None,
    )


def _text(value: str) -> str:
    """A module's `extra_repr`, which may have several lines."""
    return printable(value, most=LONGEST_TEXT, lines=True)


def _tensor_message(tensor: TensorInfo) -> pb.Tensor:
    shape = [_VARIED if size is None else size for size in tensor.shape]
    varied = [pb.Sizes(size=sizes) for sizes in tensor.varied]
    return pb.Tensor(
        path=printable(tensor.path),
        shape=shape,
        dtype=tensor.dtype,
        requires_grad=tensor.requires_grad,
        varied=varied,
    )


class _Tensors:
    """The tensors of one graph. Those that are equal are one value: a loop has the same ones at each call."""

    def __init__(self) -> None:
        self._known: dict[bytes, TensorInfo] = {}

    def value(self, message: pb.Tensor) -> TensorInfo:
        """The tensor that `message` was made of."""
        content = message.SerializeToString()
        known = self._known.get(content)
        if known is None:
            known = self._known[content] = _tensor_value(message)
        return known


def _tensor_value(message: pb.Tensor) -> TensorInfo:
    shape = tuple(None if size == _VARIED else size for size in message.shape)
    varied = tuple(tuple(sizes.size[:MOST_SIZES]) for sizes in message.varied[: shape.count(None)])
    return TensorInfo(message.path, shape, message.dtype, message.requires_grad, varied)
