"""Which edges are drawn as stubs, and that the others still order the nodes."""

from __future__ import annotations

import random

import pytest

from tests.layout import structures
from tests.layout.structures import chain, structure
from torchgraph_explorer.layout.placing import place
from torchgraph_explorer.layout.structure import Structure, layer_of
from torchgraph_explorer.layout.stubs import (
    COUNT_ROOM,
    LABEL_ROOM,
    MOST_LINES,
    passing,
    stub_edges,
    without_stubs,
)

Ends = structures.Ends


def embedding(blocks: int) -> list[Ends]:
    """A chain that begins with node 0, and an embedding, the last node, that each of its other nodes gets."""
    return [*chain(blocks + 1), *((blocks + 1, node) for node in range(1, blocks + 1))]


def dense(layers: int) -> list[Ends]:
    return structures.all_to_all(layers)


def gathered(layers: int) -> list[Ends]:
    """A chain whose last node gets the results of all."""
    return [*chain(layers), *((node, layers - 1) for node in range(layers - 2))]


def experts(count: int) -> list[Ends]:
    """A router, and experts that get its result and its input."""
    named = range(2, count + 2)
    return [
        (0, 1),
        *((0, node) for node in named),
        *((1, node) for node in named),
        *((node, count + 2) for node in named),
    ]


def stubs_of(drawn: Structure) -> list[Ends]:
    return sorted(drawn.edges[edge] for edge in stub_edges(drawn))


CASES = {
    "a residual stream has none": (structures.residual(10), []),
    "the skips of a U-Net have none": (structures.u_shape(8), []),
    "three skips from one node have none": ([*chain(6), (0, 2), (0, 3), (0, 4)], []),
    "four are a fan": ([*chain(6), (0, 2), (0, 3), (0, 4), (0, 5)], [(0, 2), (0, 3), (0, 4), (0, 5)]),
    "an embedding keeps the line to its first block": (embedding(6), [(7, node) for node in range(2, 7)]),
    "experts side by side have none": (experts(16), []),
    "five results that are gathered have none": (gathered(7), []),
    "of six that are gathered, all are": (gathered(8), [(node, 7) for node in range(6)]),
}


@pytest.mark.parametrize(("edges", "expected"), CASES.values(), ids=CASES)
def test_many_edges_of_one_node_to_different_layers_are_stubs(edges: list[Ends], expected: list[Ends]) -> None:
    count = max(node for ends in edges for node in ends) + 1
    assert stubs_of(structure(count, edges)) == expected


@pytest.mark.parametrize("depth", [12, 13, 30, 200])
def test_no_more_lines_than_can_be_told_apart_pass_a_layer(depth: int) -> None:
    drawn = structure(2 * depth, structures.u_shape(depth))
    stubs = stub_edges(drawn)
    left = without_stubs(drawn, stubs)
    assert max(passing(layer_of(left), left.edges)) == min(depth - 1, MOST_LINES)
    assert all(source < depth - 1 - MOST_LINES for source, _ in stubs_of(drawn)), "the inner skips stay lines"


SHAPES = {
    "dense": (24, dense(24)),
    "embedding": (32, embedding(30)),
    "gathered": (20, gathered(20)),
    "shared": (61, structures.shared_by_all(60)),
    "scattered": (80, structures.scattered(80, 200)),
    "wide": (18, experts(15)),
}


@pytest.mark.parametrize(("count", "edges"), SHAPES.values(), ids=SHAPES)
def test_every_node_with_an_edge_has_a_line(count: int, edges: list[Ends]) -> None:
    drawn = structure(count, edges)
    lines = without_stubs(drawn, stub_edges(drawn)).edges
    assert {node for ends in lines for node in ends} == {node for ends in edges for node in ends}
    assert {source for source, _ in lines} == {source for source, _ in edges}


@pytest.mark.parametrize(("count", "edges"), SHAPES.values(), ids=SHAPES)
def test_labels_have_room_beside_their_nodes(count: int, edges: list[Ends]) -> None:
    drawn = structure(count, edges)
    found = place(drawn)
    rooms = [
        LABEL_ROOM if any(drawn.edges[edge][1] == node for edge in found.stubs) else COUNT_ROOM for node in range(count)
    ]
    ends = {node for edge in found.stubs for node in drawn.edges[edge]}
    for node in ends:
        x, y = found.centres[node]
        reach = structures.SIZE[0] / 2 + rooms[node]
        assert reach - 1 <= x <= found.width - reach + 1
        beside = (other for other in range(count) if abs(found.centres[other][1] - y) < 1 and other != node)
        assert all(abs(found.centres[other][0] - x) >= reach + structures.SIZE[0] / 2 - 1 for other in beside)


def test_stubs_of_one_node_share_a_lane_on_the_left() -> None:
    drawn = structure(32, embedding(30))
    found = place(drawn)
    lanes = {found.lines[edge][3][0] for edge in found.stubs}
    assert len(lanes) == 1
    assert lanes.pop() < min(x for x, _ in found.centres) - structures.SIZE[0] / 2


def test_inputs_stand_in_the_order_in_which_they_are_given() -> None:
    crossing = [(0, 5), (1, 4), (2, 3), (3, 6), (4, 6), (5, 6)]
    for first in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        for limit in (3_000, 0):
            found = place(structure(7, crossing, first=first, last=(6,)), most_work=limit)
            assert sorted(first, key=lambda node: found.centres[node][0]) == list(first)


def test_what_depends_on_no_input_stands_just_above_its_target() -> None:
    drawn = structure(8, [*chain(6), (6, 7), (7, 5)], first=(0,))
    assert layer_of(drawn)[6:] == [3, 4]


@pytest.mark.parametrize("seed", range(6))
def test_lines_touch_nodes_that_have_room_beside_them(seed: int) -> None:
    count = 30
    edges = [*chain(count), *structures.scattered(count, 50)]
    drawn = structure(count, random.Random(seed).sample(edges, len(edges)), first=(0,), last=(count - 1,))
    found = place(drawn)
    assert found.stubs
    assert structures.loose_ends(found, drawn) == []
    assert structures.overlapping(found, drawn) == []
