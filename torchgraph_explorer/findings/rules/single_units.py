"""Single units: dead ones in a layer that is not dead as a whole, equal ones, and samples that are all alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules import units
from torchgraph_explorer.findings.rules.classes import RECTIFIERS
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.learning import learns
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held, mostly_held, named, quoted
from torchgraph_explorer.schema import EqualRows, Units

DEAD_SHARE = 0.6
"""Share of the units of a layer that are zero for all samples of several recorded steps."""

MANY_DEAD = 0.75
"""Share up to which units may die while a training learns."""

LEAST_WINDOW = 4
"""So many steps, or as many as were looked at together in the run."""

SHRUNK = 0.9
"""The norm of the weights before them, at the end over that at first, below which that may be meant."""

HELD = 0.25
"""Share of the steps at which that was looked at, up to the last one."""

BREAKS = 0.2
"""Share of those steps at which a single sample may differ: a unit that is dead for all others."""

ALIKE = 1e-3
"""Largest minus smallest value of a unit over its largest magnitude, in the mean, below which all samples are alike."""

MORE = 10.0
"""Times that within which all targets of a batch are nearly alike."""

EQUAL_SHARE = 0.5
"""Share of the rows of a matrix that are equal to another one, after two updates."""

_LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"})
"""Their inputs are looked at, where a function between the modules made them."""


def dead_units(evidence: Evidence) -> Iterator[Finding]:
    """Nearly all outputs of a ReLU are zero, or half of its units are zero for every sample."""
    told: set[str | None] = set()
    for one in units.dead_units(evidence):
        told.add(one.module)
        yield one
    for (module, call), seen in _by_place(evidence).items():
        at = _rectified(evidence, module, call)
        window = min(LEAST_WINDOW, max(one.steps for _, one in seen))
        long = [(row, one) for row, one in seen if one.steps >= max(window, LEAST_ROWS)]
        kept = held(np.array([one.zero >= DEAD_SHARE * one.units for _, one in long], np.bool_), share=HELD)
        if at is None or at in told or kept is None or long[-1][1].spread < ALIKE:  # the last is no fault of theirs
            continue
        told.add(at)
        zero = min(long[number][1].zero for number in kept)
        count = long[-1][1].units
        is_gradual = len(kept) < len(long) and zero < MANY_DEAD * count
        is_minor = _shrinks(evidence, at, call) or (is_gradual and learns(evidence))
        yield finding(
            evidence,
            "dead-units",
            "info" if is_minor else "warning",
            at=at,
            rows=[long[number][0] for number in kept],
            numbers={"dead": zero, "units": count, "share": zero / count},
            text=f"{zero} of {count} units of {named(at)} ({zero / count:.0%}) are zero for every sample over up to "
            f"{max(one.steps for _, one in long)} recorded steps. They get no gradient and never come back.",
            advice="Lower the learning rate, or begin anew from another initialisation, normalise the inputs, or use "
            "LeakyReLU or GELU.",
        )


def _shrinks(evidence: Evidence, module: str, call: int) -> bool:
    """Whether the weights before these units get smaller, as where a penalty makes a network sparse on purpose."""
    places = evidence.places
    number = places.numbered(module, call)
    before = None if number is None else places.producer(number)
    for name in (module, "" if before is None else places.calls[before].module):
        column = evidence.find(name, None, "param", "weight")
        if column is not None:
            norms = evidence.column("l2_norm", column)
            norms = norms[np.isfinite(norms)]
            return len(norms) > 0 and bool(norms[-1] < SHRUNK * norms[0])
    return False


def _by_place(evidence: Evidence) -> dict[tuple[str, int], list[tuple[int, Units]]]:
    """The units of each output at the rows at which they were looked at, in the order of execution."""
    found: dict[tuple[str, int], list[tuple[int, Units]]] = {}
    for row in rows_with(evidence, lambda one: bool(one.units)):
        for one in facts_at(evidence, row).units:
            found.setdefault((one.module, one.call), []).append((row, one))
    order = evidence.places.order
    return dict(sorted(found.items(), key=lambda each: order(*each[0]) if each[0][0] else len(evidence.places.calls)))


def _rectified(evidence: Evidence, module: str, call: int) -> str | None:
    """The module to name, if these units are of a ReLU: it, or the layer before a function; None if they are not."""
    places = evidence.places
    if places.class_of(module) in RECTIFIERS:
        return module
    column = evidence.find(module, call, "input", "input[0]")
    source = None if column is None else units.functional_source(evidence, column)
    if column is None or source is None or np.nanmin(evidence.column("min", column), initial=0) < 0:
        return None
    if _is_of_choices(evidence, column):
        return None
    return evidence.series[source].module


def _is_of_choices(evidence: Evidence, column: int) -> bool:
    """Whether all elements are 0 or 1, as of a choice of one unit: the others are no dead ones."""
    mean, square = evidence.column("mean", column), evidence.rms[:, column] ** 2
    with np.errstate(all="ignore"):
        is_one = np.abs(evidence.column("max", column) - 1) < _ROUNDING
        return bool(np.nanmean(is_one & (np.abs(square - mean) < _ROUNDING)) > 1 - BREAKS)


_ROUNDING = 1e-4


def collapse(evidence: Evidence) -> Iterator[Finding]:
    """From some module on, all samples of a batch are nearly alike, up to the model's output."""
    places = [(place, seen) for place, seen in _by_place(evidence).items() if len(seen) >= LEAST_ROWS]
    alike = [(place, seen, _alike(seen)) for place, seen in places]
    if not alike or alike[-1][0][0] != "" or alike[-1][2] is None:
        return
    first = len(alike) - 1
    while first > 0 and alike[first - 1][2] is not None:
        first -= 1
    (module, _), seen, rows = alike[first]
    if _are_asked_for(evidence):
        return
    output = alike[-1][1][-1][1]
    assert rows is not None
    goes = "goes into" if evidence.places.class_of(module) in _LAYERS else "comes out of"
    what, also = (
        (f"What {goes} {named(module)}", ", and so is the model's output") if module else ("The model's output", "")
    )
    yield finding(
        evidence,
        "collapse",
        "warning",
        at=module,
        rows=rows,
        numbers={"spread": seen[-1][1].spread, "spread_of_output": output.spread, "units": output.units},
        text=f"{what} is nearly the same for all samples of a batch{also}: from sample to sample, a unit varies by "
        f"{output.spread:.1g} of its largest magnitude.",
        advice="Look at what goes into this module: dead units, a normalisation over the wrong dimension, many layers "
        "without residual connections, the last place of sequences that end with padding, or a loss that a constant "
        "minimises. Embeddings that may collapse need negative pairs, or variance in their loss.",
    )


