"""Shapes that the insides of models have, and questions about how they were drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from torchgraph_explorer.layout.structure import Line, Placement, Point, Structure

SIZE = (150.0, 46.0)
Ends = tuple[int, int]


def structure(count: int, edges: Sequence[Ends], *, first: Sequence[int] = (), last: Sequence[int] = ()) -> Structure:
    return Structure((SIZE,) * count, tuple(edges), tuple(first), tuple(last))


def chain(count: int) -> list[Ends]:
    return [(node, node + 1) for node in range(count - 1)]


def residual(blocks: int) -> list[Ends]:
    """A chain with an edge past each three nodes."""
    return chain(4 * blocks + 1) + [(4 * block, 4 * block + 4) for block in range(blocks)]


def all_to_all(count: int) -> list[Ends]:
    return [(source, target) for target in range(count) for source in range(target)]


def fan(count: int) -> list[Ends]:
    """One node to `count` others, and these to one."""
    return [(0, node) for node in range(1, count + 1)] + [(node, count + 1) for node in range(1, count + 1)]


def u_shape(depth: int) -> list[Ends]:
    return chain(2 * depth) + [(node, 2 * depth - 1 - node) for node in range(depth - 1)]


def scattered(count: int, edges: int) -> list[Ends]:
    rng = random.Random(0)
    return [(min(pair), max(pair)) for pair in (rng.sample(range(count), 2) for _ in range(edges))]


def shared_by_all(count: int) -> list[Ends]:
    """A chain, and one node that all of it gets data from."""
    return chain(count) + [(count, node) for node in range(count)]


def overlapping(placing: Placement, drawn: Structure) -> list[Ends]:
    """Pairs of nodes that cover each other."""

    def clash(one: int, other: int) -> bool:
        (ax, ay), (bx, by) = placing.centres[one], placing.centres[other]
        (aw, ah), (bw, bh) = drawn.sizes[one], drawn.sizes[other]
        return abs(ax - bx) < (aw + bw) / 2 and abs(ay - by) < (ah + bh) / 2

    count = len(drawn.sizes)
    return [(one, other) for other in range(count) for one in range(other) if clash(one, other)]


def loose_ends(placing: Placement, drawn: Structure) -> list[int]:
    """Edges whose line does not go from one node's border to the other's."""
    return [
        edge
        for edge, (line, (source, target)) in enumerate(zip(placing.lines, drawn.edges, strict=True))
        if not touches(line[0], source, placing, drawn) or not touches(line[-1], target, placing, drawn)
    ]


def touches(point: tuple[float, float], node: int, placing: Placement, drawn: Structure) -> bool:
    (x, y), (width, height) = placing.centres[node], drawn.sizes[node]
    across, down = abs(point[0] - x) - width / 2, abs(point[1] - y) - height / 2
    return max(across, down) < 2 and min(abs(across), abs(down)) < 2


def along(line: Line) -> Iterator[Point]:
    """Points that a cubic spline really goes through; those between its pieces' ends only draw it to their side."""
    for start in range(0, len(line) - 1, 3):
        (ax, ay), (bx, by), (cx, cy), (dx, dy) = line[start : start + 4]
        for t in (0.0, 0.25, 0.5, 0.75, 1.0):
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
            yield a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy
