"""Finds a recurrence whose state is detached from one place to the next, so that no gradient goes back through time.

The evidence is the module graph: calls of a cell one after the other, and which of their inputs require a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT_CELLS
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Call

LEAST_CALLS = 4
"""Fewest calls of a cell, one after the other."""


def state_detached(evidence: Evidence) -> Iterator[Finding]:
    """A cell is called for one place after the other, and its state is detached each time.

    The state is detached if it comes from the call before, whose output requires a gradient, and requires none.
    """
    places, looked_at = evidence.places, set[str]()
    graph, calls = places.graph, places.calls
    if graph is None:
        return
    before: dict[int, int] = {}  # the call of the same module whose output each call takes
    for edge in graph.edges:
        source, target = graph.nodes[edge.source].call, graph.nodes[edge.target].call
        if source is not None and target is not None and calls[source].module == calls[target].module:
            before[target] = source
    for number, call in enumerate(calls):
        if places.class_of(call.module) not in RECURRENT_CELLS or call.module in looked_at or number in before:
            continue
        looked_at.add(call.module)
        in_turn = [at for at, other in enumerate(calls) if (other.module, other.parent) == (call.module, call.parent)]
        later = in_turn[1:]
        if len(in_turn) < LEAST_CALLS or not all(before.get(at) in in_turn for at in later):
            continue
        if any(_state_has_gradient(calls[at]) or not _has_gradient(calls[before[at]]) for at in later):
            continue
        yield finding(
            evidence,
            "state-detached",
            "warning",
            at=call.module,
            rows=range(len(evidence)),
            numbers={"calls": len(in_turn)},
            text=f"{named(call.module)} is called {len(in_turn)} times in a row, and the state that each call hands "
            "to the next is detached: no gradient goes back through time, so it cannot learn what to remember.",
            advice="Detach the state between batches, or after some number of steps, and not at each step. Look for "
            "`detach()`, `.data` or a copy by `torch.tensor` in the loop.",
        )


def _state_has_gradient(call: Call) -> bool:
    """Whether any input of a cell but its first one, which is no state, requires a gradient."""
    return any(info.requires_grad for info in call.inputs if not info.path.startswith("input[0]"))


def _has_gradient(call: Call) -> bool:
    return any(info.requires_grad for info in call.outputs)
