"""Finds where NaN or infinity arose in a step: the first tensor that has it, in the order of execution.

Parameters exist before the first call. Then each call takes its inputs, makes its own calls and gives its
outputs; so where a call makes NaN of finite inputs, its output is the first, and where NaN is made between two calls,
the input of the later one is. Backward goes the same way back, and the optimizer comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchgraph_explorer.schema import ModuleGraph, Series

_STAGES = {"value": 1, "grad_norm": 2, "grad": 2, "optimizer_grad": 3, "update": 4, "update_ratio": 5}
_PARAMETERS = 0

_NEVER = 1 << 40
"""The time of something that is not in the graph: after everything else."""


@dataclass(frozen=True, slots=True)
class Times:
    """When things happen in a graph, as numbers of which only the order has a meaning.

    Attributes:
        begins: By (module, call) when it takes its inputs.
        ends: Likewise when it gives its outputs.
        first: By module the number of its first call.
        attached: By (module, call, path) when a tensor is attached: before what it goes into.
    """

    begins: Mapping[tuple[str, int], int]
    ends: Mapping[tuple[str, int], int]
    first: Mapping[str, int]
    attached: Mapping[tuple[str, int, str], int]


def first_of(found: Iterable[Series], graph: ModuleGraph | None) -> Series | None:
    """Which of the series `found` comes first; None if there are none."""
    times = execution(graph) if graph is not None else Times({}, {}, {}, {})
    return min(found, key=lambda one: _rank(one, times), default=None)


def execution(graph: ModuleGraph) -> Times:
    """When the calls of `graph` begin and end, and tensors are attached."""
    names = [(call.module, call.call) for call in graph.calls]
    begins, ends = [0] * len(names), [0] * len(names)
    for now, (call, is_end) in enumerate(_events(graph), start=1):
        (ends if is_end else begins)[call] = 3 * now
    first: dict[str, int] = {}
    for module, call in names:
        first.setdefault(module, call)
    goes_into = _begins_of_targets(graph, begins)
    attached = {
        (*names[node.inside], node.tensor.path): min(goes_into.get(place, _NEVER), ends[node.inside]) - 1
        for place, node in enumerate(graph.nodes)
        if node.kind == "attached" and node.inside is not None and node.tensor is not None
    }
    return Times(dict(zip(names, begins, strict=True)), dict(zip(names, ends, strict=True)), first, attached)


def _events(graph: ModuleGraph) -> Iterable[tuple[int, bool]]:
    """The calls as they begin and end; calls are in the order in which they begin."""
    open_calls: list[int] = []
    for number, call in enumerate(graph.calls):
        while open_calls and open_calls[-1] != call.parent:
            yield open_calls.pop(), True
        open_calls.append(number)
        yield number, False
    while open_calls:
        yield open_calls.pop(), True


def _begins_of_targets(graph: ModuleGraph, begins: list[int]) -> dict[int, int]:
    """When the first call begins that an edge leads to, by the node that the edge comes from."""
    found: dict[int, int] = {}
    for edge in graph.edges:
        call = graph.nodes[edge.target].call
        if call is not None:
            found[edge.source] = min(found.get(edge.source, _NEVER), begins[call])
    return found


def _rank(one: Series, times: Times) -> tuple[int, int, int]:
    stage = _PARAMETERS if one.role == "param" and one.kind == "value" else _STAGES.get(one.kind, len(_STAGES))
    when = _when(one, times)
    is_backward = stage == _STAGES["grad"] and when < _NEVER
    return stage, -when if is_backward else when, one.id


def _when(one: Series, times: Times) -> int:
    call = times.first.get(one.module) if one.call is None else one.call
    if call is None or (one.module, call) not in times.begins:
        return _NEVER
    at = one.module, call
    if one.role == "attached":
        return times.attached.get((*at, one.path), times.ends[at] - 1)
    if one.role == "output":
        return times.ends[at]
    return times.begins[at] + (one.role == "param")
