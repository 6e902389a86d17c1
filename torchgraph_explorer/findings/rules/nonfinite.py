"""Finds the first NaN or infinity, and where in the order of execution it came from.

The evidence is which tensors of a step are not finite; or the logged loss, where all of the model's are finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import the_loss
from torchgraph_explorer.findings.rules.nonfinite_origin import record_each, with_origin
from torchgraph_explorer.findings.rules.rule import finding, named, quoted
from torchgraph_explorer.record.nonfinite import Traits, are_nonfinite, traits
from torchgraph_explorer.schema import Series

_MOST_ROWS = 256
"""Most steps with NaN or infinity that are looked at until one has some that should not be there."""

LEAST_NEVER = 8
"""Fewest logged values of a loss that is never finite. Of fewer, it may only not have been known yet."""

# Kinds of series that the forward pass, the backward pass and the update compute. `update_ratio` is left out: it is
# infinite wherever a parameter is all zeros.
_FORWARD = ("value",)
_BACKWARD = ("grad", "grad_norm")
_UPDATE = ("optimizer_grad", "update")

_Place: TypeAlias = "tuple[str, int | None, str]"
"""A module's name, which call of it (None for its parameters), and the role of its tensors there."""


@dataclass(frozen=True, slots=True)
class _Bad:
    """What is not finite at one step.

    Attributes:
        series: The columns of all series that are not finite.
        values: The places of the values among them.
        gradients: The places of the gradients among them.
    """

    series: frozenset[int]
    values: frozenset[_Place]
    gradients: frozenset[_Place]


def nan(evidence: Evidence) -> Iterator[Finding]:
    """The first NaN or infinity: where in the order of execution it came from."""
    rows = np.flatnonzero(evidence.has_bad.any(axis=1))
    of_series = traits(evidence.series)
    for row in rows[:_MOST_ROWS].tolist():
        bad = _bad_at(evidence, row, of_series)
        if bad.series:
            seen = [row, *rows[rows > row].tolist()]
            yield _with_first_seen(evidence, row, _report(evidence, bad, seen))
            return
    found = [*_after_the_last(evidence)]
    yield from found or _in_loss(evidence)


def _after_the_last(evidence: Evidence) -> Iterator[Finding]:
    """Report what was seen not to be finite after the last recorded step, before the training ended.

    Many loops end there by themselves: a check raises, or a distribution refuses its parameters.
    """
    finished, last = evidence.model.finished, int(evidence.steps[-1])
    seen = finished.not_finite if finished else None
    if seen is None or seen.step <= last or last != int(evidence.model.steps[-1]):
        return
    at_end = Finding(
        kind="nan",
        severity="error",
        module="",
        step=seen.step,
        last_step=seen.step,
        evidence={"last_finite_step": float(last)},
        text=f"{_words(seen.what)} was not finite at step {seen.step}, which was not recorded, and the training ended. "
        f"Step {last} was still finite.",
        advice="Look at what the loss computes: a logarithm or root of zero, a division by zero as in a mean over no "
        "elements, or zero times infinity. Also lower the learning rate, or clip the gradient. " + record_each(last),
    )
    yield with_origin(evidence, at_end, seen, before=last)


def _in_loss(evidence: Evidence) -> Iterator[Finding]:
    """Report a logged loss that is not finite at some steps, while all tensors of the model are finite.

    Under a `GradScaler` there is nothing to report: it skips such updates. Values before the first finite one do not
    count, as the loop may not have known the loss yet; unless none ever is finite.
    """
    loss = the_loss(evidence.scalars)
    if loss is None or not np.isnan(evidence.scales).all() or not (evidence.left_scales == 1).all():
        return
    is_finite = np.isfinite(loss.values)
    is_never = not is_finite.any() and len(is_finite) >= LEAST_NEVER
    bad = np.flatnonzero(~is_finite & (np.logical_or.accumulate(is_finite) | is_never))
    if len(bad):
        yield Finding(
            kind="nan",
            severity="warning",
            step=int(loss.steps[bad[0]]),
            last_step=int(loss.steps[bad[-1]]),
            evidence={"values": float(len(bad)), "logged": float(len(loss.values))},
            text=f"`{quoted(loss.name)}` is NaN or infinite at {len(bad)} of {len(loss.values)} logged steps, while "
            "everything that was recorded of the model is finite. The model learns nothing useful from such a batch.",
            advice="Look for a mean over no elements, such as an empty mask or labels that are all ignored, "
            "and for a logarithm or root of what may be negative.",
        )


