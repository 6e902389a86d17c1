"""Finds a recurrence whose state is detached from one place to the next, so that no gradient goes back through time.

The evidence is the module graph: calls of a cell one after the other, and which of their inputs require a gradient;
and for cells of one's own, the statistics of these tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT_CELLS
from torchgraph_explorer.findings.rules.rule import finding, named
from torchgraph_explorer.schema import Call, TensorInfo

LEAST_CALLS = 4
"""Fewest calls of a cell, one after the other."""


def state_detached(evidence: Evidence) -> Iterator[Finding]:
    """A cell is called for one place after the other, and its state is detached each time.

    The state is detached if it comes from the call before, whose output requires a gradient, and requires none.
    """
    calls = evidence.places.calls
    before = _calls_before(evidence)
    looked_at = set[str]()
    for (module, _), in_turn in _turns(calls).items():
        within = {*in_turn}
        pairs = [(calls[before[at]], calls[at]) for at in in_turn[1:] if before.get(at) in within]
        if module in looked_at:
            continue
        looked_at.add(module)
        if len(in_turn) < LEAST_CALLS or len(pairs) < len(in_turn) - 1 or not _are_detached(evidence, module, pairs):
            continue
        yield finding(
            evidence,
            "state-detached",
            "warning",
            at=module,
            rows=range(len(evidence)),
            numbers={"calls": len(in_turn)},
            text=f"{named(module)} is called {len(in_turn)} times in a row, and the state that each call hands "
            "to the next is detached: no gradient goes back through time, so it cannot learn what to remember.",
            advice="Detach the state between batches, or after some number of steps, and not at each step. Look for "
            "`detach()`, `.data` or a copy by `torch.tensor` in the loop.",
        )


def _calls_before(evidence: Evidence) -> dict[int, int]:
    """The numbers of calls that take an output of a call of the same module, with the number of that one."""
    graph, calls, found = evidence.places.graph, evidence.places.calls, dict[int, int]()
    for edge in graph.edges if graph is not None else ():
        source, target = graph.nodes[edge.source].call, graph.nodes[edge.target].call  # type: ignore[union-attr]
        if source is not None and target is not None and calls[source].module == calls[target].module:
            found[target] = source
    return found


def _turns(calls: Sequence[Call]) -> dict[tuple[str, int | None], list[int]]:
    """The numbers of the calls of a module within one call of another one."""
    found: dict[tuple[str, int | None], list[int]] = {}
    for number, call in enumerate(calls):
        found.setdefault((call.module, call.parent), []).append(number)
    return found


def _are_detached(evidence: Evidence, module: str, pairs: Sequence[tuple[Call, Call]]) -> bool:
    """Whether each call of a module takes its state from the call before, without a gradient.

    Of a module that is no cell of torch, the state is what each call takes unchanged from the one before. Another input
    has to differ from call to call: where there is none, as in a rollout, a detached state is usually meant.
    """
    if not all(any(info.requires_grad for info in earlier.outputs) for earlier, _ in pairs):
        return False
    if evidence.places.class_of(module) in RECURRENT_CELLS:  # its first input is no state
        return not any(
            info.requires_grad for _, call in pairs for info in call.inputs if not info.path.startswith("input[0]")
        )
    fed: dict[str, set[float]] = {}
    for pair in pairs:
        _, call = pair
        states = [info for info in call.inputs if _is_handed_on(evidence, pair, info)]
        if not states or any(info.requires_grad for info in states):
            return False
        for info in call.inputs:
            column = evidence.find(call.module, call.call, "input", info.path)
            if info not in states and column is not None:
                fed.setdefault(info.path, set()).add(float(evidence.column("mean", column)[0]))
    return any(len(means) > 1 for means in fed.values())


def _is_handed_on(evidence: Evidence, pair: tuple[Call, Call], taken: TensorInfo) -> bool:
    """Whether an input of the second call has the values of an output of the first one, at all recorded steps."""
    earlier, call = pair
    column = evidence.find(call.module, call.call, "input", taken.path)
    for output in earlier.outputs:
        at = evidence.find(earlier.module, earlier.call, "output", output.path)
        if at is None or column is None or (output.shape, output.dtype) != (taken.shape, taken.dtype):
            continue
        both = ((evidence.column(name, one) for one in (at, column)) for name in ("mean", "std", "count"))
        if all(np.array_equal(one, other, equal_nan=True) for one, other in both):
            return True
    return False
