"""A plain layout in rows, for structures that take Graphviz too long or come out tangled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from torchgraph_explorer.layout.structure import STACK, Line, Placement, Point, Structure, layers, loop_line

ROW_GAP, COLUMN_GAP, MARGIN = 34.0, 24.0, 8.0

WIDEST_ROW = 12
"""Nodes in one row; a layer that has more takes several."""

LANE_GAP, ALL_LANES = 10.0, 400.0
"""Distance between lines beside the rows, and how far all of them reach on one side at most."""


@dataclass(frozen=True, slots=True)
class _RowLayout:
    """The places of all nodes, with rows centred on x = 0.

    Attributes:
        row_of: Each node's row.
        centres: Each node's centre.
        reach: How far each row reaches to both sides.
        height: Of all rows, with margins.
    """

    row_of: tuple[int, ...]
    centres: tuple[Point, ...]
    reach: tuple[float, ...]
    height: float


def place_in_rows(structure: Structure, *, reason: str) -> Placement:
    """Place `structure` in rows, each node below all nodes that it gets data from, except in circles.

    A line that would cross other rows goes around them. Lines from one node, or to one node, share their way.
    """
    rows = _place_rows(structure, _rows(structure))
    lanes = _lanes(structure, rows)
    back = {edge: _line_back(structure, rows, edge) for edge in structure.back}
    lines = [
        back.get(edge) or _line(*_ends(structure, rows, edge), lane=lanes.get(edge))
        for edge in range(len(structure.edges))
    ]
    beside = [*lanes.values(), *(x for line in back.values() for x, _ in line)]
    outermost = max([*rows.reach, *(abs(x) for x in beside)]) + MARGIN
    return Placement(
        width=round(2 * outermost, 1),
        height=round(rows.height, 1),
        centres=_moved(rows.centres, outermost),
        lines=tuple(_moved(line, outermost) for line in lines),
        approximate=reason,
    )


def _rows(structure: Structure) -> list[list[int]]:
    return [
        layer[start : start + WIDEST_ROW] for layer in layers(structure) for start in range(0, len(layer), WIDEST_ROW)
    ]


def _place_rows(structure: Structure, rows: Sequence[Sequence[int]]) -> _RowLayout:
    count = len(structure.sizes)
    row_of, centres = [0] * count, [(0.0, 0.0)] * count
    reach: list[float] = []
    y = MARGIN
    for number, row in enumerate(rows):
        height = max(structure.sizes[node][1] for node in row)
        reach.append((sum(structure.sizes[node][0] + COLUMN_GAP for node in row) - COLUMN_GAP) / 2)
        x = -reach[-1]
        for node in row:
            width = structure.sizes[node][0]
            row_of[node], centres[node] = number, (x + width / 2, y + height / 2)
            x += width + COLUMN_GAP
        y += height + ROW_GAP
    return _RowLayout(tuple(row_of), tuple(centres), tuple(reach), y - ROW_GAP + MARGIN)


def _lanes(structure: Structure, rows: _RowLayout) -> dict[int, float]:
    """The x at which each edge that passes other rows runs beside them.

    Edges are identified by their number. Those from one node, or else to one, share a lane; lanes that are used at
    different heights share an x.
    """
    far = [
        edge for edge, (source, target) in enumerate(structure.edges) if rows.row_of[target] - rows.row_of[source] > 1
    ]
    bundles = _bundles(structure, far)
    spans = {bundle: _span(structure, rows, edges) for bundle, edges in bundles.items()}
    slots = _slots(spans)
    gap = min(LANE_GAP, ALL_LANES / (1 + max(slots.values(), default=0) // 2))
    x = {bundle: _lane_x(slots[bundle], gap, max(rows.reach[slice(*spans[bundle])])) for bundle in bundles}
    return {edge: x[bundle] for bundle, edges in bundles.items() for edge in edges}


def _bundles(structure: Structure, edges: Sequence[int]) -> dict[tuple[str, int], list[int]]:
    """The edges by the end that more of them share."""
    leaving = Counter(structure.edges[edge][0] for edge in edges)
    coming = Counter(structure.edges[edge][1] for edge in edges)
    found: dict[tuple[str, int], list[int]] = {}
    for edge in edges:
        source, target = structure.edges[edge]
        bundle = ("from", source) if leaving[source] >= coming[target] else ("to", target)
        found.setdefault(bundle, []).append(edge)
    return found


def _span(structure: Structure, rows: _RowLayout, edges: Sequence[int]) -> tuple[int, int]:
    """The first row that `edges` touch, and the one after the last."""
    touched = [rows.row_of[end] for edge in edges for end in structure.edges[edge]]
    return min(touched), max(touched) + 1


def _slots(spans: dict[tuple[str, int], tuple[int, int]]) -> dict[tuple[str, int], int]:
    """A slot for each bundle, such that no two bundles of one slot stand side by side."""
    free: list[int] = []
    taken: list[tuple[int, int]] = []  # from which row on each is free again, and which it is
    slots: dict[tuple[str, int], int] = {}
    for bundle, (start, stop) in sorted(spans.items(), key=lambda item: item[1]):
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        slots[bundle] = heappop(free) if free else len(taken)
        heappush(taken, (stop, slots[bundle]))
    return slots


def _lane_x(slot: int, gap: float, reach: float) -> float:
    """Slots take turns on the right and on the left."""
    away = reach + COLUMN_GAP + (slot // 2) * gap
    return -away if slot % 2 else away


def _ends(structure: Structure, rows: _RowLayout, edge: int) -> tuple[Point, Point]:
    """The middle of the source's lower side, and of the target's upper one."""
    source, target = structure.edges[edge]
    (from_x, from_y), (to_x, to_y) = rows.centres[source], rows.centres[target]
    return (from_x, from_y + structure.sizes[source][1] / 2), (to_x, to_y - structure.sizes[target][1] / 2)


def _line(start: Point, end: Point, *, lane: float | None) -> Line:
    if lane is None:
        return _bend(start, end)
    above, below = (lane, start[1] + ROW_GAP), (lane, end[1] - ROW_GAP)
    return (*_bend(start, above), above, below, *_bend(below, end))


def _line_back(structure: Structure, rows: _RowLayout, edge: int) -> Line:
    """From the right side of the source to that of the target, around what stands there."""
    source, target = structure.edges[edge]
    if source == target:
        return loop_line(rows.centres[source], structure.sizes[source])
    (from_x, from_y), (to_x, to_y) = rows.centres[source], rows.centres[target]
    start = from_x + structure.sizes[source][0] / 2 + STACK, from_y + structure.sizes[source][1] / 4
    end = to_x + structure.sizes[target][0] / 2 + STACK, to_y - structure.sizes[target][1] / 4
    low, high = sorted((rows.row_of[source], rows.row_of[target]))
    lane = max(rows.reach[low : high + 1]) + COLUMN_GAP
    middle = lane, (start[1] + end[1]) / 2
    return start, (lane, start[1]), (lane, start[1]), middle, (lane, end[1]), (lane, end[1]), end


def _bend(start: Point, end: Point) -> Line:
    """A piece that leaves and arrives vertically."""
    middle = (start[1] + end[1]) / 2
    return start, (start[0], middle), (end[0], middle), end


def _moved(points: Sequence[Point], right: float) -> tuple[Point, ...]:
    return tuple((round(x + right, 1), round(y, 1)) for x, y in points)
