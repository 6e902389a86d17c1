"""The input and output of a layout, without any names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Size: TypeAlias = "tuple[float, float]"
Point: TypeAlias = "tuple[float, float]"
Line: TypeAlias = "tuple[Point, ...]"


@dataclass(frozen=True, slots=True)
class Structure:
    """Everything that a placement depends on; insides of equal structure are drawn alike.

    Attributes:
        sizes: Width and height of each node, in pixels.
        edges: Numbers of the nodes at both ends of each edge.
        first: Nodes at the top, from left to right: the inputs.
        last: Nodes at the bottom: the outputs.
        back: Edges that lead back up, as indices in `edges`: from one iteration of a loop to the next one.
    """

    sizes: tuple[Size, ...]
    edges: tuple[tuple[int, int], ...]
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    back: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """The places of a structure's nodes and edges, in its order; pixels, y downwards.

    Attributes:
        width: Of the drawing.
        height: Of the drawing.
        centres: Of the nodes.
        lines: Of the edges: cubic splines, a start point and three points for each piece.
        approximate: Why a simpler layout was used, in a sentence; None if it was not.
        stubs: Edges that are drawn as labelled stubs at their ends. Their lines run in lanes on the left.
    """

    width: float
    height: float
    centres: tuple[Point, ...]
    lines: tuple[Line, ...]
    approximate: str | None = None
    stubs: frozenset[int] = frozenset()


LOOP_REACH, STACK = 40.0, 6.0
"""How far the line of a loop reaches beyond its node, and how far behind the node its other calls are seen."""


def loop_line(centre: Point, size: Size) -> Line:
    """A line from the right side of a node around to the same side, above."""
    (x, y), (width, height) = centre, size
    right, low, high = x + width / 2 + STACK, y + height / 4, y - height / 4
    out = right + LOOP_REACH
    return (right, low), (out, low + STACK), (out, high - STACK), (right, high)


def layers(structure: Structure) -> list[list[int]]:
    """Nodes by the length of the longest path to them; the first layer has only inputs, the last only outputs.

    What depends on no input stands as low as its targets allow. Linear in nodes and edges. Nodes in a circle are placed
    by their other edges.
    """
    depths = _depths(structure)
    found: list[list[int]] = [[] for _ in range(max(depths, default=-1) + 1)]
    for node, depth in enumerate(depths):
        found[depth].append(node)
    if structure.first:
        found[0] = list(structure.first)
    return [layer for layer in found if layer]


def layer_of(structure: Structure) -> list[int]:
    """The number of each node's layer."""
    found = [0] * len(structure.sizes)
    for number, layer in enumerate(layers(structure)):
        for node in layer:
            found[node] = number
    return found


def _depths(structure: Structure) -> list[int]:
    count = len(structure.sizes)
    sources: list[list[int]] = [[] for _ in range(count)]
    targets: list[list[int]] = [[] for _ in range(count)]
    back = set(structure.back)
    for edge, (source, target) in enumerate(structure.edges):
        if edge not in back:
            sources[target].append(source)
            targets[source].append(target)
    waits = [len(one) for one in sources]
    first = set(structure.first)
    depths = [0 if node in first else 1 for node in range(count)]
    ready = [node for node in range(count) if waits[node] == 0]
    for node in ready:  # grows while it is gone through
        for target in targets[node]:
            depths[target] = max(depths[target], depths[node] + 1)
            waits[target] -= 1
            if waits[target] == 0:
                ready.append(target)
    _lower(depths, ready, sources, targets, first)
    bottom = max(depths, default=0) + 1
    for node in structure.last:
        depths[node] = bottom
    return depths


def _lower(  # noqa: PLR0917  # all of one graph
    depths: list[int], order: list[int], sources: list[list[int]], targets: list[list[int]], first: set[int]
) -> None:
    """Move what comes from no input down to its targets; `order` has each node behind its sources."""
    free = [False] * len(depths)
    for node in order:
        free[node] = node not in first and all(free[source] for source in sources[node])
    for node in reversed(order):
        if free[node] and targets[node]:
            depths[node] = max(depths[node], min(depths[target] for target in targets[node]) - 1)