def _with_first_seen(evidence: Evidence, row: int, at_row: Finding) -> Finding:
    """The finding `at_row`, with the unrecorded step before it at which something was seen not to be finite, if any."""
    facts = evidence.training[row]
    seen = facts.not_finite if facts else None
    before = int(evidence.steps[row - 1]) if row else -1
    if seen is None or not before < seen.step < at_row.step:
        return at_row
    found = with_origin(evidence, at_row, seen, before=before)
    return replace(
        found,
        evidence={**found.evidence, "seen_at_step": float(seen.step), "last_finite_step": float(before)},
        text=f"{found.text} {_words(seen.what)} was first seen not to be finite at step {seen.step}, which was not "
        f"recorded" + (f"; step {before} was still finite." if row else "."),
    )


def _words(what: str) -> str:
    """How a sentence calls a `NotFinite.what`."""
    kind, _, name = what.partition(" ")
    known = {
        "output": "The model's output",
        "gradient": "A gradient that the optimizer got",
        "parameter": "A parameter of the model",
    }
    return f"The logged `{quoted(name)}`" if kind == "scalar" else known.get(kind, "A value")


def _bad_at(evidence: Evidence, row: int, of_series: Traits) -> _Bad:
    """What is not finite at a row, and should be. Gradients of a step with a loss scale need not be."""
    there = np.flatnonzero(evidence.is_there[row])
    found = there[are_nonfinite(there, evidence.statistics_at(row, there), of_series)]
    # A GradScaler finds infinite gradients now and then, and skips the update. That is how it works.
    ended = evidence.facts[row]
    is_scaled = not np.isnan(evidence.scales[row]) or (ended is not None and ended.end == "skipped")
    is_scaled = is_scaled or bool(evidence.left_scales[row] != 1)
    kinds = _FORWARD if is_scaled else (*_FORWARD, *_BACKWARD, *_UPDATE)
    series = [evidence.series[column] for column in found.tolist()]
    return _Bad(
        frozenset(column for column, one in zip(found.tolist(), series, strict=True) if one.kind in kinds),
        frozenset((one.module, one.call, one.role) for one in series if one.kind in _FORWARD),
        frozenset((one.module, one.call, one.role) for one in series if one.kind in _BACKWARD and not is_scaled),
    )


def _report(evidence: Evidence, bad: _Bad, rows: list[int]) -> Finding:
    """The finding of what is not finite at the first of `rows`: parameters, values, gradients, or updates."""
    series = [evidence.series[column] for column in bad.series]
    params = sorted(
        (one for one in series if one.role == "param" and one.kind == "value"),
        key=lambda one: evidence.places.order(one.module),
    )
    if params:
        return _in_parameters(evidence, params[0], rows, count=len(params))
    if bad.values:
        return _in_forward(evidence, bad, rows)
    if bad.gradients:
        return _in_backward(evidence, bad, rows)
    first = evidence.series[min(bad.series)]
    return finding(
        evidence,
        "nan",
        "error",
        at=first,
        rows=rows,
        numbers={"tensors": len(bad.series)},
        text=f"The gradient of `{first.path}` in {named(first.module)} was finite, but what the optimizer made of it "
        "is not. The cause is the state of the optimizer, or the unscaling of the loss.",
        advice="Look at the optimizer's state, its epsilon, and the scaler.",
    )


