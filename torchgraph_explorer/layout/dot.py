"""Places nodes with Graphviz' `dot`, through pygraphviz, in this process."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

from torchgraph_explorer.layout.structure import Line, Placement, Point, Structure, layer_of, loop_line

PX_PER_INCH = 72.0

TRUNK_WEIGHT = 100
"""How much straighter dot keeps an edge of the trunk than one that skips calls."""

GRAPH = {"rankdir": "TB", "splines": "spline", "nodesep": "0.34", "ranksep": "0.42", "nslimit": "2"}
"""`nslimit` ends the search for straight lines early. It is seldom reached, and then saves two thirds of the time."""

NODE = {"shape": "box", "fixedsize": "true", "label": ""}
EDGE = {"arrowsize": "0.7"}

_graphviz = threading.Lock()
"""Graphviz has state for the whole process, and a server has several threads."""


class NotDrawnError(Exception):
    """Graphviz is not there, or gave an edge no line, as it may for edges that it cannot route. The message says so."""


def place_with_dot(structure: Structure) -> Placement:
    """Place `structure` from top to bottom.

    Holds the GIL until it is done.

    Raises:
        NotDrawnError: Graphviz cannot be loaded, or an edge got no line.
    """
    with _graphviz:
        drawing = _drawing(structure)
        try:
            drawing.layout("dot")
            return _read(drawing, structure)
        finally:
            drawing.close()


def _library() -> Any:
    """pygraphviz, whose wheels carry Graphviz, but not the GLib that it needs, which a slim container lacks."""
    try:
        import pygraphviz
    except ImportError as fault:
        raise NotDrawnError(
            f"Graphviz cannot be loaded: {fault}. On Debian and Ubuntu: apt-get install libglib2.0-0 libxrender1."
        ) from fault
    return pygraphviz


def _drawing(structure: Structure) -> Any:
    drawing = _library().AGraph(directed=True, strict=False)
    drawing.graph_attr.update(GRAPH)
    drawing.node_attr.update(NODE)
    drawing.edge_attr.update(EDGE)
    for node, (width, height) in enumerate(structure.sizes):
        drawing.add_node(str(node), width=f"{width / PX_PER_INCH:.4f}", height=f"{height / PX_PER_INCH:.4f}")
    trunk, back = _trunk(structure), set(structure.back)
    for edge, (source, target) in enumerate(structure.edges):
        weight = TRUNK_WEIGHT if edge in trunk else 1
        ranks = "false" if edge in back else "true"
        drawing.add_edge(str(source), str(target), key=str(edge), weight=str(weight), constraint=ranks)
    for rank, nodes in (("source", structure.first), ("sink", structure.last)):
        if nodes:
            drawing.add_subgraph([str(node) for node in nodes], rank=rank)
    for left, right in pairwise(structure.first):
        drawing.add_edge(str(left), str(right), key="order", style="invis")
    return drawing


def _trunk(structure: Structure) -> set[int]:
    """The edges of the longest way through, as far as there is only one."""
    layer = layer_of(structure)
    steps = {edge: ends for edge, ends in enumerate(structure.edges) if layer[ends[1]] == layer[ends[0]] + 1}
    sources: dict[int, list[int]] = {}
    for source, target in steps.values():
        sources.setdefault(target, []).append(source)
    level = {node for node in range(len(layer)) if layer[node] == max(layer)}
    alone: set[int] = set()
    while level:
        alone |= level if len(level) == 1 else set()
        level = {source for node in level for source in sources.get(node, ())}
    return {edge for edge, ends in steps.items() if alone.issuperset(ends)}


def _read(drawing: Any, structure: Structure) -> Placement:
    left, bottom, right, top = (float(part) for part in drawing.graph_attr["bb"].split(","))

    def point(text: str) -> Point:
        x, y = text.split(",")
        return round(float(x) - left, 1), round(top - float(y), 1)

    def line(edge: int, source: int, target: int) -> Line:
        text = drawing.get_edge(str(source), str(target), str(edge)).attr["pos"] or ""
        tip, points = _spline(text)
        if len(points) < 4:
            raise NotDrawnError("Graphviz could not draw every line.")
        return tuple(point(one) for one in [*points[:-1], tip or points[-1]])

    centres = tuple(point(drawing.get_node(str(node)).attr["pos"]) for node in range(len(structure.sizes)))
    loops = [
        loop_line(centres[source], structure.sizes[source]) for source, target in structure.edges if source == target
    ]
    reach = max((x for points in loops for x, _ in points), default=0.0)
    return Placement(
        width=round(max(right - left, reach), 1),
        height=round(top - bottom, 1),
        centres=centres,
        lines=tuple(
            loop_line(centres[source], structure.sizes[source]) if source == target else line(edge, source, target)
            for edge, (source, target) in enumerate(structure.edges)
        ),
    )


def _spline(text: str) -> tuple[str, list[str]]:
    """The arrow's tip, and the points of the spline, which ends where the arrow begins.

    Source: https://graphviz.org/docs/attr-types/splineType/
    """
    parts = text.replace("\\\n", "").split()
    tip = next((part[2:] for part in parts if part.startswith("e,")), "")
    return tip, [part for part in parts if part[0] not in "es"]
