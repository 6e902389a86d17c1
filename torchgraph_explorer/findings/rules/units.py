"""Activations that carry nothing: dead, saturated or constant, or dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECTIFIERS
from torchgraph_explorer.findings.rules.facts import facts_at, operations, rows_with
from torchgraph_explorer.findings.rules.loss import is_solved
from torchgraph_explorer.findings.rules.rule import finding, held, named
from torchgraph_explorer.schema import Series, TensorInfo

DEAD_SHARE = 0.98
"""Share of zeros in the output of a ReLU from which on it is dead."""

UNUSED, LEAST_LOOKED_AT = 0.6, 4
"""Share of the units that are zero for every sample from which on a layer of many zeros is dead, and not sparse; and in
how many steps that has to be so."""

SATURATED_SHARE = 0.6
"""Share of the inputs of a tanh or sigmoid that lie where it is flat."""

HELD = 0.25
"""Share of the recorded steps, up to the last one, at which it has to be so."""

FLAT = {"Tanh": 3.0, "Hardtanh": 1.0, "Sigmoid": 5.3, "Hardsigmoid": 3.0}
"""By class: beyond plus or minus this, the derivative is less than one percent of its largest value, or 0."""

MOST_DROPPED = 0.8

CONSTANT = 1e-6
"""A standard deviation of less than this share of the mean."""

_CALMER = "Lower the learning rate, or begin anew from another initialisation"


def dead_units(evidence: Evidence) -> Iterator[Finding]:
    """Nearly all outputs of a ReLU are zero, and stay so."""
    for one in _rectified(evidence):
        shares = evidence.zero_shares[:, one.column]
        there = np.flatnonzero(np.isfinite(shares))
        rows = held(shares[there] >= DEAD_SHARE, share=HELD)
        if rows is None or _are_used(evidence, evidence.series[one.column], since=int(there[rows[len(rows) // 2]])):
            continue
        worst = float(shares[there[rows]].min())
        share = "All" if worst == 1 else f"At least {worst:.1%}"
        yield finding(
            evidence,
            "dead-units",
            "error" if worst == 1 else "warning",
            at=one.at,
            rows=there[rows],
            numbers={"zeros": worst, "steps": len(rows)},
            text=f"{share} of the outputs of {named(one.at.module)} are zero after its ReLU, up to the last step. "
            "Units that are zero for every sample get no gradient and never come back.",
            advice=f"{_CALMER}, normalise the inputs, or use LeakyReLU or GELU.",
            band=Band("zero_fraction", high=DEAD_SHARE) if one.at is evidence.series[one.column] else None,
        )


def _are_used(evidence: Evidence, one: Series, *, since: int) -> bool:
    """Whether most units are above zero for some samples of steps that were looked at, from the row `since` on.

    So it is in a sparse autoencoder, of which few units are for each sample.
    """
    seen = [
        units
        for row in rows_with(evidence, lambda facts: bool(facts.units))
        if row >= since
        for units in facts_at(evidence, row).units
        if (units.module, units.call) == (one.module, one.call) and units.steps >= LEAST_LOOKED_AT
    ]
    return any(units.zero < UNUSED * units.units for units in seen)


class _Rectified(NamedTuple):
    """The column of a ReLU's output, and the series to name."""

    column: int
    at: Series


def _rectified(evidence: Evidence) -> Iterator[_Rectified]:
    """The outputs of ReLU modules, and inputs of layers that a ReLU between the modules must have made."""
    for column in evidence.of_kind("value", "output"):
        if evidence.places.class_of(evidence.series[column].module) in RECTIFIERS:
            yield _Rectified(column, evidence.series[column])
    for column in evidence.of_kind("value", "input"):
        source = functional_source(evidence, column)
        if source is not None and np.nanmin(evidence.column("min", column), initial=0) >= 0:
            yield _Rectified(column, evidence.series[source])


def functional_source(evidence: Evidence, column: int) -> int | None:
    """The column of the layer's output from which a function in `forward` made this input of a layer, if that is so."""
    places, one = evidence.places, evidence.series[column]
    number, info = places.numbered(one.module, one.call), places.tensor(one)
    if number is None or info is None or not info.requires_grad or not places.modules[one.module].params:
        return None
    before = places.producer(number)
    if before is None or places.class_of(places.calls[before].module) in (RECTIFIERS | FLAT.keys()):
        return None
    source = evidence.find(places.calls[before].module, places.calls[before].call, "output", "output")
    if source is None or not places.modules[places.calls[before].module].params:
        return None
    is_changed = not np.array_equal(evidence.column("mean", source), evidence.column("mean", column), equal_nan=True)
    return source if is_changed else None