def _in_parameters(evidence: Evidence, first: Series, rows: list[int], *, count: int) -> Finding:
    row, step = rows[0], int(evidence.steps[rows[0]])
    before = int(evidence.steps[row - 1]) if row else None
    when, advice = _how_made_not_finite(before, step)
    if row and _has_no_epsilon(evidence, first):
        advice = f"{_NO_EPSILON} {advice}"
    return finding(
        evidence,
        "nan",
        "error",
        at=first,
        rows=rows,
        numbers={"parameters": count, "last_finite_step": -1 if before is None else before},
        text=f"The parameter `{first.path}` of {named(first.module)} is not finite when step {step} begins"
        f"{f'; in all, {count} parameters are not' if count > 1 else ''}. {when}.",
        advice=advice,
    )


_DIVIDING = ("adam", "rmsprop", "adagrad")
"""Parts of the names of optimizers that divide by the size of a gradient plus a small `eps`."""

_NO_EPSILON = (
    "Keep the weights in float32, and use `torch.autocast`: in float16, the `eps` of 1e-8 that Adam adds is "
    "zero, so a gradient of zero becomes NaN. Or give the optimizer `eps=1e-4`."
)


def _has_no_epsilon(evidence: Evidence, parameter: Series) -> bool:
    """Whether a parameter is of float16, where a small `eps` is zero, and an optimizer may divide by its gradient."""
    info = evidence.places.tensor(parameter)
    names = {name.lower() for facts in evidence.facts if facts is not None for name in facts.optimizers}
    return info is not None and info.dtype == "float16" and any(word in name for name in names for word in _DIVIDING)


def _how_made_not_finite(before: int | None, step: int) -> tuple[str, str]:
    """What made a parameter not finite between `before`, the last recorded step, and `step`; and the advice.

    `before` is None if `step` is the first one that was recorded.
    """
    check_start = "Look at how the parameter is initialized, and at the checkpoint that is loaded."
    check_update = (
        "Lower the learning rate or clip the gradient's norm; look at gradients and updates of the steps before."
    )
    if before is None and step == 0:
        return "The initialization or a loaded checkpoint made it so", check_start
    if before is None:
        advice = f"{check_start} {check_update} {record_each(-1)}"
        return "No earlier step was recorded: it began so, or an update made it so", advice
    if before == step - 1:
        return f"The update after step {before} made it so", check_update
    # The learning rate need have no part in it, so the steps themselves come first.
    why = f"An update since step {before} made it so, or only carried on what a forward or backward pass made"
    return why, f"{record_each(before)} {check_update}"


def _in_forward(evidence: Evidence, bad: _Bad, rows: list[int]) -> Finding:
    """The finding of values that are not finite while all parameters are.

    It is at the first call that gives such values from finite ones, and has no other such call inside.
    """
    places = evidence.places
    made = [
        number
        for number, call in enumerate(places.calls)
        if (call.module, call.call, "output") in bad.values and (call.module, call.call, "input") not in bad.values
    ]
    around = {above for number in made for above in places.ancestors(number)}
    origin = next((number for number in made if number not in around), None)
    if origin is None:
        return _from_input(evidence, bad, rows)
    call = places.calls[origin]
    is_leaf = places.is_leaf(origin)
    inside = "" if is_leaf else " in its own `forward`, between the calls of its submodules"
    if _has_unseen_weights(evidence, call.module, rows[0]):
        inside += ", or from parameters that are not finite: they were not recorded at this step"
    at = _series_of(evidence, bad, (call.module, call.call, "output"))
    return finding(
        evidence,
        "nan",
        "error",
        at=at,
        rows=rows,
        numbers={**_counts(evidence, rows[0], at), "largest_input": _largest_input(evidence, rows[0], at)},
        text=f"{_subject(evidence, call.module)} made NaN or infinity from finite inputs{inside}.",
        advice="Look for a logarithm or root of zero or less, a division by zero, an exponential of large values, or a "
        "value beyond the range of the dtype. Clamp the argument, or compute in a stable form or in float32.",
    )


def _has_unseen_weights(evidence: Evidence, module: str, row: int) -> bool:
    """Whether the module has parameters that were not recorded at this row, as in an evaluation."""
    known = evidence.places.modules.get(module)
    columns = [evidence.find(module, None, "param", info.path) for info in (known.params if known else ())]
    return any(column is None or not evidence.is_there[row, column] for column in columns)


