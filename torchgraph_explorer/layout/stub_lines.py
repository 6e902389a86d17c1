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
    is_back = placed.centres[target][1] <= placed.centres[source][1]
    start = _drawn_to(placed.centres[source], structure.sizes[source], points[0], side=0 if is_back else 1)
    end = _drawn_to(placed.centres[target], structure.sizes[target], points[-1], side=0 if is_back else -1)
    first, second, *between, third, last = points
    return (_shifted(first, start), _shifted(second, start), *between, _shifted(third, end), _shifted(last, end))


def _drawn_to(centre: Point, size: Size, end: Point, *, side: int) -> Point:
    """How far an end of a line is from where it may touch its node; (0, 0) if it is on the node.

    `side` is -1 for the upper side of the node, 1 for the lower one, and 0 for the one beside which the end is.
    """
    away, reach = end[0] - centre[0], size[0] / 2
    if abs(away) <= reach + 1 + (STACK if side == 0 else 0):
        return 0.0, 0.0
    if side == 0:
        return centre[0] + (reach + STACK if away > 0 else -reach - STACK) - end[0], 0.0
    return centre[0] + max(INSET - reach, min(reach - INSET, away)) - end[0], centre[1] + side * size[1] / 2 - end[1]


def _shifted(point: Point, by: Point) -> Point:
    return point[0] + by[0], point[1] + by[1]


def _moved(points: Sequence[Point], right: float) -> tuple[Point, ...]:
    return tuple((round(x + right, 1), round(y, 1)) for x, y in points)
