"""The layout of a module graph, inside by inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torchgraph_explorer.layout import placing
from torchgraph_explorer.schema import ModuleGraph

Engine: TypeAlias = Literal["graphviz", "rows"]

Box: TypeAlias = "tuple[float, float, float, float]"
Line: TypeAlias = "tuple[tuple[float, float], ...]"

MAX_WORK: dict[Engine, int] = {"graphviz": placing.MOST_WORK, "rows": 0}
"""The largest structure that Graphviz places, see `placing.layout`."""


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
    use Graphviz.
    """
    wanted = dict.fromkeys([None, *(node.inside for node in graph.nodes)])
    return {inside: _layout_inside(graph, inside, engine) for inside in wanted}


def _layout_inside(graph: ModuleGraph, inside: int | None, engine: Engine) -> InsideLayout:
    found = placing.layout(graph, inside, most_work=MAX_WORK[engine])
    boxes = {node.node: (node.x, node.y, node.width, node.height) for node in found.nodes}
    return InsideLayout(found.width, found.height, boxes, {edge.edge: edge.points for edge in found.edges})
