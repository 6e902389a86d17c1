"""Finds dead units in a layer that is not dead as a whole, equal units, and outputs that are alike for all samples.

The evidence is what the live training measured of the units of outputs, over the samples of several steps, and of the
rows of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules import units
from torchgraph_explorer.findings.rules.classes import RECTIFIERS
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_by_place, rows_with
from torchgraph_explorer.findings.rules.learning import learns
from torchgraph_explorer.findings.rules.participation import begins_to_change
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held, mostly_held, named, quoted
from torchgraph_explorer.findings.rules.twins import twins_attract
from torchgraph_explorer.schema import EqualRows, Units

DEAD_SHARE = 0.6
"""Least share of the units of a layer that are zero for all samples of several steps, to be reported."""

MANY_DEAD = 0.75
"""Least share of dead units that is a warning although the training learns and they died gradually."""

LEAST_WINDOW = 4
"""Fewest steps over which a unit is zero, or as many as were measured together in the run if that is less."""

SHRUNK = 0.9
"""Largest norm at the end, over that at first, of the weights before the units, if a penalty makes them sparse on
purpose."""

HELD = 0.25
"""Least share of the steps with measured units, up to the last one, at which units are dead or samples alike."""

BREAKS = 0.2
"""Largest share of those steps that may be exceptions, as where a single sample differs from all others."""

ALIKE = 1e-3
"""Largest spread of samples that are alike: largest minus smallest value of a unit over its largest magnitude, in the
mean over the units."""

NO_LENGTH, LEAST_LOOKS = 0.01, 16
"""Largest share of gradients that changes the length of vectors, of a loss of their direction alone, in the median; and
fewest steps at which directions were measured. Those of a new and deep network are nearly alike."""

LEVEL = 0.1
"""Largest standard deviation of vectors whose elements are nearly the same, over their mean."""

MORE = 10.0
"""Largest spread of the targets of a batch that are nearly alike, over `ALIKE`."""

EQUAL_SHARE = 0.5
"""Least share of the rows of a matrix that are equal to another one, after two updates, to be reported."""

LEAST_UPDATE = 1e-5
"""Least sum of the updates, as a share of the weights, that is more than rounding."""

_LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"})
"""Classes of layers whose inputs are measured, where a function between the modules made them."""

_ROUNDING = 1e-4
"""Largest difference from 0 or 1 that is rounding."""


def dead_units(evidence: Evidence) -> Iterator[Finding]:
    """Nearly all outputs of a ReLU are zero, or many of its units are zero for every sample."""
    reported: set[str | None] = set()
    for whole_layer in units.dead_units(evidence):
        reported.add(whole_layer.module)
        yield whole_layer
    trained = begins_to_change(evidence)
    for (module, call), measured_at in _by_call(evidence).items():
        at = _rectified(evidence, module, call)
        seen = [(row, measured) for row, measured in measured_at if row >= trained]
        window = min(LEAST_WINDOW, max((measured.steps for _, measured in seen), default=0))
        long = [(row, measured) for row, measured in seen if measured.steps >= max(window, LEAST_ROWS)]
        are_dead = [measured.zero >= DEAD_SHARE * measured.units for _, measured in long]
        kept = held(np.array(are_dead, np.bool_), evidence.steps[[row for row, _ in long]], share=HELD)
        if at is None or at in reported or kept is None or long[-1][1].spread < ALIKE:  # alike samples are `collapse`
            continue
        reported.add(at)
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
            f"{max(measured.steps for _, measured in long)} recorded steps. They get no gradient and never come back.",
            advice="Lower the learning rate, or begin anew from another initialisation, normalise the inputs, or use "
            "LeakyReLU or GELU.",
        )


def _shrinks(evidence: Evidence, module: str, call: int) -> bool:
    """Whether the weights before the units of a call get smaller, as a penalty makes them for a sparse network."""
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


def _by_call(evidence: Evidence) -> dict[tuple[str, int], list[tuple[int, Units]]]:
    """What was measured of the units of each call, with its rows, by module and call in the order of execution.

    The model's own output comes last.
    """
    found: dict[tuple[str, int], list[tuple[int, Units]]] = {}
    for row in rows_with(evidence, lambda facts: bool(facts.units)):
        for measured in facts_at(evidence, row).units:
            found.setdefault((measured.module, measured.call), []).append((row, measured))

    def place(key: tuple[str, int]) -> int:
        module, call = key
        return evidence.places.order(module, call) if module else len(evidence.places.calls)

    return {key: found[key] for key in sorted(found, key=place)}


def _rectified(evidence: Evidence, module: str, call: int) -> str | None:
    """The module to name, if the units of a call are those of a ReLU; None if they are not.

    It is the ReLU itself; or, if `module` takes the outputs of `F.relu`, the layer before that.
    """
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
    """Whether all elements are 0 or 1 at most steps, as where a unit is chosen: the other units are not dead."""
    mean, square = evidence.column("mean", column), evidence.rms[:, column] ** 2
    with np.errstate(all="ignore"):
        is_one = np.abs(evidence.column("max", column) - 1) < _ROUNDING
        return bool(np.nanmean(is_one & (np.abs(square - mean) < _ROUNDING)) > 1 - BREAKS)


def collapse(evidence: Evidence) -> Iterator[Finding]:
    """All samples of a batch are nearly alike to the model: its output, or the direction of its output."""
    found = [*_values_collapse(evidence)]
    found = found or [*_directions_collapse(evidence)]
    yield from found or twins_attract(evidence)


def _directions_collapse(evidence: Evidence) -> Iterator[Finding]:
    """Report vectors that all point the same way, where the loss depends on nothing but where they point."""
    for (kind, name), measured in numbers_by_place(evidence, "direction", "part").items():
        rows = np.array([row for row, _ in measured])
        along, apart = np.array([numbers for _, numbers in measured]).T
        kept = mostly_held(apart < ALIKE, share=HELD, breaks=BREAKS)
        if len(rows) < LEAST_LOOKS or kept is None or not np.median(along) < NO_LENGTH:
            continue
        column = evidence.find("", 0, "output", name) if kind == "direction" else None
        if column is not None and _are_level(evidence, column):
            continue
        vectors = f"`{quoted(name)}` that the model" if kind == "direction" else f"that {named(name)}"
        yield finding(
            evidence,
            "collapse",
            "warning",
            at=("" if kind == "direction" else name) if column is None else evidence.series[column],
            rows=rows[kept],
            numbers={"apart": float(apart[kept][-1])},
            text=f"The vectors {vectors} gives for the samples of a batch all point the same "
            f"way: the mean square of their distance from the mean direction is {apart[kept][-1]:.1g}. The loss "
            "depends on nothing but the direction.",
            advice="Where two views attract each other, the one that is the target needs `.detach()`, or a term is "
            "missing that keeps samples apart: negative pairs, or the variance of features.",
        )
        return


def _are_level(evidence: Evidence, column: int) -> bool:
    """Whether all elements are nearly the same, as probabilities are at first, and logits with a large offset.

    The loss of such outputs may not depend on what is added to all elements, and so not on the length either.
    """
    mean, spread = (evidence.column(name, column) for name in ("mean", "std"))
    known = np.isfinite(mean) & np.isfinite(spread)
    return bool((spread[known] < LEVEL * np.abs(mean[known])).mean() > HELD) if known.any() else False


def _values_collapse(evidence: Evidence) -> Iterator[Finding]:
    """From some module on, all samples of a batch are nearly alike, up to the model's output."""
    calls = [(module, seen) for (module, _), seen in _by_call(evidence).items() if len(seen) >= LEAST_ROWS]
    alike = [(module, seen, _alike(seen)) for module, seen in calls]
    if not alike or alike[-1][0] != "" or alike[-1][2] is None:
        return
    first = len(alike) - 1
    while first > 0 and alike[first - 1][2] is not None:
        first -= 1
    module, seen, rows = alike[first]
    if _are_targets_alike(evidence):
        return
    _, output = alike[-1][1][-1]
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
        text=f"{what} is the same for all samples of a batch{also}."
        if output.spread == 0
        else f"{what} is nearly the same for all samples of a batch{also}: from sample to sample, a unit varies by "
        f"{output.spread:.1g} of its largest magnitude.",
        advice="Look at what goes into this module: dead units, a normalisation over the wrong dimension, many layers "
        "without residual connections, the last place of sequences that end with padding, or a loss that a constant "
        "minimises. Embeddings that may collapse need negative pairs, or variance in their loss.",
    )


