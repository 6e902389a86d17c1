"""Finds equal siblings, such as `layers.0` to `layers.31`, which can be drawn as one stack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from torchgraph_explorer.schema import ModuleGraph

LEAST_SIBLINGS = 3
"""Siblings that can be stacked; fewer are read at once."""

Stack: TypeAlias = "tuple[int, ...]"
"""Nodes, as indices in `ModuleGraph.nodes`, in the order of their numbers."""

_Ends: TypeAlias = "Mapping[int, frozenset[int]]"

_NUMBERED = re.compile(r"(.*?)(\d{1,9})", re.ASCII | re.DOTALL)


def stacks_of(
    graph: ModuleGraph, nodes: Sequence[int], edges: Sequence[int], *, kinds: Mapping[str, int]
) -> list[Stack]:
    """The stacks of an inside.

    Siblings have numbered names and equal modules inside. They stand in a chain, each with the data of the one before,
    or side by side, between the same nodes.

    Args:
        graph: The graph.
        nodes: The nodes of the inside, in the order of execution.
        edges: The edges of the inside.
        kinds: The kind of each module, see `kinds_of`.
    """
    sources, targets = _ends(graph, edges, reverse=True), _ends(graph, edges, reverse=False)
    found = []
    for siblings in _siblings(graph, nodes, kinds):
        for stack in (*_chains(siblings, targets), *_abreast(siblings, sources, targets)):
            if len(stack) >= LEAST_SIBLINGS and not _is_left_and_entered(stack, nodes, sources):
                found.append(stack)
    return found


def kinds_of(graph: ModuleGraph) -> dict[str, int]:
    """For each module, by name, a number: the same for modules of the same class that consist of equal modules."""
    parts: dict[str, list[tuple[str, int]]] = {}
    numbers: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
    kinds: dict[str, int] = {}
    for module in sorted(graph.modules, key=lambda one: one.name.count("."), reverse=True):  # parts before the whole
        of_module = tuple(sorted(parts.get(module.name, ())))
        kinds[module.name] = kind = numbers.setdefault((module.class_name, of_module), len(numbers))
        owner, _, name = module.name.rpartition(".")
        if module.name:
            parts.setdefault(owner, []).append((name, kind))
    return kinds


def _siblings(graph: ModuleGraph, nodes: Sequence[int], kinds: Mapping[str, int]) -> Iterator[Stack]:
    """Nodes of equal modules in the order of their numbers, of which each is called once."""
    families: dict[tuple[str, int], dict[int, list[int]]] = {}
    for node in nodes:
        call = graph.nodes[node].call
        named = None if call is None else _NUMBERED.fullmatch(graph.calls[call].module)
        if call is not None and named is not None:
            family = families.setdefault((named[1], kinds[graph.calls[call].module]), {})
            family.setdefault(int(named[2]), []).append(node)
    for family in families.values():
        yield tuple(some[0] for _, some in sorted(family.items()) if len(some) == 1)


def _chains(siblings: Stack, targets: _Ends) -> Iterator[Stack]:
    chain: list[int] = []
    for node in siblings:
        if chain and node not in targets.get(chain[-1], ()):
            yield tuple(chain)
            chain = []
        chain.append(node)
    yield tuple(chain)


def _abreast(siblings: Stack, sources: _Ends, targets: _Ends) -> Iterator[Stack]:
    beside: list[int] = []
    nothing: frozenset[int] = frozenset()
    for node in siblings:
        ends = sources.get(node, nothing), targets.get(node, nothing)
        if beside and ends != (sources.get(beside[-1], nothing), targets.get(beside[-1], nothing)):
            yield tuple(beside)
            beside = []
        beside.append(node)
    yield tuple(beside)


def _is_left_and_entered(stack: Stack, nodes: Sequence[int], sources: _Ends) -> bool:
    """Does data leave the stack and come back? It would stand above and below what is in between."""
    members, away = set(stack), set[int]()
    for node in nodes:
        before = sources.get(node, frozenset())
        if node in members:
            if before & away:
                return True
        elif before & members or before & away:
            away.add(node)
    return False


def _ends(graph: ModuleGraph, edges: Sequence[int], *, reverse: bool) -> dict[int, frozenset[int]]:
    found: dict[int, set[int]] = {}
    for at in edges:
        edge = graph.edges[at]
        start, end = (edge.target, edge.source) if reverse else (edge.source, edge.target)
        found.setdefault(start, set()).add(end)
    return {node: frozenset(some) for node, some in found.items()}