def _from_input(evidence: Evidence, bad: _Bad, rows: list[int]) -> Finding:
    """The finding of values that are not finite and that no call made from finite ones: at the first of them."""
    series = [evidence.series[column] for column in bad.series]
    at = min((one for one in series if one.kind == "value"), key=lambda one: _flow(evidence, one))
    return finding(
        evidence,
        "nan",
        "error",
        at=at,
        rows=rows,
        numbers=_counts(evidence, rows[0], at),
        text=f"`{at.path}` of {named(at.module)} is not finite: NaN or infinity comes in from outside the modules.",
        advice="Check the data for missing values, and what the training loop computes before it calls the model.",
    )


def _in_backward(evidence: Evidence, bad: _Bad, rows: list[int]) -> Finding:
    """The finding of gradients that are not finite while all values are.

    It is at the last leaf module whose inputs or parameters have such gradients, and whose output has not; or, if there
    is none, at the last series with such gradients, which the backward pass computes first.
    """
    places = evidence.places
    for number in reversed(range(len(places.calls))):
        call = places.calls[number]
        arrives = (call.module, call.call, "output") in bad.gradients
        leaves = (call.module, call.call, "input") in bad.gradients or (call.module, None, "param") in bad.gradients
        if leaves and not arrives and places.is_leaf(number):
            role = "input" if (call.module, call.call, "input") in bad.gradients else "param"
            at = _series_of(evidence, bad, (call.module, call.call if role == "input" else None, role))
            return _gradient(evidence, at, rows, text=_MADE_HERE.format(named(call.module)))
    at = evidence.series[max(bad.series, key=lambda column: _flow(evidence, evidence.series[column]))]
    return _gradient(evidence, at, rows, text=_COMES_BACK.format(named(at.module)))


def _gradient(evidence: Evidence, at: Series, rows: list[int], *, text: str) -> Finding:
    return finding(
        evidence,
        "nan",
        "error",
        at=at,
        rows=rows,
        numbers=_counts(evidence, rows[0], at),
        text=text,
        advice="Look for a root, norm, or logarithm at zero, whose derivative is infinite, in the loss too: add "
        "a small constant inside it. `torch.autograd.set_detect_anomaly(True)` names the operation.",
    )


_MADE_HERE = "The gradient became NaN or infinity in {}, whose values are finite: its derivative is not finite."
_COMES_BACK = (
    "The gradient that comes back to {} is not finite, while all values are. The loss, or what is computed between the "
    "modules, made it so."
)


def _flow(evidence: Evidence, series: Series) -> tuple[int, bool]:
    """A key that sorts series in the order in which the forward pass computes them: a call's inputs come first."""
    return evidence.places.order(series.module, series.call), series.role != "input"


def _series_of(evidence: Evidence, bad: _Bad, at: _Place) -> Series:
    """The first series of a place that is not finite."""
    return next(
        one for one in map(evidence.series.__getitem__, sorted(bad.series)) if (one.module, one.call, one.role) == at
    )


def _counts(evidence: Evidence, row: int, at: Series) -> dict[str, float]:
    """How many elements of a series are NaN or infinite at a row, and how many it has."""
    names = ("nan", "positive_infinity", "negative_infinity", "count")
    return {name: float(evidence.matrix(name)[row, at.id]) for name in names}


def _largest_input(evidence: Evidence, row: int, at: Series) -> float:
    """The largest magnitude in the inputs of the call that a series is of, at a row; 0 if they were not recorded."""
    inputs = [
        number
        for number, one in enumerate(evidence.series)
        if (one.module, one.call, one.role, one.kind) == (at.module, at.call, "input", "value")
    ]
    found = evidence.peaks[row, inputs]
    return float(np.nanmax(found)) if len(found) and not np.isnan(found).all() else 0.0


def _subject(evidence: Evidence, module: str) -> str:
    """A module and its class, at the beginning of a sentence."""
    name = evidence.places.class_of(module)
    if not module:
        return f"The model, a {name}," if name else "The model"
    return f"The {name} {named(module)}" if name else named(module)
