"""The order in which a step computes its tensors, as its module graph tells."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from torchgraph_explorer.schema import ModuleGraph

Side: TypeAlias = Literal["input", "output", "param"]


class Moment(NamedTuple):
    """Tensors of one call that are known at the same moment.

    Attributes:
        module: Qualified name of the module.
        call: Which call of it.
        parent: The call that it happened in, as an index in `ModuleGraph.calls`; None for a call of the model itself.
        side: Which tensors of it.
    """

    module: str
    call: int
    parent: int | None
    side: Side


def forward_order(graph: ModuleGraph) -> list[Moment]:
    """Inputs when a call begins, outputs when it ends, in the order of a forward pass."""
    return [moment for moment in _moments(graph) if moment.side != "param"]


def backward_order(graph: ModuleGraph) -> list[Moment]:
    """Outputs, then parameters, then inputs of each call, in the order in which a backward pass reaches them."""
    return _moments(graph)[::-1]


def parameter_order(graph: ModuleGraph) -> list[str]:
    """The modules, those that were called first, in the order of their first calls."""
    called = dict.fromkeys(moment.module for moment in _moments(graph))
    return list(called | dict.fromkeys(module.name for module in graph.modules))


def _moments(graph: ModuleGraph) -> list[Moment]:
    children: dict[int | None, list[int]] = {}
    for at, call in enumerate(graph.calls):
        children.setdefault(call.parent, []).append(at)
    found: list[Moment] = []
    waiting: list[tuple[int, bool]] = [(at, False) for at in reversed(children.get(None, []))]
    while waiting:  # models may be nested deeper than Python's stack
        at, is_over = waiting.pop()
        call = graph.calls[at]
        if is_over:
            found += [Moment(call.module, call.call, call.parent, side) for side in ("param", "output")]
            continue
        found.append(Moment(call.module, call.call, call.parent, "input"))
        waiting.append((at, True))
        waiting += [(child, False) for child in reversed(children.get(at, []))]
    return found
