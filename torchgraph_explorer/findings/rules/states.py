"""The state of a recurrence that gradients do not go through."""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT_CELLS
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Call

LEAST_CALLS = 4
"""Of a cell, one after the other."""


def state_detached(evidence: Evidence) -> Iterator[Finding]:
    """Within a call of the model, a cell is called for one place after the other, and its state is detached each time.

    The state comes from the call before, whose output requires a gradient, and requires none.
    """
    places, told = evidence.places, set[str]()
    graph, calls = places.graph, places.calls
    if graph is None:
        return
    before: dict[int, int] = {}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source].call, graph.nodes[edge.target].call
        if source is not None and target is not None and calls[source].module == calls[target].module:
            before[target] = source
    for number, call in enumerate(calls):
        if places.class_of(call.module) not in RECURRENT_CELLS or call.module in told or number in before:
            continue
        told.add(call.module)
        following = [at for at, one in enumerate(calls) if one.module == call.module and one.parent == call.parent]
        later = following[1:]
        if len(following) < LEAST_CALLS or not all(before.get(at) in following for at in later):
            continue
        if any(_state_has_gradient(calls[at]) or not _has_gradient(calls[before[at]]) for at in later):
            continue
        yield finding(
            evidence,
            "state-detached",
            "warning",
            at=call.module,
            rows=range(len(evidence)),
            numbers={"calls": len(following)},
            text=f"{named(call.module)} is called {len(following)} times in a row, and the state that each call hands "
            "to the next is detached: no gradient goes back through time, so it cannot learn what to remember.",
            advice="Detach the state between batches, or after some number of steps, and not at each step. Look for "
            "`detach()`, `.data` or a copy by `torch.tensor` in the loop.",
        )


def _state_has_gradient(call: Call) -> bool:
    return any(one.requires_grad for one in call.inputs if not one.path.startswith("input[0]"))


def _has_gradient(call: Call) -> bool:
    return any(one.requires_grad for one in call.outputs)
