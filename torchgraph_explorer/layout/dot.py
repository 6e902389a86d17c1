"""Places nodes with Graphviz' `dot`, through pygraphviz, in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pygraphviz

Size = tuple[float, float]
Point = tuple[float, float]
Placed = tuple[float, float, tuple[Point, ...], tuple[tuple[Point, ...], ...]]

PX_PER_INCH = 72.0
TRUNK_WEIGHT = 12
"""How much straighter dot keeps an edge to the next call than one that skips some."""

_graphviz = threading.Lock()
"""Graphviz keeps global state, and a server has several threads."""


def place_with_dot(
    sizes: Sequence[Size], edges: Sequence[tuple[int, int]], first: Sequence[int], last: Sequence[int]
) -> Placed:
    """Width and height of the drawing, the centre of each node and the spline of each edge, y downwards.

    Args:
        sizes: Width and height of each node, in pixels.
        edges: The nodes at both ends of each edge.
        first: Nodes to stand at the top.
        last: Nodes to stand at the bottom.
    """
    drawing = pygraphviz.AGraph(directed=True, strict=False)
    drawing.graph_attr.update(rankdir="TB", splines="spline", nodesep="0.34", ranksep="0.42", pad="0.1")
    drawing.node_attr.update(shape="box", fixedsize="true", label="")
    drawing.edge_attr.update(arrowsize="0.7")
    for i, (width, height) in enumerate(sizes):
        drawing.add_node(str(i), width=f"{width / PX_PER_INCH:.4f}", height=f"{height / PX_PER_INCH:.4f}")
    trunk = _trunk(edges)
    for i, (source, target) in enumerate(edges):
        drawing.add_edge(str(source), str(target), key=str(i), weight=str(TRUNK_WEIGHT if i in trunk else 1))
    for rank, nodes in (("source", first), ("sink", last)):
        if nodes:
            drawing.add_subgraph([str(node) for node in nodes], rank=rank)
    with _graphviz:
        drawing.layout("dot")
    return _read(drawing, len(sizes), edges)


def _trunk(edges: Sequence[tuple[int, int]]) -> set[int]:
    """For each node the edge from the latest of its sources: the way along which the model goes on."""
    latest: dict[int, int] = {}
    for i, (source, target) in enumerate(edges):
        if target not in latest or edges[latest[target]][0] < source:
            latest[target] = i
    return set(latest.values())


def _read(drawing: pygraphviz.AGraph, count: int, edges: Sequence[tuple[int, int]]) -> Placed:
    left, bottom, right, top = (float(part) for part in drawing.graph_attr["bb"].split(","))

    def point(text: str) -> Point:
        x, y = text.split(",")
        return round(float(x) - left, 1), round(top - float(y), 1)

    centres = tuple(point(drawing.get_node(str(i)).attr["pos"]) for i in range(count))
    lines = tuple(_spline(drawing.get_edge(str(a), str(b), str(i)).attr["pos"], point) for i, (a, b) in enumerate(edges))
    return right - left, top - bottom, centres, lines


def _spline(text: str | None, point) -> tuple[Point, ...]:  # type: ignore[no-untyped-def]
    """`e,x,y x,y ...`: the arrow's tip, then the spline, whose last piece is drawn out to the tip."""
    parts = (text or "").replace("\\\n", "").split()
    tip = next((point(part[2:]) for part in parts if part.startswith("e,")), None)
    points = [point(part) for part in parts if part[0] not in "es"]
    if tip is not None and points:
        points[-1] = tip
    return tuple(points)
