"""Where nodes and edges stand, whatever the inside looks like, and how long that takes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence

import pytest

from tests.layout import structures
from tests.layout.structures import chain, loose_ends, overlapping, residual, structure
from tests.record.examples import GRAPH
from torchgraph_explorer.layout import placing
from torchgraph_explorer.layout.dot import NotDrawnError, place_with_dot
from torchgraph_explorer.layout.placing import layout, place
from torchgraph_explorer.layout.structure import Placement, Structure
from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Node, TensorInfo

SHAPES = {
    "one node": (1, []),
    "no edges": (5, []),
    "chain": (9, chain(9)),
    "long chain": (700, chain(700)),
    "residual": (21, residual(5)),
    "u": (12, structures.u_shape(6)),
    "fan": (10, structures.fan(8)),
    "two edges between two nodes": (2, [(0, 1), (0, 1)]),
    "wide fan": (102, structures.fan(100)),
    "all to all": (24, structures.all_to_all(24)),
    "shared by all": (61, structures.shared_by_all(60)),
    "scattered": (120, structures.scattered(120, 300)),
    "very long chain": (2_000, chain(2_000)),
}
PLAIN = {"wide fan", "scattered", "very long chain"}
CASES = [pytest.param(count, edges, name, id=name) for name, (count, edges) in SHAPES.items()]
FEW = [pytest.param(count, edges, name, id=name) for name, (count, edges) in SHAPES.items() if count <= 200]


@pytest.mark.parametrize(("count", "edges", "name"), FEW)
def test_no_nodes_overlap_and_every_line_joins_its_nodes(count: int, edges: list[structures.Ends], name: str) -> None:
    drawn = structure(count, edges)
    found = place(drawn)
    assert overlapping(found, drawn) == []
    assert loose_ends(found, drawn) == []


@pytest.mark.parametrize(("count", "edges", "name"), CASES)
def test_data_runs_downwards_within_the_drawing(count: int, edges: list[structures.Ends], name: str) -> None:
    found = place(structure(count, edges))
    assert all(found.centres[source][1] < found.centres[target][1] for source, target in edges)
    points = [point for line in found.lines for point in structures.along(line)] + list(found.centres)
    assert all(-1 <= x <= found.width + 1 and -1 <= y <= found.height + 1 for x, y in points)
    assert all(len(line) % 3 == 1 and len(line) >= 4 for line in found.lines)


@pytest.mark.parametrize(("count", "edges", "name"), CASES)
def test_what_graphviz_would_tangle_or_take_long_over_is_said_to_stand_in_rows(
    count: int, edges: list[structures.Ends], name: str
) -> None:
    reason = place(structure(count, edges)).approximate
    assert (reason is not None) == (name in PLAIN)
    assert reason is None or reason.endswith(placing.IN_ROWS)


@pytest.mark.parametrize("limit", [placing.MOST_WORK, 0], ids=["dot", "rows"])
@pytest.mark.parametrize("edges", [residual(4), structures.u_shape(8)], ids=["residual", "u"])
def test_the_trunk_is_straight_and_skips_run_beside_it(edges: list[structures.Ends], limit: int) -> None:
    count = max(target for _, target in edges) + 1
    found = place(structure(count, edges), most_work=limit)
    trunk = {x for x, _ in found.centres}
    assert max(trunk) - min(trunk) < 1
    for line, (source, target) in zip(found.lines, edges, strict=True):
        if target - source > 1:
            assert max(abs(x - found.centres[0][0]) for x, _ in line) > structures.SIZE[0] / 2


def test_in_rows_a_line_to_the_next_one_goes_there_straight() -> None:
    found = place(structure(9, chain(9)), most_work=0)
    assert {len({x for x, _ in line}) for line in found.lines} == {1}


@pytest.mark.parametrize("limit", [placing.MOST_WORK, 0], ids=["dot", "rows"])
def test_inputs_stand_at_the_top_and_outputs_at_the_bottom(limit: int) -> None:
    drawn = structure(6, [(0, 2), (1, 3), (2, 3), (2, 4), (3, 5)], first=(0, 1), last=(4, 5))
    heights = [y for _, y in place(drawn, most_work=limit).centres]
    assert heights[0] == heights[1] == min(heights)
    assert heights[4] == heights[5] == max(heights)
    assert heights[1] < heights[2] < heights[3] < heights[5]


def test_inputs_stand_in_the_order_of_the_signature_whichever_is_used_first() -> None:
    calls = (Call("", 0, None, (), ()), Call("fc", 0, 0, (), ()))
    nodes = [Node("call", None, call=0)]
    nodes += [Node("input", 0, tensor=TensorInfo(f"input['{name}']", (2, 4), "float32", False)) for name in "cab"]
    nodes += [Node("call", 0, call=1)]
    modules = (
        Module("", "Net", "Net", (), (), 0, 0, 0, forward_parameters=("a", "b", "c")),
        Module("fc", "Linear", "Linear", (), (), 0, 0, 0),
    )
    graph = ModuleGraph(0, 0, modules, calls, tuple(nodes), tuple(Edge(at, 4, True) for at in (1, 2, 3)))
    third, first, second, _ = layout(graph, 0).nodes
    assert first.x < second.x < third.x


@pytest.mark.parametrize(
    ("skips", "lanes"),
    [
        pytest.param([(0, 2), (3, 5)], 1, id="apart"),
        pytest.param([(0, 3), (3, 6)], 2, id="one begins in the row in which the other ends"),
        pytest.param([(0, 4), (2, 6)], 2, id="side by side"),
        pytest.param([(0, 3), (0, 6)], 1, id="from one node"),
    ],
)
def test_lines_beside_the_rows_share_a_lane_only_where_none_is_taken_for_the_other(
    skips: list[structures.Ends], lanes: int
) -> None:
    found = place(structure(7, chain(7) + skips), most_work=0)
    assert len({line[3][0] for line in found.lines[-2:]}) == lanes


@pytest.mark.parametrize("edges", [[(0, 1), (1, 0)], [(0, 0)]], ids=["circle", "loop"])
def test_a_circle_is_drawn_somehow(edges: list[structures.Ends]) -> None:
    for limit in (placing.MOST_WORK, 0):
        assert len(place(structure(2, edges), most_work=limit).lines) == len(edges)


HARD = {
    "chain": (1_450, chain(1_450)),
    "residual": (961, residual(240)),
    "u": (48, structures.u_shape(18)),
    "scattered": (60, structures.scattered(60, 70)),
    "huge fan": (5_002, structures.fan(5_000)),
    "all to all": (200, structures.all_to_all(200)),
    "shared by 5,000": (5_001, structures.shared_by_all(5_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("count", "edges"), HARD.values(), ids=HARD)
def test_no_layout_takes_more_than_two_seconds(count: int, edges: list[structures.Ends]) -> None:
    before = time.process_time()
    placing._place.__wrapped__(structure(count, edges), placing.MOST_WORK)
    assert time.process_time() - before < 2


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Structure]:
    """What Graphviz is asked to place from here on."""
    asked: list[Structure] = []
    whole = place_with_dot

    def count(drawn: Structure) -> Placement:
        asked.append(drawn)
        return whole(drawn)

    monkeypatch.setattr(placing, "place_with_dot", count)
    placing._place.cache_clear()
    return asked


def test_equal_structure_is_placed_once_also_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    threads = [threading.Thread(target=place, args=(structure(21, residual(5)),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asked) == 1


def test_the_inside_of_a_call_is_placed_by_the_indices_of_its_nodes_and_edges() -> None:
    found = layout(GRAPH, 0)
    assert [node.node for node in found.nodes] == [1, 2, 3, 4, 5]
    assert [edge.edge for edge in found.edges] == [0, 1, 2]
    assert [node.node for node in layout(GRAPH, None).nodes] == [0]
    assert layout(GRAPH, 1).nodes == ()


def test_what_graphviz_does_not_draw_stands_in_rows_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_drawn: Structure) -> Placement:
        raise NotDrawnError("Graphviz could not draw every line.")

    monkeypatch.setattr(placing, "place_with_dot", refuse)
    said: Sequence[str | None] = [placing._place.__wrapped__(structure(3, chain(3)), placing.MOST_WORK).approximate]
    assert said == [f"Graphviz could not draw every line. {placing.IN_ROWS}"]


def test_without_the_libraries_of_graphviz_the_graph_is_drawn_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    drawn = placing._place.__wrapped__(structure(3, chain(3)), placing.MOST_WORK)
    assert len(drawn.centres) == 3
    assert str(drawn.approximate).startswith("Graphviz cannot be loaded: ")
    assert "apt-get install libglib2.0-0" in str(drawn.approximate)
