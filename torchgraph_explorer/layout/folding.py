"""Folds repeated calls: a cell that a loop calls 999 times becomes one node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from torchgraph_explorer.schema import ModuleGraph, Node

LEAST_CALLS = 4
"""Calls of a module in a row that are folded; fewer are drawn one by one."""

MOST_ROUNDS = 64
"""How often a stretch is split at calls that are not repeated: real loops need two or three, a hostile record more."""

Repeated: TypeAlias = "tuple[int, ...]"
"""Nodes that are drawn as one, as indices in `ModuleGraph.nodes`, in the order of their calls."""

_Item: TypeAlias = "tuple[str, int]"
"""What a node stands for, the same for each call of a module, and the node."""


@dataclass(frozen=True, slots=True)
class FoldedEdge:
    """All edges from one drawn node to another, or to itself.

    Attributes:
        source: Index in `Folded.nodes`.
        target: Index in `Folded.nodes`.
        edges: Indices in `ModuleGraph.edges`.
        is_back: It leads to the next iteration, not further on.
    """

    source: int
    target: int
    edges: tuple[int, ...]
    is_back: bool


@dataclass(frozen=True, slots=True)
class Folded:
    """The nodes and edges of one inside as they are drawn.

    Attributes:
        nodes: For each drawn node, those that it stands for; one alone where nothing is repeated.
        edges: Between drawn nodes.
        loops: The repeated nodes that are called in turn, and each stack, as indices in `nodes`.
    """

    nodes: tuple[Repeated, ...]
    edges: tuple[FoldedEdge, ...]
    loops: tuple[tuple[int, ...], ...]


def folded(
    graph: ModuleGraph,
    nodes: Sequence[int],
    edges: Sequence[int],
    *,
    repeats: bool = True,
    stacks: Sequence[Repeated] = (),
) -> Folded:
    """Repeated calls, and repeated attached tensors, of an inside as one node each.

    A stretch of calls in which each module is called `LEAST_CALLS` times or more is a loop: `embed, cell, head, embed,
    cell, head, ...`. What is called only now and then in between ends it, so that a ReLU that serves many layers
    stands at each of them.

    Args:
        graph: The graph.
        nodes: The nodes of the inside, in the order of execution.
        edges: The edges of the inside.
        repeats: False leaves repeated calls alone.
        stacks: Other nodes that are drawn as one, none of which is repeated.
    """
    loops = [_by_name(loop) for loop in _loops(_items(graph, nodes), MOST_ROUNDS)] if repeats else []
    loops += [[stack] for stack in stacks]
    repeated = {node: each for loop in loops for each in loop for node in each}
    groups = list(dict.fromkeys(repeated.get(node, (node,)) for node in nodes))
    number = {group: at for at, group in enumerate(groups)}
    found = _edges(graph, groups, edges, stacks=frozenset(stacks), is_folded=bool(loops))
    return Folded(tuple(groups), found, tuple(tuple(number[each] for each in loop) for loop in loops))


def _edges(
    graph: ModuleGraph,
    groups: Sequence[Repeated],
    edges: Sequence[int],
    *,
    stacks: frozenset[Repeated],
    is_folded: bool,
) -> tuple[FoldedEdge, ...]:
    """The edges between groups; those within a stack are not drawn."""
    number = {node: at for at, group in enumerate(groups) for node in group}
    between: dict[tuple[int, int, int], list[int]] = {}
    for at in edges:
        edge = graph.edges[at]
        between.setdefault((number[edge.source], number[edge.target], 0 if is_folded else at), []).append(at)
    return tuple(
        FoldedEdge(source, target, tuple(some), _leads_back(groups[source], groups[target], stacks))
        for (source, target, _), some in between.items()
        if source != target or groups[source] not in stacks
    )


def _leads_back(source: Repeated, target: Repeated, stacks: frozenset[Repeated]) -> bool:
    if source in stacks or target in stacks:
        return False
    return len(source) + len(target) > 2 and source[0] >= target[0]


def _items(graph: ModuleGraph, nodes: Sequence[int]) -> list[_Item]:
    """The calls and attached tensors, in order. Inputs and outputs belong to no iteration."""
    return [(name, node) for node in nodes if (name := _name(graph, graph.nodes[node])) is not None]


def _name(graph: ModuleGraph, node: Node) -> str | None:
    if node.call is not None:
        return f"call {graph.calls[node.call].module}"
    if node.kind == "attached" and node.tensor is not None:
        return f"attached {re.sub(r' #[0-9]+', '', node.tensor.path)}"
    return None


def _loops(items: Sequence[_Item], rounds: int) -> list[Sequence[_Item]]:
    """The longest stretches in which everything is repeated."""
    found: list[Sequence[_Item]] = []
    stretches = [items]
    for _ in range(rounds):
        split: list[Sequence[_Item]] = []
        for stretch in stretches:
            counts = Counter(name for name, _ in stretch)
            if all(count >= LEAST_CALLS for count in counts.values()):
                found.append(stretch)
            else:
                split += _pieces(stretch, counts)
        stretches = split
    return sorted((one for one in found if one), key=lambda loop: loop[0][1])


def _pieces(stretch: Sequence[_Item], counts: Mapping[str, int]) -> list[Sequence[_Item]]:
    by_repetition = groupby(stretch, key=lambda item: counts[item[0]] >= LEAST_CALLS)
    return [tuple(piece) for is_repeated, piece in by_repetition if is_repeated]


def _by_name(loop: Sequence[_Item]) -> list[Repeated]:
    nodes: dict[str, list[int]] = {}
    for name, node in loop:
        nodes.setdefault(name, []).append(node)
    return [tuple(some) for some in nodes.values()]
