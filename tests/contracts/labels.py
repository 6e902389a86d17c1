"""What tests/contracts/labels.json says, which the viewer's tests read as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchgraph_explorer.schema import Call, ModuleGraph, TensorInfo

CONTRACT: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def tensor_of(shape: list[int | None], varied: list[list[int]]) -> TensorInfo:
    """A tensor of that shape."""
    return TensorInfo("output", tuple(shape), "float32", True, tuple(map(tuple, varied)))


def graph_of(tensors: tuple[TensorInfo, ...]) -> ModuleGraph:
    """A graph of one call, with those outputs."""
    return ModuleGraph(0, 0, (), (Call("", 0, None, (), tensors),), (), ())
