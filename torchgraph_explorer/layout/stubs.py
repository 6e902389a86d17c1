"""Chooses the edges that are drawn as labelled stubs at their ends, so that the others can be followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from torchgraph_explorer.layout.structure import Size, Structure, layer_of

FAN_OUT, FAN_IN = 4, 6
"""Layers to which far edges lead from one node, and from which they lead to one, from which on they are stubs. An edge
is far if it passes a layer. Many edges to one layer belong to nodes side by side, which lines show best."""

MOST_LINES, SHORT = 12, 2
"""Lines that pass one layer; where there are more, the longest of them are stubs, but for those of so few layers."""

MOST_LOOKED_AT = 4_000
"""Far edges up to which it is tried which of them have room; beyond, all of them are stubs."""

LABEL_ROOM, COUNT_ROOM = 116.0, 42.0
"""Pixels kept free on each side of a node for the labels of stubs that arrive, or for the count of those that leave."""


def stub_edges(structure: Structure) -> frozenset[int]:
    """The numbers of the edges to draw as stubs.

    Each node keeps at least one line if it has any edge, and a source of stubs keeps the line to the nearest target:
    the lines alone put all nodes in order.
    """
    layer = layer_of(structure)
    length = [layer[target] - layer[source] for source, target in structure.edges]
    far = [edge for edge, layers in enumerate(length) if layers > 1]
    fans = _fans(structure, layer, far)
    crowded = _crowded(structure, layer, [edge for edge in far if length[edge] > SHORT and edge not in fans])
    return frozenset(fans | crowded) - _kept(structure, length, fans | crowded)


def without_stubs(structure: Structure, stubs: frozenset[int]) -> Structure:
    """The same nodes, with room for the labels at their sides, and the edges that are lines."""
    ends = [structure.edges[edge] for edge in stubs]
    labelled, counted = {target for _, target in ends}, {source for source, _ in ends}
    sizes = (
        _with_room(size, LABEL_ROOM if node in labelled else COUNT_ROOM if node in counted else 0.0)
        for node, size in enumerate(structure.sizes)
    )
    lines = [edge for edge in range(len(structure.edges)) if edge not in stubs]
    back = set(structure.back)
    return replace(
        structure,
        sizes=tuple(sizes),
        edges=tuple(structure.edges[edge] for edge in lines),
        back=tuple(at for at, edge in enumerate(lines) if edge in back),
    )


def passing(layer: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """How many of `edges` pass each layer without an end in it."""
    changes = [0] * (max(layer, default=0) + 2)
    for source, target in edges:
        if layer[target] - layer[source] > 1:
            changes[layer[source] + 1] += 1
            changes[layer[target]] -= 1
    return list(accumulate(changes))


def _with_room(size: Size, room: float) -> Size:
    return size[0] + 2 * room, size[1]


def _fans(structure: Structure, layer: Sequence[int], far: Sequence[int]) -> set[int]:
    to: dict[int, set[int]] = {}
    come: dict[int, set[int]] = {}
    for edge in far:
        source, target = structure.edges[edge]
        to.setdefault(source, set()).add(layer[target])
        come.setdefault(target, set()).add(layer[source])
    ends = ((edge, *structure.edges[edge]) for edge in far)
    return {edge for edge, source, target in ends if len(to[source]) >= FAN_OUT or len(come[target]) >= FAN_IN}


def _crowded(structure: Structure, layer: Sequence[int], far: Sequence[int]) -> set[int]:
    """Those of `far` that find no room beside shorter ones."""
    if max(passing(layer, (structure.edges[edge] for edge in far))) <= MOST_LINES:
        return set()
    if len(far) > MOST_LOOKED_AT:
        return set(far)
    lines, crowded = [0] * (max(layer) + 1), set()
    spans = [(layer[source] + 1, layer[target]) for source, target in structure.edges]
    for edge in sorted(far, key=lambda one: spans[one][1] - spans[one][0]):
        passed = range(*spans[edge])
        if any(lines[at] >= MOST_LINES for at in passed):
            crowded.add(edge)
            continue
        for at in passed:
            lines[at] += 1
    return crowded


def _kept(structure: Structure, length: Sequence[int], stubs: set[int]) -> set[int]:
    """The shortest stub of each node that has no line otherwise: of those that leave it, else of those that arrive."""
    leaving = {source for edge, (source, _) in enumerate(structure.edges) if edge not in stubs}
    arriving = {target for edge, (_, target) in enumerate(structure.edges) if edge not in stubs}
    kept = set()
    for edge in sorted(stubs, key=lambda one: (length[one], one)):
        source, target = structure.edges[edge]
        if source not in leaving or (target not in arriving and target not in leaving):
            kept.add(edge)
            leaving.add(source)
            arriving.add(target)
    return kept
