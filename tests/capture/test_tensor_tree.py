"""Where tensors are looked for in a module's arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from torchgraph_explorer.capture import tensor_tree

TENSOR = torch.zeros(2)


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        pytest.param([0.5] * 1000, [], id="numbers"),
        pytest.param(["a word", None] * 500, [], id="words"),
        pytest.param([0.5] * 1000 + [TENSOR], ["[1000]"], id="a tensor behind numbers"),
        pytest.param([0.5] * 1000 + [[TENSOR]], ["[1000][0]"], id="a list behind numbers"),
        pytest.param((TENSOR,) * 20, [f"[{i}]" for i in range(20)], id="tensors"),
    ],
)
def test_every_tensor_in_a_long_list_is_found(value: Any, paths: list[str]) -> None:
    assert [path for path, _ in tensor_tree.tensors(value, "")] == paths


@dataclass
class Node:
    value: torch.Tensor
    parent: Node | None = None
    others: list[Node] = field(default_factory=list)


def test_a_tree_whose_nodes_know_their_parents_is_searched_once() -> None:
    root = Node(TENSOR)
    root.others = [Node(TENSOR, root) for _ in range(8)]
    paths = [path for path, _ in tensor_tree.tensors(root, "")]
    assert paths == [".value", *(f".others[{i}].value" for i in range(8))]


def test_the_search_of_a_graph_of_objects_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_tree, "MOST_PARTS", 1000)
    nodes = [Node(TENSOR) for _ in range(20)]
    for node in nodes:
        node.others = nodes
    assert 0 < len(tensor_tree.tensors(nodes[0], "")) < 1000


def test_what_is_given_twice_is_found_twice() -> None:
    pair = (TENSOR, [TENSOR])
    assert [path for path, _ in tensor_tree.tensors([pair, pair], "")] == ["[0][0]", "[0][1][0]", "[1][0]", "[1][1][0]"]


def test_a_long_list_of_numbers_is_looked_at_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    find = tensor_tree._find

    def look(value: object, *more: Any) -> None:
        looked.append(value)
        find(value, *more)

    monkeypatch.setattr(tensor_tree, "_find", look)
    tensor_tree.input_tensors(([1, 2.5, None] * 1000,), {"words": ["a", "b"] * 1000})
    assert len(looked) == 2
