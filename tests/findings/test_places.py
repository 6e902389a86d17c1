"""Which call the data of another comes from, looked up in large graphs as in small ones."""

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
