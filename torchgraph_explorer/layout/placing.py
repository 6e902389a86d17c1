"""The layout of an inside: by Graphviz if that takes reasonable time, and only once for equal structure."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from torchgraph_explorer.layout.dot import NotDrawnError, place_with_dot
from torchgraph_explorer.layout.insides import inside_of
from torchgraph_explorer.layout.rows import place_in_rows
from torchgraph_explorer.layout.structure import Line, Placement, Structure, layer_of
from torchgraph_explorer.layout.stub_lines import with_stubs
from torchgraph_explorer.layout.stubs import passing, stub_edges, without_stubs
from torchgraph_explorer.schema import ModuleGraph

MOST_WORK = 3_000
"""Nodes and crossings of layers up to which Graphviz is asked. It takes up to a second then, and holds the GIL.

Its time grows with these rather than with nodes and edges. At 3,000 it took 0.1 to 0.9 s for chains with skip
connections, all-to-all, random and fanned-out graphs alike; from 4,500 on up to 5 s.
"""

MOST_ABREAST = 18
"""Nodes of one layer, or lines beside it, up to which Graphviz is asked: beyond, its drawings are wide and tangled."""

IN_ROWS = "So the nodes are arranged in plain rows, and lines from or to the same node share their way."

KEPT = 512
"""Structures whose placement is kept. The result depends on the arguments alone, so one cache serves the process."""

_placing = threading.Lock()
"""Keeps two threads from placing the same structure; Graphviz would let in one at a time anyway."""


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A box.

    Attributes:
        node: Its node's index in `ModuleGraph.nodes`; of a box that stands for several, the first of them.
        x: Of its centre, in pixels.
        y: Of its centre.
        width: In pixels.
        height: In pixels.
        all: Where a repeated call is folded: all nodes that it stands for, in the order of their calls; else empty.
    """

    node: int
    x: float
    y: float
    width: float
    height: float
    all: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """A line.

    Attributes:
        edge: Its edge's index in `ModuleGraph.edges`; of a line that stands for several, the first of them.
        points: A cubic spline whose last point is the arrow's tip.
        all: All edges that it stands for, if they are several; else empty.
        is_stub: It is drawn as a label at its target and a count at its source, and as a line only when asked for.
    """

    edge: int
    points: Line
    all: tuple[int, ...] = ()
    is_stub: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing, in pixels, y downwards.

    Attributes:
        approximate: Why a simpler layout was used, in a sentence; None if it was not.
        loops: The repeated calls that take turns, and each stack, as indices in `nodes`.
        stacks: The equal siblings that can be drawn as one box, or are, as indices in `ModuleGraph.nodes`.
    """

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    approximate: str | None
    loops: tuple[tuple[int, ...], ...] = ()
    stacks: tuple[tuple[int, ...], ...] = ()


def layout(
    graph: ModuleGraph,
    inside: int | None,
    *,
    most_work: int = MOST_WORK,
    folds: bool = False,
    stacked: Collection[int] | None = (),
) -> Layout:
    """Place the inside of the call with index `inside`; None places the top, where the model's own calls are.

    Graphviz places up to `most_work` nodes and crossings of layers (see `MOST_WORK`); 0 does without it. With `folds`,
    calls of a module in a row are one box (see `folding`), and so are the equal siblings (see `stacks`) that begin with
    one of the nodes `stacked`; None stacks all.
    """
    found = inside_of(graph, inside, folds=folds, stacked=stacked)
    placing = place(found.structure, most_work=most_work)
    placed = zip(found.folded.nodes, placing.centres, found.structure.sizes, strict=True)
    drawn = zip(found.folded.edges, placing.lines, strict=True)
    return Layout(
        placing.width,
        placing.height,
        tuple(PlacedNode(some[0], x, y, width, height, _several(some)) for some, (x, y), (width, height) in placed),
        tuple(
            PlacedEdge(one.edges[0], points, _several(one.edges), at in placing.stubs)
            for at, (one, points) in enumerate(drawn)
        ),
        placing.approximate,
        found.folded.loops,
        found.stacks,
    )


def _several(some: tuple[int, ...]) -> tuple[int, ...]:
    return some if len(some) > 1 else ()


def place(structure: Structure, *, most_work: int = MOST_WORK) -> Placement:
    """Place `structure`; equal ones are placed once."""
    with _placing:
        return _place(structure, most_work)


@lru_cache(maxsize=KEPT)
def _place(structure: Structure, most_work: int) -> Placement:
    if not structure.sizes:
        return Placement(0.0, 0.0, (), ())
    stubs = stub_edges(structure)
    return with_stubs(structure, _place_lines(without_stubs(structure, stubs), most_work), stubs)


def _place_lines(structure: Structure, most_work: int) -> Placement:
    reason = _not_for_graphviz(structure, most_work)
    if reason is None:
        try:
            return place_with_dot(structure)
        except NotDrawnError as fault:
            reason = str(fault)
    return place_in_rows(structure, reason=f"{reason} {IN_ROWS}")


def _not_for_graphviz(structure: Structure, most_work: int) -> str | None:
    """Why Graphviz is not to place `structure`; None if it is."""
    layer = layer_of(structure)
    nodes, lines = Counter(layer), passing(layer, structure.edges)
    if len(layer) + len(structure.edges) + sum(lines) > most_work:
        return f"{len(layer):,} nodes and {len(structure.edges):,} lines are too many for Graphviz."
    if max(nodes.values()) > MOST_ABREAST:
        return f"{max(nodes.values())} nodes would stand side by side."
    if max(lines) > MOST_ABREAST:
        return f"{max(lines)} lines would run side by side."
    return None
