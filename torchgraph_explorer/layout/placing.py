"""The layout of an inside, by Graphviz where it can be had in reasonable time, and once for equal structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from torchgraph_explorer.layout.dot import place_with_dot
from torchgraph_explorer.layout.layers import place_in_layers
from torchgraph_explorer.layout.sizes import node_size
from torchgraph_explorer.records import ModuleGraph

Point: TypeAlias = "tuple[float, float]"

MOST_NODES, MOST_EDGES = 600, 1200
"""What Graphviz lays out within about a second. Its time grows faster than the square of it."""

KEPT = 512
"""Structures whose placing is remembered."""


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A box: its node's index in `ModuleGraph.nodes`, its centre, and its size, in pixels."""

    node: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class PlacedEdge:
    """A line: its edge's index in `ModuleGraph.edges`, and a cubic spline whose last point is the arrow's tip."""

    edge: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing, in pixels, y downwards.

    Attributes:
        approximate: Why a simpler layout was used, in a sentence; None if it was not.
    """

    width: float
    height: float
    nodes: tuple[PlacedNode, ...]
    edges: tuple[PlacedEdge, ...]
    approximate: str | None


@dataclass(frozen=True, slots=True)
class Structure:
    """All that a placing depends on; two insides that are equal in it are drawn alike.

    Attributes:
        sizes: Width and height of each node.
        edges: Numbers of the nodes at both ends.
        first: Nodes that stand at the top, since they are inputs.
        last: Nodes that stand at the bottom.
    """

    sizes: tuple[tuple[float, float], ...]
    edges: tuple[tuple[int, int], ...]
    first: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placing:
    """Where the nodes and edges of a structure stand, in its order."""

    width: float
    height: float
    centres: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    approximate: str | None = None


def layout(graph: ModuleGraph, inside: int | None) -> Layout:
    """Place the inside of the call with index `inside`; None places the top, where the model's own calls are."""
    nodes = [i for i, node in enumerate(graph.nodes) if node.inside == inside]
    number = {node: i for i, node in enumerate(nodes)}
    edges = [i for i, edge in enumerate(graph.edges) if edge.source in number and edge.target in number]
    structure = _structure(graph, nodes, [(number[graph.edges[i].source], number[graph.edges[i].target]) for i in edges])
    placing = place(structure)
    placed = zip(nodes, placing.centres, structure.sizes, strict=True)
    return Layout(
        placing.width,
        placing.height,
        tuple(PlacedNode(node, x, y, width, height) for node, (x, y), (width, height) in placed),
        tuple(PlacedEdge(edge, points) for edge, points in zip(edges, placing.lines, strict=True)),
        placing.approximate,
    )


@lru_cache(maxsize=KEPT)
def place(structure: Structure) -> Placing:
    """Place `structure`; equal ones are placed once."""
    if not structure.sizes:
        return Placing(0.0, 0.0, (), ())
    if len(structure.sizes) > MOST_NODES or len(structure.edges) > MOST_EDGES:
        return _in_layers(
            structure,
            f"{len(structure.sizes)} nodes and {len(structure.edges)} edges are too many for Graphviz to place in "
            f"reasonable time; they stand in plain layers.",
        )
    width, height, centres, lines = place_with_dot(structure.sizes, structure.edges, structure.first, structure.last)
    if any(len(line) < 4 for line in lines):
        return _in_layers(structure, "Graphviz could not draw every edge; the nodes stand in plain layers.")
    return Placing(width, height, centres, lines)


def _in_layers(structure: Structure, reason: str) -> Placing:
    return Placing(*place_in_layers(structure.sizes, structure.edges), reason)


def _structure(graph: ModuleGraph, nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> Structure:
    openable = {node.inside for node in graph.nodes}
    drawn = [graph.nodes[i] for i in nodes]
    return Structure(
        sizes=tuple(node_size(graph, node, has_inside=node.call is not None and node.call in openable) for node in drawn),
        edges=tuple(edges),
        first=tuple(i for i, node in enumerate(drawn) if node.kind == "input"),
        last=tuple(i for i, node in enumerate(drawn) if node.kind == "output"),
    )
