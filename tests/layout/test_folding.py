"""Which calls are drawn as one node."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from tests.layout.structures import along
from torchgraph_explorer.layout.placing import MOST_WORK, layout
from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Node, TensorInfo

TENSOR = TensorInfo("output", (2, 4), "float32", True)


def graph_of(names: Sequence[str]) -> ModuleGraph:
    """A model that calls modules one after the other, each with the data of the one before; capitals attach tensors."""
    counts: dict[str, int] = {}
    calls = [Call("", 0, None, (), (TENSOR,))]
    nodes = [Node("call", None, call=0), Node("input", 0, tensor=TENSOR)]
    for name in names:
        counts[name] = turn = counts.get(name, -1) + 1
        if name.isupper():
            path = name if turn == 0 else f"{name} #{turn + 1}"
            nodes.append(Node("attached", 0, tensor=TensorInfo(path, (2, 4), "float32", True)))
        else:
            calls.append(Call(name, turn, 0, (TENSOR,), (TENSOR,)))
            nodes.append(Node("call", 0, call=len(calls) - 1))
    nodes.append(Node("output", 0, tensor=TENSOR))
    modules = tuple(
        Module(name, "Cell", "Cell", (), (), 0, 0, 0) for name in ["", *(n for n in counts if not n.isupper())]
    )
    edges = tuple(Edge(at, at + 1, True) for at in range(1, len(nodes) - 1))
    return ModuleGraph(0, 0, modules, tuple(calls), tuple(nodes), edges)


def drawn(names: Sequence[str]) -> str:
    """The boxes between input and output: `cell×999`."""
    boxes = layout(graph_of(names), 0, folds=True).nodes[1:-1]
    return " ".join(names[one.node - 2] + (f"×{len(one.all)}" if one.all else "") for one in boxes)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param("c" * 999, "c×999", id="a cell in a loop"),
        pytest.param("ccc", "c c c", id="three calls are read one by one"),
        pytest.param("ch" * 50, "c×50 h×50", id="two in turn"),
        pytest.param("s" + "ech" * 100 + "o", "s e×100 c×100 h×100 o", id="three in turn"),
        pytest.param("ccccccmcccc", "c×6 m c×4", id="something once in between"),
        pytest.param("e" * 8 + "do" * 8, "e×8 d×8 o×8", id="one loop after the other"),
        pytest.param("arbrcrdrer", "a r b r c r d r e r", id="one ReLU for many layers"),
        pytest.param("abaacabababccca", "a×7 b×4 c×4", id="taking turns irregularly"),
        pytest.param("cH" * 6, "c×6 H×6", id="a tensor attached in each turn"),
    ],
)
def test_calls_of_the_same_modules_in_a_row_are_one_node(names: str, expected: str) -> None:
    assert drawn(names) == expected


def test_without_folding_each_call_has_its_node_and_each_edge_its_line() -> None:
    graph = graph_of("c" * 20)
    placed = layout(graph, 0)
    assert [one.node for one in placed.nodes] == list(range(1, 23))
    assert [one.edge for one in placed.edges] == list(range(21))
    assert not placed.loops


@pytest.mark.parametrize("most_work", [pytest.param(MOST_WORK, id="graphviz"), pytest.param(0, id="rows")])
def test_the_line_of_a_loop_leaves_its_node_and_comes_back_within_the_drawing(most_work: int) -> None:
    placed = layout(graph_of("ch" * 50), 0, folds=True, most_work=most_work)
    assert placed.loops == ((1, 2),)
    points = [point for one in placed.edges for point in along(one.points)]
    assert all(-1 <= x <= placed.width + 1 and -1 <= y <= placed.height + 1 for x, y in points)


def test_each_node_and_edge_is_drawn_exactly_once() -> None:
    graph = graph_of("s" + "ecHh" * 30 + "o")
    placed = layout(graph, 0, folds=True)
    nodes = sorted(node for one in placed.nodes for node in one.all or (one.node,))
    edges = sorted(edge for one in placed.edges for edge in one.all or (one.edge,))
    assert nodes == [at for at, node in enumerate(graph.nodes) if node.inside == 0]
    assert edges == list(range(len(graph.edges)))


@pytest.mark.slow
def test_calls_that_are_split_ever_again_are_drawn_soon() -> None:
    names = ["m1", "m0", *(name for at in range(1, 3_000) for name in (f"m{at + 1}", f"m{at}", f"m{at}", f"m{at}"))]
    began = time.process_time()
    assert "×" not in drawn(names)
    assert time.process_time() - began < 10
