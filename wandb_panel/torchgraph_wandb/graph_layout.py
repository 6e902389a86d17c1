"""The layout of a module graph, inside by inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torchgraph_explorer.layout import placing
from torchgraph_explorer.layout.placing import layout
from torchgraph_explorer.schema import ModuleGraph

Engine: TypeAlias = Literal["graphviz", "rows"]

Box: TypeAlias = "tuple[float, float, float, float]"
Line: TypeAlias = "tuple[tuple[float, float], ...]"

NO_GRAPHVIZ = -1
"""As `placing.MOST_WORK`: every structure is too large for Graphviz then, and is placed in plain rows."""


@dataclass(frozen=True, slots=True)
class InsideLayout:
    """The layout of one inside, in pixels, y downwards.

    Attributes:
        width: Of the whole drawing.
        height: Of the whole drawing.
        boxes: Centre x and y, width and height of each node, by its index in the graph.
        edges: Points of a cubic spline for each edge, by its index in the graph.
    """

    width: float
    height: float
    boxes: Mapping[int, Box]
    edges: Mapping[int, Line]


InsideLayouts: TypeAlias = "dict[int | None, InsideLayout]"
"""By the call whose inside it is; None is the top."""


def layout_insides(graph: ModuleGraph, *, engine: Engine = "graphviz") -> InsideLayouts:
    """Lay out every inside of `graph`.

    Do not call it in a process that trains: Graphviz holds the GIL, and may crash the process. `engine="rows"` does not
    use Graphviz, in this process from then on.
    """
    if engine == "rows":
        placing.MOST_WORK = NO_GRAPHVIZ
    wanted = dict.fromkeys([None, *(node.inside for node in graph.nodes)])
    return {inside: _layout_inside(graph, inside) for inside in wanted}


def _layout_inside(graph: ModuleGraph, inside: int | None) -> InsideLayout:
    found = layout(graph, inside)
    boxes = {node.node: (node.x, node.y, node.width, node.height) for node in found.nodes}
    return InsideLayout(found.width, found.height, boxes, {edge.edge: edge.points for edge in found.edges})
