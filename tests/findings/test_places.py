"""Which call the data of another comes from: in large graphs as in small ones, and through tensors with names."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.record.examples import GRAPH
from torchgraph_explorer.findings.places import Places
from torchgraph_explorer.schema import Call, Edge, ModuleGraph, Node


def nested(rng: random.Random, count: int) -> ModuleGraph:
    """Calls within calls, in the order in which they began, and edges between any of them."""
    parents: list[int | None] = [None]
    for number in range(1, count):
        around = [number - 1]  # the last call and those around it: one of them holds the next one
        while (above := parents[around[-1]]) is not None:
            around.append(above)
        parents.append(rng.choice(around))
    calls = tuple(Call(f"{number}", 0, parent, (), ()) for number, parent in enumerate(parents))
    nodes = tuple(Node("call", parent, call=number) for number, parent in enumerate(parents))
    beside = [(a, b) for b in range(count) for a in range(b) if parents[a] == parents[b]]
    edges = tuple(Edge(a, b, False) for a, b in rng.sample(beside, len(beside) // 2))
    return replace(GRAPH, calls=calls, nodes=nodes, edges=edges)


def searched(places: Places, call: int) -> int | None:
    """The last call without calls inside, within the last one beside `call` that it takes data from."""
    before = [one for one in places.sources.get(call, ()) if one < call]
    if not before:
        return None
    source = max(before)
    inside = [one for one in range(source, call) if one == source or source in places.ancestors(one)]
    return [one for one in inside if places.is_leaf(one)][-1]


@pytest.mark.parametrize("seed", range(20))
def test_the_producer_is_the_last_call_within_the_one_that_hands_the_data_on(seed: int) -> None:
    places = Places((nested(random.Random(seed), 40),))
    found = [places.producer(call) for call in range(40)]
    assert found == [searched(places, call) for call in range(40)]
    assert any(one is not None and not set(places.sources[call]) & {one} for call, one in enumerate(found))


def named_on_the_way(graph: ModuleGraph, rng: random.Random) -> ModuleGraph:
    """The same graph, in which what goes along some edges was given one to three names with `attach`."""
    nodes, edges = [*graph.nodes], list[Edge]()
    for edge in graph.edges:
        source = edge.source
        for name in range(rng.choice((0, 1, 3))):
            nodes.append(Node("attached", nodes[edge.target].inside))
            gradient = edge.gradient if name == 0 else rng.random() < 0.5 or edge.gradient
            edges.append(Edge(source, len(nodes) - 1, gradient))
            source = len(nodes) - 1
        edges.append(Edge(source, edge.target, edge.gradient))
    rng.shuffle(edges)
    return replace(graph, nodes=tuple(nodes), edges=tuple(edges))


@pytest.mark.parametrize("seed", range(20))
def test_names_on_the_way_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    graph = nested(rng, 40)
    graph = replace(graph, edges=tuple(replace(one, gradient=rng.random() < 0.5) for one in graph.edges))
    plain, named = Places((graph,)), Places((named_on_the_way(graph, rng),))
    assert {*named.edges} == {*plain.edges}
    for call in range(40):
        assert sorted(named.sources.get(call, ())) == sorted(plain.sources.get(call, ()))
        assert named.producer(call) == plain.producer(call)
        assert named.is_computed_with_weights(call) == plain.is_computed_with_weights(call)


def test_a_crafted_graph_of_names_is_followed_in_linear_time() -> None:
    count = 3_000
    nodes = (*(Node("attached", 0) for _ in range(count)), *(Node("call", 0, call=0) for _ in range(count)))
    chain = tuple(Edge(number, number + 1, True) for number in range(count - 1))
    ends = tuple(Edge(count - 1, count + number, True) for number in range(count))
    calls = (Call("", 0, None, (), ()),)
    places = Places((replace(GRAPH, calls=calls, nodes=nodes, edges=(*chain, *ends)),))
    assert places.edges == ()
