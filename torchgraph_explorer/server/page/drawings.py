"""The layouts of all insides of a graph; insides of equal layout share one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from torchgraph_explorer.layout.placing import MOST_WORK, Layout, layout
from torchgraph_explorer.schema import ModuleGraph

Json = dict[str, Any]


def drawings(graphs: Iterable[ModuleGraph], *, most_work: int = MOST_WORK) -> Json:
    """Distinct `drawings`, and per graph which one each inside has.

    A drawing numbers its nodes and edges within the inside, so it is the same wherever it is used.
    `most_work` is as in `layout`.
    """
    numbers: dict[str, int] = {}
    used = [{"graph": graph.id, **_insides(graph, numbers, most_work)} for graph in graphs]
    return {"drawings": [json.loads(text) for text in numbers], "insides": used}


def _insides(graph: ModuleGraph, numbers: dict[str, int], most_work: int) -> Json:
    """Pairs of an inside and the number of its drawing in `numbers`, to which new drawings are added.

    Those of insides with equal siblings are drawn again with all siblings stacked.
    """
    insides = dict.fromkeys((None, *(node.inside for node in graph.nodes)))
    plain, stacked = [], []
    for inside in insides:
        found = layout(graph, inside, most_work=most_work, folds=True)
        plain.append([inside, _number(_drawing(graph, inside, found), numbers)])
        if found.stacks:
            piled = layout(graph, inside, most_work=most_work, folds=True, stacked=None)
            stacked.append([inside, _number(_drawing(graph, inside, piled), numbers)])
    return {"insides": plain, "stacked": stacked}


def _number(drawing: str, numbers: dict[str, int]) -> int:
    return numbers.setdefault(drawing, len(numbers))


def _drawing(graph: ModuleGraph, inside: int | None, found: Layout) -> str:
    placed: Json = {one.name: getattr(found, one.name) for one in fields(found)}
    placed["nodes"] = [[one.x, one.y, one.width, one.height] for one in found.nodes]
    placed["stubs"] = [at for at, one in enumerate(found.edges) if one.is_stub]
    placed["edges"] = [[number for point in one.points for number in point] for one in found.edges]
    if not found.loops and not found.stacks:
        return json.dumps({key: value for key, value in placed.items() if key not in ("loops", "stacks")})
    return json.dumps({**placed, **_folds(graph, inside, found)})


def _folds(graph: ModuleGraph, inside: int | None, found: Layout) -> Json:
    """Which nodes and edges each box, line and stack stands for, numbered within the inside."""
    nodes = [at for at, node in enumerate(graph.nodes) if node.inside == inside]
    number = {node: at for at, node in enumerate(nodes)}
    edges = [at for at, edge in enumerate(graph.edges) if edge.source in number and edge.target in number]
    number_of_edge = {edge: at for at, edge in enumerate(edges)}
    return {
        "loops": found.loops,
        "stacks": [[number[one] for one in stack] for stack in found.stacks],
        "of_nodes": [[number[one] for one in placed.all or (placed.node,)] for placed in found.nodes],
        "of_edges": [[number_of_edge[one] for one in placed.all or (placed.edge,)] for placed in found.edges],
    }
