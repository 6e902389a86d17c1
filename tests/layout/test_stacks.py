"""Which equal siblings are offered as a stack, and how it is drawn."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest

from torchgraph_explorer.layout.placing import Layout, layout
from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Node, TensorInfo

TENSOR = TensorInfo("output", (2, 4), "float32", True)

Ends = tuple[str, str]


def graph_of(names: Sequence[str], edges: Sequence[Ends], classes: Mapping[str, str] | None = None) -> ModuleGraph:
    """A model with an input `x`, an output `y`, and calls of the modules `names`, in that order.

    Classes are `Block`, if `classes` does not say otherwise; `name.part` in `classes` adds a module that is not called.
    """
    given = dict.fromkeys(names, "Block") | dict(classes or {})
    modules = (
        Module("", "Net", "Net", (), (), 0, 0, 0),
        *(Module(name, kind, kind, (), (), 0, 0, 0) for name, kind in given.items()),
    )
    calls = (Call("", 0, None, (), (TENSOR,)), *(Call(name, 0, 0, (TENSOR,), (TENSOR,)) for name in names))
    nodes = [Node("call", None, call=0), Node("input", 0, tensor=TensorInfo("input[0]", (2, 4), "float32", False))]
    nodes += [Node("call", 0, call=at + 1) for at in range(len(names))]
    nodes.append(Node("output", 0, tensor=TENSOR))
    number = {"x": 1, "y": len(nodes) - 1} | {name: at + 2 for at, name in enumerate(names)}
    found = tuple(Edge(number[source], number[target], True) for source, target in edges)
    return ModuleGraph(0, 0, modules, calls, tuple(nodes), found)


def chained(names: Sequence[str]) -> list[Ends]:
    return list(zip(("x", *names), (*names, "y"), strict=True))


def abreast(names: Sequence[str]) -> list[Ends]:
    return [("x", name) for name in names] + [(name, "y") for name in names]


def named(graph: ModuleGraph, nodes: Sequence[int]) -> list[str]:
    return [graph.calls[graph.nodes[node].call or 0].module for node in nodes]


def stacks(graph: ModuleGraph) -> list[list[str]]:
    return [named(graph, stack) for stack in layout(graph, 0).stacks]


LAYERS = [f"layers.{i}" for i in range(4)]
MIXED = ["norm", *LAYERS, "head"]
BETWEEN = [*LAYERS[:2], "mid", *LAYERS[2:]]

CASES = {
    "a chain": (graph_of(MIXED, chained(MIXED)), [LAYERS]),
    "a chain with numbers in its names": (
        graph_of(["a1", "a2", "a3"], chained(["a1", "a2", "a3"])),
        [["a1", "a2", "a3"]],
    ),
    "a chain in which each also gets the first": (
        graph_of(LAYERS, [*chained(LAYERS), ("layers.0", "layers.2"), ("layers.0", "layers.3")]),
        [LAYERS],
    ),
    "side by side": (graph_of(LAYERS, abreast(LAYERS)), [LAYERS]),
    "side by side, one left out": (
        graph_of(["e.0", "e.2", "e.9"], abreast(["e.0", "e.2", "e.9"])),
        [["e.0", "e.2", "e.9"]],
    ),
    "two are too few": (graph_of(LAYERS[:2], chained(LAYERS[:2])), []),
    "of another class": (graph_of(LAYERS, chained(LAYERS), {"layers.1": "Pool"}), []),
    "with another part": (graph_of(LAYERS, chained(LAYERS), {"layers.0.bias": "Embedding"}), [LAYERS[1:]]),
    "with equal parts": (graph_of(LAYERS, chained(LAYERS), {f"{name}.fc": "Linear" for name in LAYERS}), [LAYERS]),
    "something in between": (graph_of(BETWEEN, chained(BETWEEN)), []),
    "left and entered again": (
        graph_of(
            ["layers.0", "layers.1", "side", "layers.2"],
            [
                *chained(["layers.0", "layers.1", "layers.2"]),
                ("layers.0", "side"),
                ("side", "layers.2"),
            ],
        ),
        [],
    ),
    "backwards": (graph_of(LAYERS, chained(LAYERS[::-1])), []),
    "with no edges": (graph_of(LAYERS, []), [LAYERS]),
}


@pytest.mark.parametrize(("graph", "expected"), CASES.values(), ids=CASES)
def test_equal_siblings_in_a_chain_or_side_by_side_can_be_stacked(
    graph: ModuleGraph, expected: list[list[str]]
) -> None:
    assert stacks(graph) == expected


def boxes(graph: ModuleGraph, found: Layout) -> list[list[str]]:
    return [named(graph, one.all or (one.node,)) for one in found.nodes if graph.nodes[one.node].kind == "call"]


def test_a_stack_is_one_box_with_the_edges_of_all_and_without_those_within() -> None:
    graph = graph_of(MIXED, [*chained(MIXED), ("norm", "layers.2"), ("layers.1", "y")])
    found = layout(graph, 0, stacked=(3,))
    assert boxes(graph, found) == [["norm"], LAYERS, ["head"]]
    assert found.loops == ((2,),)
    ends = [{(graph.edges[at].source, graph.edges[at].target) for at in one.all or (one.edge,)} for one in found.edges]
    assert ends == [{(1, 2)}, {(2, 3), (2, 5)}, {(6, 7)}, {(7, 8)}, {(4, 8)}]
    tops = [one.y for one in found.nodes]
    assert tops == sorted(tops), "nothing leads back"


def test_stacks_are_opened_one_by_one() -> None:
    names = [*(f"downs.{i}" for i in range(3)), *(f"ups.{i}" for i in range(3))]
    graph = graph_of(names, [*chained(names), ("downs.0", "ups.2"), ("downs.1", "ups.1")])
    shown = {
        wanted: [len(box) for box in boxes(graph, layout(graph, 0, stacked=wanted))]
        for wanted in (None, (), (2,), (5,), (9,))
    }
    assert shown == {None: [3, 3], (): [1] * 6, (2,): [3, 1, 1, 1], (5,): [1, 1, 1, 3], (9,): [1] * 6}


@pytest.mark.slow
def test_thousands_of_siblings_are_found_in_time() -> None:
    names = [f"layers.{i}" for i in range(5_000)]
    graph = graph_of(names, chained(names))
    before = time.process_time()
    found = layout(graph, 0, stacked=None)
    assert time.process_time() - before < 2
    assert [len(one.all) for one in found.nodes] == [0, 5_000, 0]
