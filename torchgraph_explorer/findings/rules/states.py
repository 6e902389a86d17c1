"""Finds a recurrence that learns nothing through time: its state is detached at each place, or is always zero.

The evidence is the module graph: calls of a cell one after the other, and which of their inputs require a gradient;
for cells of one's own, the statistics of these tensors; and gradients of the weights that multiply the state, which are
exactly zero where the state is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT, RECURRENT_CELLS, RecurrentPart, recurrent_part
from torchgraph_explorer.findings.rules.rule import Rows, finding, named
from torchgraph_explorer.schema import Call, Shape, TensorInfo

LEAST_CALLS = 4
"""Fewest calls of a cell, one after the other."""

LEAST_STEPS = 4
"""Fewest recorded steps at which the weights of the state have no gradient."""


def state_detached(evidence: Evidence) -> Iterator[Finding]:
    """A cell is called for one place after the other, and its state is detached each time.

    The state is detached if it comes from the call before, whose output requires a gradient, and requires none.
    """
    yield from _never_used(evidence)
    yield from _halves_never_used(evidence)
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


def _never_used(evidence: Evidence) -> Iterator[Finding]:
    """Report layers whose weights of the state never get any gradient, while those of the input do.

    The gradient of these weights is a sum over the places of the sequence, of products with the state before. It is
    exactly zero if the loss only depends on the first place, whose state is zero.
    """
    places = evidence.places
    for name in sorted(places.called, key=places.order):
        if places.torch_class_of(name) not in RECURRENT or (rows := _rows_without_state(evidence, name)) is None:
            continue
        lengths = {shape[1 if places.option(name, "batch_first") == "True" else 0] for shape in _given(evidence, name)}
        is_short = lengths == {1}
        yield finding(
            evidence,
            "state-detached",
            "warning",
            at=name,
            rows=rows,
            numbers={"steps": len(rows)},
            text=f"The weights of {named(name)} that multiply its state never get a gradient, as the loss only depends "
            "on the first place of the sequence, where the state is zero"
            + (": each sequence is one place long." if is_short else ".")
            + " So nothing is learned of what comes after it.",
            advice="Look at the shape that it is given: a sequence of one place needs no recurrent layer. If samples "
            "or features are taken for the sequence, transpose them, and see `batch_first`."
            if is_short
            else "Use the output at the last place, `out[:, -1]` with `batch_first=True` and `out[-1]` without it, or "
            "the last state that it returns.",
        )


def _halves_never_used(evidence: Evidence) -> Iterator[Finding]:
    """Report directions of recurrent layers whose weights of the state never get any gradient, as the other's do.

    At the place whose output is taken, such a direction has only seen one place.
    """
    places = evidence.places
    for name in sorted(places.called, key=places.order):
        if places.torch_class_of(name) not in RECURRENT or places.option(name, "bidirectional") != "True":
            continue
        if any(1 in shape[:2] for shape in _given(evidence, name)):
            continue
        parts = map(recurrent_part, _gradients(evidence, name))
        for layer in sorted({part.layer for part in parts if part is not None}):
            both = (RecurrentPart(layer, is_backward) for is_backward in (False, True))
            unused = [(part, rows) for part in both if (rows := _rows_without_state(evidence, name, part)) is not None]
            if len(unused) == 1:
                [(part, rows)] = unused
                yield _one_place(evidence, name, rows, part=part)


def _one_place(evidence: Evidence, module: str, rows: Rows, *, part: RecurrentPart) -> Finding:
    """The finding that one direction of a layer has seen one place of the sequence where its output is taken."""
    way, at = ("backward", "last") if part.is_backward else ("forward", "first")
    of_layer = f" of layer {part.layer}" if part.layer != "0" else ""
    return finding(
        evidence,
        "state-detached",
        "warning",
        at=module,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The weights of {named(module)}{of_layer} that multiply the state of its {way} direction never get a "
        f"gradient: the loss only depends on its output at the {at} place, where this direction has seen that one "
        "place and no other. Half of what the layer gives says nothing of the rest of the sequence.",
        advice="Take the last state of both directions: `torch.cat([h[-2], h[-1]], 1)` of the states that the layer "
        "returns. Or take the mean or the maximum of the outputs over all places.",
    )


def _gradients(evidence: Evidence, module: str) -> dict[str, int]:
    """The columns of the gradients of a module's own parameters, by path."""
    return {
        one.path: number
        for number in evidence.of_kind("grad", "param")
        if (one := evidence.series[number]).module == module
    }


def _rows_without_state(evidence: Evidence, module: str, part: RecurrentPart | None = None) -> Rows | None:
    """The rows with gradients, if all weights of the state have a gradient of zero and those of the input have not.

    With a `part`, they are those of this layer and direction.
    """
    columns = _gradients(evidence, module)
    if part is not None:
        columns = {path: number for path, number in columns.items() if recurrent_part(path) == part}
    of_state = [number for path, number in columns.items() if path.startswith("weight_hh")]
    of_input = [number for path, number in columns.items() if path.startswith("weight_ih")]
    if not of_state or not of_input:
        return None
    peaks = evidence.peaks
    rows = np.flatnonzero(np.isfinite(peaks[:, of_state]).all(axis=1) & (peaks[:, of_input] > 0).all(axis=1))
    is_zero = len(rows) >= LEAST_STEPS and not peaks[rows][:, of_state].any()
    return rows if is_zero else None


def _given(evidence: Evidence, module: str) -> list[Shape]:
    """The shapes `[., ., features]` that a module is given."""
    shapes = (call.inputs[0].shape for call in evidence.places.calls if call.module == module and call.inputs)
    return [shape for shape in shapes if len(shape) == 3]


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
    if evidence.places.torch_class_of(module) in RECURRENT_CELLS:  # its first input is no state
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
