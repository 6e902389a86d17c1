"""The layouts of all insides of a graph; insides of equal layout share one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from torchgraph_explorer.layout.placing import MOST_WORK, layout
from torchgraph_explorer.schema import ModuleGraph

Json = dict[str, Any]


def drawings(graphs: Iterable[ModuleGraph], *, most_work: int = MOST_WORK) -> Json:
    """Distinct `drawings`, and per graph which one each inside has.

    A drawing numbers its nodes and edges within the inside, so it is the same wherever it is used.
    `most_work` is as in `layout`.
    """
    numbers: dict[str, int] = {}
    used = [{"graph": graph.id, "insides": _insides(graph, numbers, most_work)} for graph in graphs]
    return {"drawings": [json.loads(text) for text in numbers], "insides": used}


def _insides(graph: ModuleGraph, numbers: dict[str, int], most_work: int) -> list[list[int | None]]:
    """Pairs of an inside and the number of its drawing in `numbers`, to which new drawings are added."""
    insides = dict.fromkeys((None, *(node.inside for node in graph.nodes)))
    return [[inside, numbers.setdefault(_drawing(graph, inside, most_work), len(numbers))] for inside in insides]


def _drawing(graph: ModuleGraph, inside: int | None, most_work: int) -> str:
    placed = asdict(layout(graph, inside, most_work=most_work))
    placed["nodes"] = [[one["x"], one["y"], one["width"], one["height"]] for one in placed["nodes"]]
    placed["edges"] = [[number for point in one["points"] for number in point] for one in placed["edges"]]
    return json.dumps(placed)
