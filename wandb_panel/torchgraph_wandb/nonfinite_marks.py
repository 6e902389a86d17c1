"""Which nodes of a graph have NaN or infinity at each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import ModuleGraph, Node, Series
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN

VALUE_NAN, VALUE_INFINITY, GRADIENT_NAN, GRADIENT_INFINITY, INSIDE = 1, 2, 4, 8, 16
"""Flags of a node at a step: what its values and its gradients have, and that something inside it has any of these."""

OWN = VALUE_NAN | VALUE_INFINITY | GRADIENT_NAN | GRADIENT_INFINITY

Bits = npt.NDArray[np.uint8]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class NonfiniteMarks:
    """The flags of every node at each of `steps` steps.

    Attributes:
        calls: `[steps]` by index in `ModuleGraph.calls`.
        tensors: `[steps]` by (module, call, role, path), for inputs, outputs and attached tensors.
    """

    steps: int
    calls: Mapping[int, Bits]
    tensors: Mapping[tuple[str, int | None, str, str], Bits]

    def of(self, graph: ModuleGraph, node: Node) -> Bits:
        """The flags of a node, `[steps]`."""
        unmarked = np.zeros(self.steps, dtype=np.uint8)
        if node.call is not None:
            return self.calls.get(node.call, unmarked)
        if node.inside is None or node.tensor is None:
            return unmarked
        call = graph.calls[node.inside]
        return self.tensors.get((call.module, call.call, node.kind, node.tensor.path), unmarked)


def nonfinite_marks(graph: ModuleGraph, series: Sequence[Series], flags: Bits) -> NonfiniteMarks:
    """The marks of `graph`, from the `flags` of its series, `[series, steps]` as in `HeatStrips`."""
    steps = flags.shape[1]
    calls: dict[int, Bits] = {}
    tensors: dict[tuple[str, int | None, str, str], Bits] = {}
    numbers = _call_numbers(graph)
    for number in np.flatnonzero((flags & (HAS_NAN | HAS_INFINITY)).any(axis=1)).tolist():
        one = series[number]
        bits = _bits(flags[number], is_value=one.kind == "value")
        _add(tensors, (one.module, one.call, one.role, one.path), bits)
        for call in numbers.get((one.module, one.call), ()):
            _add(calls, call, bits if one.role != "attached" else _inside(bits))
            _mark_parents(calls, graph, call=call, bits=bits)
    return NonfiniteMarks(steps, calls, tensors)


def _call_numbers(graph: ModuleGraph) -> dict[tuple[str, int | None], list[int]]:
    """The calls a series may belong to: one call, or with None every call of its module."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for number, call in enumerate(graph.calls):
        found.setdefault((call.module, call.call), []).append(number)
        found.setdefault((call.module, None), []).append(number)
    return found


def _bits(flags: Bits, *, is_value: bool) -> Bits:
    own = flags & (HAS_NAN | HAS_INFINITY)
    return (own if is_value else own * 4).astype(np.uint8)


def _inside(bits: Bits) -> Bits:
    return np.where(bits > 0, INSIDE, 0).astype(np.uint8)


def _add(found: dict[Key, Bits], key: Key, bits: Bits) -> None:
    known = found.get(key)
    found[key] = bits if known is None else known | bits


def _mark_parents(calls: dict[int, Bits], graph: ModuleGraph, *, call: int, bits: Bits) -> None:
    parent = graph.calls[call].parent
    while parent is not None:
        _add(calls, parent, _inside(bits))
        parent = graph.calls[parent].parent
