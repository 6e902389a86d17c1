"""Positions of a module graph, inside by inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torchgraph_explorer.layout import placing
from torchgraph_explorer.layout.placing import layout
from torchgraph_explorer.schema import ModuleGraph

Way: TypeAlias = Literal["graphviz", "rows"]

Box: TypeAlias = "tuple[float, float, float, float]"
Line: TypeAlias = "tuple[tuple[float, float], ...]"

NO_GRAPHVIZ = -1
"""As `placing.MOST_WORK`: every structure is too large for Graphviz then, and goes into plain rows."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """One inside, in pixels, y downwards.

    Attributes:
        width: Of it all.
        height: Of it all.
        boxes: Centre x and y, width and height of each node, by its index in the graph.
        lines: Points of a cubic spline for each edge, by its index in the graph.
    """

    width: float
    height: float
    boxes: Mapping[int, Box]
    lines: Mapping[int, Line]


Drawings: TypeAlias = "dict[int | None, Drawing]"
"""By the call whose inside it is; None is the top."""


def draw(graph: ModuleGraph, *, way: Way = "graphviz") -> Drawings:
    """Every inside of `graph`. Not for a process that trains: Graphviz holds the GIL, and may end it.

    `way="rows"` does without Graphviz, in this process from then on.
    """
    if way == "rows":
        placing.MOST_WORK = NO_GRAPHVIZ
    wanted = dict.fromkeys([None, *(node.inside for node in graph.nodes)])
    return {inside: _drawing(graph, inside) for inside in wanted}


def _drawing(graph: ModuleGraph, inside: int | None) -> Drawing:
    drawn = layout(graph, inside)
    boxes = {node.node: (node.x, node.y, node.width, node.height) for node in drawn.nodes}
    return Drawing(drawn.width, drawn.height, boxes, {edge.edge: edge.points for edge in drawn.edges})
