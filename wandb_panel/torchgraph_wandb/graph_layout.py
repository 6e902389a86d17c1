"""The layout of a module graph, inside by inside, with repeated calls as one box."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torchgraph_explorer.layout import placing
from torchgraph_explorer.schema import ModuleGraph

Engine: TypeAlias = Literal["graphviz", "rows"]

Line: TypeAlias = "tuple[tuple[float, float], ...]"

MAX_WORK: dict[Engine, int] = {"graphviz": placing.MOST_WORK, "rows": 0}
"""The largest structure that Graphviz places, see `placing.layout`."""

MOST_CALLS = 12
"""Calls of a repeated module that a chart holds: the first, the last, and others spread evenly between them."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node as it is drawn, in pixels.

    Attributes:
        x: Of its centre.
        y: Of its centre, downwards.
        width: Of the box.
        height: Of the box.
        all: The nodes of the graph that it stands for, in the order of their calls; one where no call is repeated.
        turns: The places in `all` of those that the chart holds, ascending.
    """

    x: float
    y: float
    width: float
    height: float
    all: tuple[int, ...]
    turns: tuple[int, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes that the chart holds."""
        return tuple(self.all[turn] for turn in self.turns)


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """A line from one box to another.

    Attributes:
        edges: The edges of the graph that it stands for.
        ends: The numbers of both boxes.
        points: A cubic spline.
        is_stub: It is drawn as a label at its target and a count at its source, and as a line only when asked for.
    """

    edges: tuple[int, ...]
    ends: tuple[int, int]
    points: Line
    is_stub: bool


@dataclass(frozen=True, slots=True)
class InsideLayout:
    """The layout of one inside, in pixels.

    Attributes:
        width: Of the whole drawing.
        height: Of the whole drawing.
        boxes: The nodes.
        edges: The lines between them.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[DrawnEdge, ...]


InsideLayouts: TypeAlias = "dict[int | None, InsideLayout]"
"""Layouts, by the call whose inside it is; None is the top."""


def layout_insides(graph: ModuleGraph, *, engine: Engine = "graphviz", wanted: Collection[int] = ()) -> InsideLayouts:
    """Lay out every inside of `graph`, but for the insides of repeated calls that the chart does not hold.

    Do not call it in a process that trains: Graphviz holds the GIL, and may crash the process. `engine="rows"` does not
    use Graphviz. Calls `wanted` are held in any case.
    """
    needed = {outer for call in wanted for outer in _path(graph, call)}
    insides = sorted(dict.fromkeys([None, *(node.inside for node in graph.nodes)]), key=lambda one: _depth(graph, one))
    left_out: set[int] = set()
    found: InsideLayouts = {}
    for inside in insides:
        if left_out.isdisjoint(_path(graph, inside)):
            found[inside] = _layout_inside(graph, inside, engine, needed=needed)
            left_out |= _calls_left_out(graph, found[inside])
    return found


def held_calls(graph: ModuleGraph, layouts: InsideLayouts) -> dict[tuple[str, int], int]:
    """The calls that the chart holds, in the order of execution: their numbers by module and count."""
    numbers = sorted(
        call
        for layout in layouts.values()
        for box in layout.boxes
        for node in box.nodes
        if (call := graph.nodes[node].call) is not None
    )
    return {(graph.calls[number].module, graph.calls[number].call): number for number in numbers}


def nodes_left_out(layouts: InsideLayouts) -> frozenset[int]:
    """The nodes that a box stands for and that the chart does not hold."""
    boxes = [box for layout in layouts.values() for box in layout.boxes]
    return frozenset(node for box in boxes for node in set(box.all).difference(box.nodes))


def _path(graph: ModuleGraph, call: int | None) -> list[int]:
    """A call, and those that it is inside."""
    found = []
    while call is not None:
        found.append(call)
        call = graph.calls[call].parent
    return found


def _depth(graph: ModuleGraph, inside: int | None) -> int:
    return len(_path(graph, inside))


def _calls_left_out(graph: ModuleGraph, layout: InsideLayout) -> set[int]:
    nodes = (node for box in layout.boxes for node in set(box.all).difference(box.nodes))
    return {call for node in nodes if (call := graph.nodes[node].call) is not None}


def _layout_inside(graph: ModuleGraph, inside: int | None, engine: Engine, *, needed: Collection[int]) -> InsideLayout:
    found = placing.layout(graph, inside, most_work=MAX_WORK[engine], folds=True)
    all_nodes = [one.all or (one.node,) for one in found.nodes]
    turns = _turns(graph, all_nodes, found.loops, needed=needed)
    boxes = tuple(
        Box(one.x, one.y, one.width, one.height, nodes, turns[at])
        for at, (one, nodes) in enumerate(zip(found.nodes, all_nodes, strict=True))
    )
    box_of = {node: at for at, nodes in enumerate(all_nodes) for node in nodes}
    edges = tuple(
        DrawnEdge(
            one.all or (one.edge,),
            (box_of[graph.edges[one.edge].source], box_of[graph.edges[one.edge].target]),
            one.points,
            one.is_stub,
        )
        for one in found.edges
    )
    return InsideLayout(found.width, found.height, boxes, edges)


def _turns(
    graph: ModuleGraph,
    boxes: Sequence[tuple[int, ...]],
    loops: Sequence[Sequence[int]],
    *,
    needed: Collection[int],
) -> Mapping[int, tuple[int, ...]]:
    """The turns that are held of each box; the same for boxes that take turns equally often."""
    found: dict[int, tuple[int, ...]] = {at: (0,) for at in range(len(boxes))}  # noqa: C420  # of another type
    for loop in loops:
        for count in {len(boxes[at]) for at in loop}:
            alike = [at for at in loop if len(boxes[at]) == count]
            turns = set(_spread(count))
            turns |= {turn for at in alike for turn, node in enumerate(boxes[at]) if graph.nodes[node].call in needed}
            found |= dict.fromkeys(alike, tuple(sorted(turns)))
    return found


def _spread(count: int) -> list[int]:
    """At most `MOST_CALLS` of so many turns."""
    if count <= MOST_CALLS:
        return list(range(count))
    return [round(turn * (count - 1) / (MOST_CALLS - 1)) for turn in range(MOST_CALLS)]
