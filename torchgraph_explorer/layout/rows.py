"""A plain layout in rows, for structures that take Graphviz too long or come out tangled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgraph_explorer.layout.lanes import LANE_GAP, TURN, bundles, line, slots
from torchgraph_explorer.layout.structure import STACK, Line, Placement, Point, Structure, layers, loop_line

ROW_GAP, COLUMN_GAP, MARGIN = TURN, 24.0, 8.0

WIDEST_ROW = 12
"""Nodes in one row; a layer that has more takes several."""

ALL_LANES = 400.0
"""How far all lines beside the rows reach on one side at most."""


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
        back.get(edge) or line(*_ends(structure, rows, edge), lane=lanes.get(edge))
        for edge in range(len(structure.edges))
    ]
    beside = [*lanes.values(), *(x for one in back.values() for x, _ in one)]
    outermost = max([*rows.reach, *(abs(x) for x in beside)]) + MARGIN
    return Placement(
        width=round(2 * outermost, 1),
        height=round(rows.height, 1),
        centres=_moved(rows.centres, outermost),
        lines=tuple(_moved(one, outermost) for one in lines),
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
    bundled = bundles(structure, far)
    spans = {bundle: _span(structure, rows, edges) for bundle, edges in bundled.items()}
    slot = slots(spans)
    gap = min(LANE_GAP, ALL_LANES / (1 + max(slot.values(), default=0) // 2))
    x = {bundle: _lane_x(slot[bundle], gap, max(rows.reach[slice(*spans[bundle])])) for bundle in bundled}
    return {edge: x[bundle] for bundle, edges in bundled.items() for edge in edges}


def _span(structure: Structure, rows: _RowLayout, edges: Sequence[int]) -> tuple[int, int]:
    """The first row that `edges` touch, and the one after the last."""
    touched = [rows.row_of[end] for edge in edges for end in structure.edges[edge]]
    return min(touched), max(touched) + 1


def _lane_x(slot: int, gap: float, reach: float) -> float:
    """Slots take turns on the right and on the left."""
    away = reach + COLUMN_GAP + (slot // 2) * gap
    return -away if slot % 2 else away


def _ends(structure: Structure, rows: _RowLayout, edge: int) -> tuple[Point, Point]:
    """The middle of the source's lower side, and of the target's upper one."""
    source, target = structure.edges[edge]
    (from_x, from_y), (to_x, to_y) = rows.centres[source], rows.centres[target]
    return (from_x, from_y + structure.sizes[source][1] / 2), (to_x, to_y - structure.sizes[target][1] / 2)


def _line_back(structure: Structure, rows: _RowLayout, edge: int) -> Line:
    """A line from the right side of the source to that of the target, around what stands there."""
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


def _moved(points: Sequence[Point], right: float) -> tuple[Point, ...]:
    return tuple((round(x + right, 1), round(y, 1)) for x, y in points)
