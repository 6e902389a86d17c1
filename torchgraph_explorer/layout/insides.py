"""The nodes and edges in each inside of a graph, found for all insides at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from torchgraph_explorer.labels import label_within, tensor_name
from torchgraph_explorer.layout.sizes import call_size, tensor_size
from torchgraph_explorer.layout.structure import Size, Structure
from torchgraph_explorer.schema import ModuleGraph, Node

KEPT = 4
"""Graphs whose insides are kept; the result depends on the graph alone."""


@dataclass(frozen=True, slots=True)
class Inside:
    """One inside, to be placed.

    Attributes:
        nodes: Indices in `ModuleGraph.nodes`.
        edges: Indices in `ModuleGraph.edges`.
        structure: The same without names, in the same order.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    structure: Structure


class _Identical:
    """A graph as a key by identity: comparing its contents would take as long as using them."""

    def __init__(self, graph: ModuleGraph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identical) and other.graph is self.graph


def inside_of(graph: ModuleGraph, call: int | None) -> Inside:
    """The inside of the call with this index; None for the top."""
    members = _members(_Identical(graph))
    nodes, edges = members.nodes.get(call, []), members.edges.get(call, [])
    number = {node: i for i, node in enumerate(nodes)}
    drawn = [graph.nodes[node] for node in nodes]
    structure = Structure(
        sizes=tuple(_size(graph, members, node) for node in drawn),
        edges=tuple((number[graph.edges[edge].source], number[graph.edges[edge].target]) for edge in edges),
        first=_of_kind(drawn, "input"),
        last=_of_kind(drawn, "output"),
    )
    return Inside(tuple(nodes), tuple(edges), structure)


@dataclass(frozen=True, slots=True)
class _Members:
    """The nodes and the edges of each inside, and of each module its class and the parameters of its `forward`."""

    nodes: dict[int | None, list[int]]
    edges: dict[int | None, list[int]]
    classes: dict[str, str]
    parameters: dict[str, tuple[str, ...]]


@lru_cache(maxsize=KEPT)
def _members(identical: _Identical) -> _Members:
    graph = identical.graph
    nodes: dict[int | None, list[int]] = {}
    edges: dict[int | None, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        nodes.setdefault(node.inside, []).append(number)
    for number, edge in enumerate(graph.edges):
        inside = graph.nodes[edge.source].inside
        if inside == graph.nodes[edge.target].inside:
            edges.setdefault(inside, []).append(number)
    classes = {module.name: module.class_name for module in graph.modules}
    return _Members(nodes, edges, classes, {module.name: module.forward_parameters for module in graph.modules})


def _size(graph: ModuleGraph, members: _Members, node: Node) -> Size:
    outer = "" if node.inside is None else graph.calls[node.inside].module
    if node.call is None:
        return tensor_size(tensor_name(node.tensor.path, members.parameters[outer]) if node.tensor else "")
    call = graph.calls[node.call]
    label = label_within(call.module, outer, members.classes)
    return call_size(call, label, members.classes[call.module], has_inside=node.call in members.nodes)


def _of_kind(drawn: Sequence[Node], kind: str) -> tuple[int, ...]:
    return tuple(i for i, node in enumerate(drawn) if node.kind == kind)
