"""Simplifies a traced module graph, and merges it with the calls of later steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import eq

from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Node, TensorInfo
from torchgraph_explorer.shapes import joined


def without_empty_insides(nodes: Sequence[Node], edges: Sequence[Edge]) -> tuple[tuple[Node, ...], tuple[Edge, ...]]:
    """The nodes and edges without the insides of calls that contain only their own inputs and outputs."""
    placed = {node.call: node for node in nodes if node.kind == "call"}
    shown = {node.inside for node in nodes if node.kind in ("call", "attached")}
    shown |= {call for call, node in placed.items() if node.inside is None}
    kept = [i for i, node in enumerate(nodes) if node.inside in shown]
    number = {old: new for new, old in enumerate(kept)}
    left = tuple(Edge(number[e.source], number[e.target], e.gradient, e.series) for e in edges if e.source in number)
    return tuple(nodes[i] for i in kept), left


def merge(known: ModuleGraph, calls_now: Sequence[Call], attached: Mapping[tuple[int, str], TensorInfo]) -> ModuleGraph:
    """`known` with None for dimensions that differ in the same calls now; `known` itself if all are the same.

    Args:
        known: The graph so far.
        calls_now: Its calls in another step.
        attached: That step's attached tensors, by call and path.
    """
    pairs = list(zip(known.calls, calls_now, strict=True))
    calls = known.calls if all(old == new for old, new in pairs) else tuple(_merge_call(*pair) for pair in pairs)
    shapes: dict[tuple[int | None, str, str], TensorInfo] = {
        (i, kind, info.path): info for i, call in enumerate(calls) for kind, info in _sides(call)
    }
    shapes |= {(at, "attached", path): info for (at, path), info in attached.items()}
    nodes = tuple(_merge_node(node, shapes) for node in known.nodes)
    return known if calls == known.calls and nodes == known.nodes else replace(known, calls=calls, nodes=nodes)


def is_same(known: ModuleGraph, calls_now: Sequence[Call], attached: Mapping[tuple[int, str], TensorInfo]) -> bool:
    """Whether `merge` would find the same calls and shapes. False where finding out would take as long as merging."""
    return not attached and len(known.calls) == len(calls_now) and all(map(eq, known.calls, calls_now))


def lacks_gradient(known: ModuleGraph, calls_now: Sequence[Call]) -> bool:
    """Whether gradient reaches tensors of the same calls now which it did not reach in `known`."""
    return any(
        new.requires_grad and not old.requires_grad
        for before, now in zip(known.calls, calls_now, strict=True)
        for old, new in zip((*before.inputs, *before.outputs), (*now.inputs, *now.outputs), strict=False)
    )


def with_gradients(known: ModuleGraph, traced: ModuleGraph) -> ModuleGraph:
    """`known` with the gradient that flows in `traced`, a later step with the same calls; `known` if none is new.

    What was frozen in one of the two steps is shown as in the other. If the nodes are others, they and the edges are
    those of `traced` alone.
    """
    if not lacks_gradient(known, traced.calls):
        return known
    drawn = known if [_place(each) for each in known.nodes] == [_place(each) for each in traced.nodes] else traced
    edges = {(edge.source, edge.target): edge for edge in traced.edges}
    if drawn is known:
        edges |= {_ends(edge): edge for edge in known.edges if edge.gradient or _ends(edge) not in edges}
    return replace(
        known,
        modules=_modules_with_gradients(known.modules, traced.modules),
        calls=tuple(_call_with_gradients(*pair) for pair in zip(known.calls, traced.calls, strict=True)),
        nodes=tuple(_node_with_gradient(*pair) for pair in zip(drawn.nodes, traced.nodes, strict=True)),
        edges=tuple(edges[ends] for ends in sorted(edges)),
    )


def _place(node: Node) -> tuple[str, int | None, int | None, str | None]:
    return node.kind, node.inside, node.call, None if node.tensor is None else node.tensor.path


def _ends(edge: Edge) -> tuple[int, int]:
    return edge.source, edge.target


def _modules_with_gradients(known: tuple[Module, ...], traced: tuple[Module, ...]) -> tuple[Module, ...]:
    by_name = {module.name: module for module in known}
    return tuple(_module_with_gradients(by_name.get(module.name, module), module) for module in traced)


def _module_with_gradients(known: Module, new: Module) -> Module:
    params = _infos_with_gradients(known.params, new.params)
    return replace(new, params=params, trainable_params=max(known.trainable_params, new.trainable_params))


def _call_with_gradients(known: Call, new: Call) -> Call:
    inputs, outputs = (known.inputs, new.inputs), (known.outputs, new.outputs)
    return replace(known, inputs=_infos_with_gradients(*inputs), outputs=_infos_with_gradients(*outputs))


def _node_with_gradient(known: Node, new: Node) -> Node:
    if known.tensor is None or new.tensor is None:
        return known
    return replace(known, tensor=_infos_with_gradients((known.tensor,), (new.tensor,))[0])


def _infos_with_gradients(known: tuple[TensorInfo, ...], new: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    reached = {info.path for info in new if info.requires_grad}
    return tuple(replace(info, requires_grad=True) if info.path in reached else info for info in known)


def _merge_call(known: Call, new: Call) -> Call:
    return replace(
        known, inputs=_merge_infos(known.inputs, new.inputs), outputs=_merge_infos(known.outputs, new.outputs)
    )


def _sides(call: Call) -> list[tuple[str, TensorInfo]]:
    return [("input", info) for info in call.inputs] + [("output", info) for info in call.outputs]


def _merge_infos(known: tuple[TensorInfo, ...], new: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    by_path = {info.path: info for info in new}
    return tuple(_merge_info(info, by_path.get(info.path, info)) for info in known)


def _merge_info(known: TensorInfo, new: TensorInfo) -> TensorInfo:
    """`known` itself if no further dimension becomes None, so that the graph is not written again for each new size."""
    if all(a == b or a is None for a, b in zip(known.shape, new.shape, strict=False)):
        return known
    return joined(known, new)


def _merge_node(node: Node, shapes: Mapping[tuple[int | None, str, str], TensorInfo]) -> Node:
    """A placeholder or attached tensor, with the dimensions that it has now."""
    if node.tensor is None or (new := shapes.get((node.inside, node.kind, node.tensor.path))) is None:
        return node
    return replace(node, tensor=_merge_info(node.tensor, new))