def saturated_activation(evidence: Evidence) -> Iterator[Finding]:
    """Most inputs of a tanh or sigmoid, which is not the network's last activation, lie where it is flat."""
    for column, limit, name in _squashed(evidence):
        with np.errstate(all="ignore"):
            if not np.nanmax(evidence.rms[:, column], initial=0) > limit / 2:
                continue
        rows, shares = evidence.shares_within(column, -limit, limit)
        known = np.isfinite(shares)
        rows, beyond = rows[known], 1 - shares[known]
        kept = held(beyond > SATURATED_SHARE, share=HELD)
        if kept is None:
            continue
        at = evidence.series[column]
        yield finding(
            evidence,
            "saturated-activation",
            "info" if is_solved(evidence) else "warning",
            at=at,
            rows=rows[kept],
            numbers={"saturated": beyond[kept].min(), "limit": limit},
            text=f"At least {beyond[kept].min():.0%} of what goes into the {name} of {named(at.module)} lies beyond "
            f"±{limit:g}, where the function is flat and passes hardly any gradient.",
            advice=f"{_CALMER}, scale the inputs to mean 0 and standard deviation 1, or normalise before it.",
            band=Band("elements", low=-limit, high=limit),
        )


def _squashed(evidence: Evidence) -> Iterator[tuple[int, float, str]]:
    """Columns of what goes into a tanh or sigmoid with layers behind it, where it is flat, and its name."""
    places = evidence.places
    last = max((at for at, call in enumerate(places.calls) if places.modules[call.module].params), default=-1)
    lowest = np.fmin.reduce(evidence.matrix("min"), axis=0, initial=np.inf)  # of all columns at once, without NaN
    highest = np.fmax.reduce(evidence.matrix("max"), axis=0, initial=-np.inf)
    peaks = np.fmax.reduce(evidence.peaks, axis=0, initial=0)
    for column in evidence.of_kind("value", "input"):
        one = evidence.series[column]
        name, number = places.class_of(one.module), places.numbered(one.module, one.call)
        if name in FLAT and number is not None and number < last:
            yield column, FLAT[name], name
            continue
        if highest[column] > 1 or lowest[column] < -1:
            continue
        source = functional_source(evidence, column) if peaks[column] > 0.999 else None
        if source is not None:
            name = "Sigmoid" if lowest[column] >= 0 else "Tanh"
            yield source, FLAT[name], name.lower()


def constant_output(evidence: Evidence) -> Iterator[Finding]:
    """All elements of the model's output are the same, at half of the steps or more, up to the last one."""
    for column in _taught_outputs(evidence):
        one = evidence.series[column]
        if not np.nanmax(evidence.column("count", column), initial=0) > 1:
            continue
        if _has_one_element(evidence.places.tensor(one)):  # of each rank: they are the same where ranks share a batch
            continue
        there = np.flatnonzero(evidence.is_there[:, column])
        mean, std = (evidence.column(name, column)[there] for name in ("mean", "std"))
        rows = held(std <= CONSTANT * np.abs(mean), share=0.5)
        if rows is not None:
            yield finding(
                evidence,
                "constant-output",
                "error",
                at=one,
                rows=there[rows],
                numbers={"mean": mean[-1], "std": std[-1]},
                text=f"All elements of the model's `{one.path}` are {mean[-1]:.4g}, whatever the input is.",
                advice="Look for the first module whose output no longer depends on the input. A softmax over a "
                "dimension of size 1 gives ones; use a sigmoid there.",
                band=Band("std", low=CONSTANT * abs(float(mean[-1]))),
            )


def _taught_outputs(evidence: Evidence) -> list[int]:
    """Columns of what the model returns: of what gradients come back to, if anything. Lengths, say, may be equal."""
    own = [at for at in evidence.of_kind("value", "output") if _is_own(evidence.series[at])]
    with_gradient = [*evidence.of_kind("grad_norm", "output"), *evidence.of_kind("grad", "output")]
    taught = {one.path for one in (evidence.series[at] for at in with_gradient) if _is_own(one)}
    return [at for at in own if evidence.series[at].path in taught] or own


def _is_own(one: Series) -> bool:
    """Whether it is of the model itself, at its first call."""
    return not (one.module or one.call)


def _has_one_element(info: TensorInfo | None) -> bool:
    return info is not None and all(size == 1 for size in info.shape)


def dropout_extreme(evidence: Evidence) -> Iterator[Finding]:
    """A dropout layer, or function, drops nearly everything."""
    for name, dropped, row in _dropouts(evidence):
        if MOST_DROPPED <= dropped <= 1:
            yield finding(
                evidence,
                "dropout-extreme",
                "warning",
                at=name,
                rows=range(row, len(evidence)),
                numbers={"p": dropped},
                text=f"{named(name)} drops {dropped:.0%} of its inputs and scales up the rest.",
                advice="Use a share of 0.1 to 0.5. `p` is the share that is dropped, not the one that is kept.",
            )


def _dropouts(evidence: Evidence) -> Iterator[tuple[str, float, int]]:
    """Each module that drops something, which share, and the row at which that was seen."""
    places = evidence.places
    layers = {name for name in places.called if "Dropout" in places.class_of(name)}
    for name in sorted(layers, key=places.order):
        yield name, _number(places.option(name, "p")), 0
    told: set[str] = set()
    for row, one in operations(evidence, "dropout"):
        if one.module not in layers | told and one.numbers[0] >= MOST_DROPPED:
            told.add(one.module)
            yield one.module, one.numbers[0], row


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
