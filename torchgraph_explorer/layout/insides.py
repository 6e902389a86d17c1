"""The nodes and edges in each inside of a graph, found for all insides at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from torchgraph_explorer.labels import label_within, signature_place, tensor_name
from torchgraph_explorer.layout.folding import Folded, folded
from torchgraph_explorer.layout.sizes import call_size, tensor_size
from torchgraph_explorer.layout.stacks import Stack, kinds_of, stacks_of
from torchgraph_explorer.layout.structure import Size, Structure
from torchgraph_explorer.schema import ModuleGraph, Node

KEPT = 4
"""Graphs whose insides are kept; the result depends on the graph alone."""


@dataclass(frozen=True, slots=True)
class Inside:
    """One inside, to be placed.

    Attributes:
        folded: Its nodes and edges, as they are drawn.
        structure: The same without names, in the same order.
        stacks: The equal siblings that can be drawn as one node, or are.
    """

    folded: Folded
    structure: Structure
    stacks: tuple[Stack, ...]


class _Identical:
    """A graph as a key by identity: comparing its contents would take as long as using them."""

    def __init__(self, graph: ModuleGraph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return id(self.graph)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identical) and other.graph is self.graph


def inside_of(graph: ModuleGraph, call: int | None, *, folds: bool, stacked: Collection[int] | None = ()) -> Inside:
    """The inside of the call with this index; None for the top.

    `folds` draws repeated calls as one node, and `stacked` the equal siblings that begin with one of these nodes; None
    is all of them.
    """
    members = _members(_Identical(graph))
    nodes, edges = members.nodes.get(call, []), members.edges.get(call, [])
    stacks = tuple(stacks_of(graph, nodes, edges, kinds=members.kinds))
    chosen = [stack for stack in stacks if stacked is None or stack[0] in stacked]
    found = folded(graph, nodes, edges, repeats=folds, stacks=chosen)
    drawn = [graph.nodes[some[0]] for some in found.nodes]
    structure = Structure(
        sizes=tuple(_size(graph, members, some) for some in found.nodes),
        edges=tuple((edge.source, edge.target) for edge in found.edges),
        first=_by_signature(drawn, _of_kind(drawn, "input"), members.parameters.get(_module_of(graph, call), ())),
        last=_of_kind(drawn, "output"),
        back=tuple(at for at, edge in enumerate(found.edges) if edge.is_back),
    )
    return Inside(found, structure, stacks)


@dataclass(frozen=True, slots=True)
class _Members:
    """The nodes and edges of each inside; the class, the parameters of `forward` and the kind of each module."""

    nodes: dict[int | None, list[int]]
    edges: dict[int | None, list[int]]
    classes: dict[str, str]
    parameters: dict[str, tuple[str, ...]]
    kinds: dict[str, int]


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
    parameters = {module.name: module.forward_parameters for module in graph.modules}
    return _Members(nodes, edges, classes, parameters, kinds_of(graph))


def _size(graph: ModuleGraph, members: _Members, some: Sequence[int]) -> Size:
    """The size of the node that stands for `some`."""
    node, times = graph.nodes[some[0]], len(some)
    outer = _module_of(graph, node.inside)
    if node.call is None:
        last = graph.nodes[some[-1]].tensor  # whose number is the longest
        path = last.path if last is not None else ""
        return tensor_size(tensor_name(path, members.parameters[outer]), times=times)
    call = graph.calls[graph.nodes[some[-1]].call or 0] if times > 1 else graph.calls[node.call]
    label = label_within(call.module, outer, members.classes)
    has_inside = any(graph.nodes[one].call in members.nodes for one in some)
    return call_size(call, label, members.classes[call.module], has_inside=has_inside, times=times)


def _module_of(graph: ModuleGraph, call: int | None) -> str:
    """The module whose call this is; the model for None."""
    return "" if call is None else graph.calls[call].module


def _by_signature(drawn: Sequence[Node], inputs: Sequence[int], parameters: Sequence[str]) -> tuple[int, ...]:
    """The inputs in the order of the parameters of `forward`."""
    paths = {node: tensor.path if (tensor := drawn[node].tensor) else "" for node in inputs}
    return tuple(sorted(inputs, key=lambda node: signature_place(paths[node], parameters)))


def _of_kind(drawn: Sequence[Node], kind: str) -> tuple[int, ...]:
    return tuple(i for i, node in enumerate(drawn) if node.kind == kind)
