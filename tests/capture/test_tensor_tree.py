"""Where tensors are looked for in a module's arguments."""

from __future__ import annotations

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


def test_a_long_list_of_numbers_is_looked_at_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    find = tensor_tree._find

    def look(value: object, *more: Any) -> None:
        looked.append(value)
        find(value, *more)

    monkeypatch.setattr(tensor_tree, "_find", look)
    tensor_tree.input_tensors(([1, 2.5, None] * 1000,), {"words": ["a", "b"] * 1000})
    assert len(looked) == 2