def _are_asked_for(evidence: Evidence) -> bool:
    """Whether the targets of a squared error are nearly alike, too, at all steps that were looked at.

    Those that a network gives itself are so only when it has collapsed.
    """
    targets = [one.targets for one in evidence.training if one is not None and one.targets is not None]
    limit = MORE * ALIKE
    return len(targets) >= LEAST_ROWS and all(
        most - least <= limit * max(abs(least), abs(most)) for least, most in targets
    )


def _alike(seen: list[tuple[int, Units]]) -> list[int] | None:
    """The rows up to the last one at which all samples are alike; None if they are not."""
    flags = np.array([one.spread < ALIKE for _, one in seen], np.bool_)
    kept = mostly_held(flags, share=HELD, breaks=BREAKS)
    return None if kept is None else [seen[number][0] for number in kept]


LEAST_UPDATE = 1e-5
"""A share of the weights, by which updates have moved them in sum, that is more than rounding."""


def symmetric_units(evidence: Evidence) -> Iterator[Finding]:
    """Rows of a matrix are equal, and are so still at two steps with updates before them that have changed them."""
    shares: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows_with(evidence, lambda one: bool(one.equal_rows)):
        for one in facts_at(evidence, row).equal_rows:
            equal = one.equal - _zero_rows(evidence, one, row)
            if equal >= EQUAL_SHARE * one.rows:
                shares.setdefault(one.parameter, {})[row] = equal, one.rows
    for name, at in sorted(shares.items(), key=lambda each: evidence.places.order(each[0].rpartition(".")[0])):
        module, _, path = name.rpartition(".")
        rows = sorted(at)
        if _changed(evidence, module, path, rows) < LEAST_ROWS:
            continue
        equal, count = at[rows[-1]]
        yield finding(
            evidence,
            "symmetric-units",
            "error" if equal == count - 1 else "warning",
            at=module,
            rows=rows,
            numbers={"equal": equal, "units": count},
            text=f"`{quoted(path)}` of {named(module)} has {count} rows, and only {count - equal} of them are "
            "different, even after updates. Equal rows compute the same and get the same gradient, so they stay equal.",
            advice="Initialise the weights at random, as the layers of torch do by default.",
        )


def _zero_rows(evidence: Evidence, one: EqualRows, row: int) -> int:
    """How many rows of the parameter may be zeros that no update has reached yet, beyond the first one.

    None where all of them are: they may be equal for good.
    """
    module, _, path = one.parameter.rpartition(".")
    column = evidence.find(module, None, "param", path)
    share = 0.0 if column is None else float(evidence.zero_shares[row, column])
    return max(0, round(share * one.rows) - 1) if share < 1 else 0


def _changed(evidence: Evidence, module: str, path: str, rows: list[int]) -> int:  # noqa: PLR0917
    """At how many of the rows the parameter is another than at the first step.

    One tells nothing: of a matrix that begins at zero, Adam's first update leaves the signs of its gradients alone.
    Nor do updates that are lost in rounding, where rows are compared.
    """
    column = evidence.find(module, None, "param", path)
    if column is None:
        return 0
    norms = evidence.column("l2_norm", column)
    changed = norms[rows] != norms[0]
    ratio = evidence.find(module, None, "param", path, "update_ratio")
    if ratio is not None:
        moved = np.nancumsum(evidence.column("mean", ratio)) >= LEAST_UPDATE
        changed &= np.array([row > 0 and bool(moved[row - 1]) for row in rows])
    return int(changed.sum())
