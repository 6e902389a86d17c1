"""Completes a drawing of the lines by the lines of stubs, which are shown when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from torchgraph_explorer.layout.lanes import LANE_GAP, bundles, line, slots
from torchgraph_explorer.layout.structure import STACK, Line, Placement, Point, Size, Structure, loop_line

ALL_LANES, INSET = 60.0, 6.0
"""Width of all lanes at most, and how far from its corners a line touches a node, in pixels."""


def with_stubs(structure: Structure, placed: Placement, stubs: frozenset[int]) -> Placement:
    """The drawing of all edges, from that of the lines; the stubs' own lines run on the left of it."""
    lanes = _stub_lanes(structure, placed, stubs)
    room = max((-x for x in lanes.values()), default=0.0)
    lines = iter(placed.lines)
    found = [
        line(*_ends(structure, placed, edge), lane=lanes[edge]) if edge in stubs else next(lines)
        for edge in range(len(structure.edges))
    ]
    return Placement(
        width=round(placed.width + room, 1),
        height=placed.height,
        centres=_moved(placed.centres, room),
        lines=tuple(
            _moved(_attached(structure, placed, edge=edge, points=points), room) for edge, points in enumerate(found)
        ),
        approximate=placed.approximate,
        stubs=stubs,
    )


def _stub_lanes(structure: Structure, placed: Placement, stubs: frozenset[int]) -> dict[int, float]:
    """The x of each stub's lane, left of 0. Those from one node, or else to one, share a lane."""
    bundled = bundles(structure, sorted(stubs))
    heights = {
        key: [placed.centres[end][1] for edge in one for end in structure.edges[edge]] for key, one in bundled.items()
    }
    slot = slots({key: (min(ys), max(ys)) for key, ys in heights.items()})
    gap = min(LANE_GAP, ALL_LANES / (1 + max(slot.values(), default=0)))
    return {edge: -gap * (1 + slot[key]) for key, edges in bundled.items() for edge in edges}


def _ends(structure: Structure, placed: Placement, edge: int) -> tuple[Point, Point]:
    """The middle of the source's lower side, and of the target's upper one."""
    source, target = structure.edges[edge]
    (from_x, from_y), (to_x, to_y) = placed.centres[source], placed.centres[target]
    return (from_x, from_y + structure.sizes[source][1] / 2), (to_x, to_y - structure.sizes[target][1] / 2)


def _attached(structure: Structure, placed: Placement, *, edge: int, points: Line) -> Line:
    """The line with its ends on the nodes themselves, where it was drawn to the room beside them."""
    source, target = structure.edges[edge]
    if source == target:
        return loop_line(placed.centres[source], structure.sizes[source])
    (ax, ay), (bx, by), *between, (cx, cy), (dx, dy) = points
    start = _towards(placed.centres[source], structure.sizes[source], (ax, ay)) - ax
    end = _towards(placed.centres[target], structure.sizes[target], (dx, dy)) - dx
    return ((ax + start, ay), (bx + start, by), *between, (cx + end, cy), (dx + end, dy))


def _towards(centre: Point, size: Size, end: Point) -> float:
    """The x nearest to that of `end` at which a line of that height may touch a node; the same if it is on the node."""
    away, reach = end[0] - centre[0], size[0] / 2
    if abs(away) <= reach + STACK + 1:
        return end[0]
    is_beside = abs(end[1] - centre[1]) < size[1] / 2 - 1
    most = reach + STACK if is_beside else reach - INSET
    return centre[0] + max(-most, min(most, away))


def _moved(points: Sequence[Point], right: float) -> tuple[Point, ...]:
    return tuple((round(x + right, 1), y) for x, y in points)
