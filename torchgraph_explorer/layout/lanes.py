"""Lanes beside a drawing, in which lines run past what they do not touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeAlias, TypeVar

from torchgraph_explorer.layout.structure import Line, Point, Structure

LANE_GAP = 10.0
"""Distance between lanes."""

TURN = 34.0
"""Height in which a line turns from a node to its lane."""

Bundle: TypeAlias = "tuple[str, int]"
"""The end that edges share: `from` or `to`, and its node."""

Key = TypeVar("Key", bound=Hashable)


def bundles(structure: Structure, edges: Sequence[int]) -> dict[Bundle, list[int]]:
    """The edges by the end that more of them share."""
    leaving = Counter(structure.edges[edge][0] for edge in edges)
    arriving = Counter(structure.edges[edge][1] for edge in edges)
    found: dict[Bundle, list[int]] = {}
    for edge in edges:
        source, target = structure.edges[edge]
        bundle = ("from", source) if leaving[source] >= arriving[target] else ("to", target)
        found.setdefault(bundle, []).append(edge)
    return found


def slots(spans: Mapping[Key, tuple[float, float]]) -> dict[Key, int]:
    """A slot for each span, such that no two spans of one slot stand side by side. A span ends before its stop."""
    free: list[int] = []
    taken: list[tuple[float, int]] = []  # from where on each is free again, and which it is
    found: dict[Key, int] = {}
    for key, (start, stop) in sorted(spans.items(), key=lambda item: item[1]):
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        found[key] = heappop(free) if free else len(taken)
        heappush(taken, (stop, found[key]))
    return found


def line(start: Point, end: Point, *, lane: float | None = None) -> Line:
    """A line that leaves and arrives vertically, through the lane at this x if there is one."""
    if lane is None:
        return _bend(start, end)
    above, below = (lane, start[1] + TURN), (lane, end[1] - TURN)
    return (*_bend(start, above), above, below, *_bend(below, end))


def _bend(start: Point, end: Point) -> Line:
    middle = (start[1] + end[1]) / 2
    return start, (start[0], middle), (end[0], middle), end