def _are_targets_alike(evidence: Evidence) -> bool:
    """Whether the targets of a squared error are nearly alike, too, at all steps at which they were measured.

    Targets that a network makes itself are alike only after it has collapsed.
    """
    targets = [facts.targets for facts in evidence.training if facts is not None and facts.targets is not None]
    limit = MORE * ALIKE
    return len(targets) >= LEAST_ROWS and all(
        most - least <= limit * max(abs(least), abs(most)) for least, most in targets
    )


def _alike(seen: list[tuple[int, Units]]) -> list[int] | None:
    """The rows, until the last one, at which all samples are alike, but for some exceptions; None if they are not."""
    flags = np.array([measured.spread < ALIKE for _, measured in seen], np.bool_)
    kept = mostly_held(flags, share=HELD, breaks=BREAKS)
    return None if kept is None else [seen[number][0] for number in kept]


def symmetric_units(evidence: Evidence) -> Iterator[Finding]:
    """Rows of a matrix, each of which is the weights of a unit, are equal at two steps after updates changed them."""
    counts: dict[str, dict[int, tuple[int, int]]] = {}  # by parameter and row: equal rows of it, and all its rows
    for row in rows_with(evidence, lambda facts: bool(facts.equal_rows)):
        for found in facts_at(evidence, row).equal_rows:
            equal = found.equal - _zero_rows(evidence, found, row)
            if equal >= EQUAL_SHARE * found.rows:
                counts.setdefault(found.parameter, {})[row] = equal, found.rows
    for name in sorted(counts, key=lambda name: evidence.places.order(name.rpartition(".")[0])):
        module, _, path = name.rpartition(".")
        rows = sorted(counts[name])
        if _changed(evidence, module, path, rows) < LEAST_ROWS:
            continue
        equal, count = counts[name][rows[-1]]
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


def _zero_rows(evidence: Evidence, found: EqualRows, row: int) -> int:
    """How many of the equal rows of a parameter may be zeros that no update has reached yet.

    0 if all elements are zero: such rows may stay equal.
    """
    module, _, path = found.parameter.rpartition(".")
    column = evidence.find(module, None, "param", path)
    share = 0.0 if column is None else float(evidence.zero_shares[row, column])
    return max(0, round(share * found.rows) - 1) if share < 1 else 0


def _changed(evidence: Evidence, module: str, path: str, rows: list[int]) -> int:  # noqa: PLR0917
    """At how many of `rows` the parameter differs from what it was at the first step, by more than rounding.

    A single one would not be enough: Adam's first update makes rows of a matrix that begins at zero equal if the signs
    of their gradients are.
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
