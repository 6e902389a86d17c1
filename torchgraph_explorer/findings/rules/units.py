"""Finds activations that carry nothing: dead, saturated, constant, or nearly all dropped.

The evidence is shares of zeros, histograms and standard deviations of outputs over the steps, and options of dropouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECTIFIERS
from torchgraph_explorer.findings.rules.facts import facts_at, operations, rows_with
from torchgraph_explorer.findings.rules.loss import is_solved
from torchgraph_explorer.findings.rules.outputs import is_softmax, sample_size
from torchgraph_explorer.findings.rules.rule import Rows, finding, held, named, number
from torchgraph_explorer.findings.rules.sure_policies import policy_is_sure
from torchgraph_explorer.schema import Series, TensorInfo, Units

Floats = npt.NDArray[np.float64]

DEAD_SHARE = 0.98
"""Least share of zeros in the output of a dead ReLU."""

ABOVE_ZERO, MOST_POSITIVE = 1e-30, 0.1
"""From where on a number counts as positive; and the largest share of such elements that a layer's output has before a
dead ReLU, with a margin for what pooling or a normalisation does between them."""

LEAST_ACTIVE, LEAST_EMPTY = 0.5, 3
"""Least number of units above zero of each sample, in the mean, of a layer that is sparse and not dead: with fewer,
most samples have none. And fewest recorded steps at which that is so."""

UNUSED, LEAST_LOOKED_AT = 0.6, 4
"""Least share of the units that are zero for every sample, of a layer of many zeros that is dead and not sparse; and
over how many steps together the samples are taken, at least."""

SATURATED_SHARE = 0.6
"""Least share of the inputs of a saturated tanh or sigmoid that lie where it is flat."""

HELD = 0.25
"""Least share of the recorded steps, up to the last one, at which an activation is dead or saturated."""

FLAT = {"Tanh": 3.0, "Hardtanh": 1.0, "Sigmoid": 5.3, "Hardsigmoid": 3.0}
"""Where an activation is flat, by its class: beyond plus or minus this, its derivative is less than two percent of the
largest, or zero."""

NEAR_BOUND = 0.999
"""Least largest magnitude of a tensor that a function between the modules may have made by a tanh or sigmoid."""

DROPS = ("dropout", "droppath", "stochasticdepth")
"""Parts of the names of classes that drop what they are given, or samples of it, in small letters."""

LEAST_DROPS = 4
"""Fewest recorded steps at which the output of such a layer tells how much it drops."""

MOST_DROPPED = 0.8
"""Least share of its inputs that a dropout drops which is too large."""

CONSTANT = 1e-6
"""Largest standard deviation of a constant output, over its mean."""

CONSTANT_SHARE = 0.5
"""Least share of the recorded steps, up to the last one, at which the output is constant."""

_CALMER = "Lower the learning rate, or begin anew from another initialisation"


def dead_units(evidence: Evidence) -> Iterator[Finding]:
    """Nearly all outputs of a ReLU are zero, and stay so."""
    for column, at in _rectified(evidence):
        series, shares = evidence.series[column], evidence.zero_shares[:, column]
        there = np.flatnonzero(np.isfinite(shares))
        rows = held(shares[there] >= DEAD_SHARE, evidence.steps[there], share=HELD)
        if (
            rows is None
            or (_are_active(evidence, series, shares[there[rows]]) and _are_used(evidence, series, there[rows]))
            or _is_a_part(evidence, column, at=at, dead=there[rows])
        ):
            continue
        worst = float(shares[there[rows]].min())
        share = "All" if worst == 1 else f"At least {worst:.1%}"
        yield finding(
            evidence,
            "dead-units",
            "error" if worst == 1 else "warning",
            at=at,
            rows=there[rows],
            numbers={"zeros": worst, "steps": len(rows)},
            text=f"{share} of the outputs of {named(at.module)} are zero after its ReLU, up to the last step. "
            "Units that are zero for every sample get no gradient and never come back.",
            advice=f"{_CALMER}, normalise the inputs, use LeakyReLU or GELU, or lower a penalty on these outputs if "
            "the loss has one.",
            band=Band("zero_fraction", high=DEAD_SHARE) if at is series else None,
        )


def _is_a_part(evidence: Evidence, column: int, *, at: Series, dead: Rows) -> bool:
    """Whether a layer's output is often above zero, at the rows `dead` of the column, in which it is hardly found.

    Then zeros come from elsewhere: the input is a part of what a ReLU gave, as the first step of a sequence that begins
    with zeros, or was joined from several tensors.
    """
    if at is evidence.series[column] or (source := functional_source(evidence, column)) is None:
        return False
    some = {int(dead[0]), int(dead[len(dead) // 2]), int(dead[-1])}
    shares = [evidence.share_within(source, row, (ABOVE_ZERO, math.inf)) for row in some]
    return min(shares) > MOST_POSITIVE


def _are_active(evidence: Evidence, output: Series, zeros: Floats) -> bool:
    """Whether a sample has `LEAST_ACTIVE` elements above zero in the mean, or more, at most of some steps.

    `zeros` are the shares of zeros there. Of too few steps, or where the size of a sample is not known, it has.
    """
    info = evidence.places.tensor(output)
    if info is None or None in info.shape[1:] or len(zeros) < LEAST_EMPTY:
        return True
    return bool(np.median(1 - zeros) * sample_size(info) >= LEAST_ACTIVE)


def _are_used(evidence: Evidence, output: Series, dead: Rows) -> bool:
    """Whether many units of an output are above zero for some samples, at the rows `dead`, of which it is mostly zero.

    The units of a sparse autoencoder are, although only few are for any one sample.
    """
    measured = [
        (row, units)
        for row in rows_with(evidence, lambda facts: bool(facts.units))
        for units in facts_at(evidence, row).units
        if (units.module, units.call) == (output.module, output.call)
    ]
    first, middle = int(dead[0]), int(dead[len(dead) // 2])
    if _are_still(units for row, units in measured if row >= first):
        return False
    long = [(number, units) for number, (_, units) in enumerate(measured) if units.steps >= LEAST_LOOKED_AT]
    since = [(number, units) for number, units in long if measured[number][0] >= middle]
    # A window may have begun before the units died. Those that have not tell more, once there are any.
    fresh = [one for one in since if measured[max(one[0] - one[1].steps + 1, 0)][0] >= first]
    return any(units.zero < UNUSED * units.units for _, units in fresh or since)


def _are_still(measured: Iterable[Units]) -> bool:
    """Whether nearly no unit differs between samples at each of so many steps, which a window need not tell."""
    varied = [1 - units.constant / units.units for units in measured if units.units]
    return len(varied) >= LEAST_LOOKED_AT and sum(varied) <= (1 - DEAD_SHARE) * len(varied)


class _Rectified(NamedTuple):
    """The output of a ReLU.

    Attributes:
        column: The column of its values.
        at: Where a finding is: the same series, or the output of the layer before a ReLU that is a function.
    """

    column: int
    at: Series


def _rectified(evidence: Evidence) -> Iterator[_Rectified]:
    """The outputs of ReLU modules, and inputs of layers that a ReLU between the modules made: none is negative."""
    for column in evidence.of_kind("value", "output"):
        if evidence.places.class_of(evidence.series[column].module) in RECTIFIERS:
            yield _Rectified(column, evidence.series[column])
    for column in evidence.of_kind("value", "input"):
        source = functional_source(evidence, column)
        if source is not None and np.nanmin(evidence.column("min", column), initial=0) >= 0:
            yield _Rectified(column, evidence.series[source])


def functional_source(evidence: Evidence, column: int) -> int | None:
    """The column of the layer's output from which a function between the modules made this input of another layer.

    None if the input is the output of another module as it is, or of no layer with parameters.
    """
    places, taken = evidence.places, evidence.series[column]
    place, info = places.numbered(taken.module, taken.call), places.tensor(taken)
    if place is None or info is None or not info.requires_grad or not places.modules[taken.module].params:
        return None
    producer = places.producer(place)
    before = None if producer is None else places.calls[producer]
    if before is None or places.class_of(before.module) in (RECTIFIERS | FLAT.keys()):
        return None
    source = evidence.find(before.module, before.call, "output", "output")
    if source is None or not places.modules[before.module].params:
        return None
    is_changed = not np.array_equal(evidence.column("mean", source), evidence.column("mean", column), equal_nan=True)
    return source if is_changed else None


def saturated_activation(evidence: Evidence) -> Iterator[Finding]:
    """Most inputs of a tanh or sigmoid, which is not the network's last activation, lie where it is flat."""
    yield from clamped_away(evidence)
    yield from policy_is_sure(evidence)
    for column, limit, name in _squashed(evidence):
        with np.errstate(all="ignore"):
            if not np.nanmax(evidence.rms[:, column], initial=0) > limit / 2:
                continue
        rows, shares = evidence.shares_within(column, -limit, limit)
        known = np.isfinite(shares)
        rows, beyond = rows[known], 1 - shares[known]
        kept = held(beyond > SATURATED_SHARE, evidence.steps[rows], share=HELD)
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
    """What goes into each tanh or sigmoid that has layers behind it: its column, where it is flat, and how to call it.

    A function between the modules is taken for a tanh or sigmoid by the range of what it gives.
    """
    places = evidence.places
    last = max((at for at, call in enumerate(places.calls) if places.modules[call.module].params), default=-1)
    lowest = np.fmin.reduce(evidence.matrix("min"), axis=0, initial=np.inf)  # over all steps, for all columns
    highest = np.fmax.reduce(evidence.matrix("max"), axis=0, initial=-np.inf)
    peaks = np.fmax.reduce(evidence.peaks, axis=0, initial=0)
    for column in evidence.of_kind("value", "input"):
        series = evidence.series[column]
        name, place = places.class_of(series.module), places.numbered(series.module, series.call)
        if name in FLAT and place is not None and place < last:
            yield column, _limit(evidence, series.module), name
            continue
        if highest[column] > 1 or lowest[column] < -1:
            continue
        source = functional_source(evidence, column) if peaks[column] > NEAR_BOUND else None
        if source is not None and _is_of_each_element(evidence, column, source):
            name = "Sigmoid" if lowest[column] >= 0 else "Tanh"
            yield source, FLAT[name], name.lower()


def _limit(evidence: Evidence, module: str) -> float:
    """Where an activation module is flat, on both sides. A `Hardtanh` may have limits of its own."""
    name = evidence.places.class_of(module)
    sides = [number(evidence.places.option(module, option)) for option in ("min_val", "max_val")]
    is_even = name == "Hardtanh" and -sides[0] == sides[1] > 0
    return sides[1] if is_even else FLAT[name]


def clamped_away(evidence: Evidence) -> Iterator[Finding]:
    """A function clamps nearly all elements of a tensor, which get no gradient then, from the first step on."""
    seen: set[str] = set()
    for row, clamp in operations(evidence, "clamp"):
        is_activation = evidence.places.class_of(clamp.module) in RECTIFIERS | FLAT.keys()
        if clamp.numbers[0] < DEAD_SHARE or clamp.module in seen or is_activation:
            continue
        seen.add(clamp.module)
        yield finding(
            evidence,
            "saturated-activation",
            "warning",
            at=clamp.module,
            rows=[row],
            numbers={"clamped": clamp.numbers[0]},
            text=f"A clamp in {named(clamp.module)} sets {clamp.numbers[0]:.1%} of the elements of a tensor "
            f"{[*clamp.before]} to a limit at step {evidence.steps[row]}, before anything is learned. These get no "
            "gradient.",
            advice="Widen the limits, or look at what is clamped: its scale, or another dtype or unit. A sigmoid or "
            "tanh bounds a tensor and still passes a gradient.",
        )


def _is_of_each_element(evidence: Evidence, column: int, source: int) -> bool:
    """Whether one number may have been made of each element of `source`, and no softmax of them, nor a choice."""
    counts, as_many = (evidence.column("count", one) for one in (column, source))
    info = evidence.places.tensor(evidence.series[column])
    is_kept = np.array_equal(counts, as_many, equal_nan=True)
    return is_kept and info is not None and not is_softmax(evidence, column, info)


def constant_output(evidence: Evidence) -> Iterator[Finding]:
    """All elements of the model's output are the same, at half of the steps or more, up to the last one."""
    for column in _taught_outputs(evidence):
        series = evidence.series[column]
        if not np.nanmax(evidence.column("count", column), initial=0) > 1:
            continue
        if _has_one_element(evidence.places.tensor(series)):  # on each rank: ranks may share a batch
            continue
        there = np.flatnonzero(evidence.is_there[:, column])
        mean, std = (evidence.column(name, column)[there] for name in ("mean", "std"))
        rows = held(std <= CONSTANT * np.abs(mean), evidence.steps[there], share=CONSTANT_SHARE)
        if rows is not None:
            yield finding(
                evidence,
                "constant-output",
                "error",
                at=series,
                rows=there[rows],
                numbers={"mean": mean[-1], "std": std[-1]},
                text=f"All elements of the model's `{series.path}` are {mean[-1]:.4g}, whatever the input is.",
                advice="Look for the first module whose output no longer depends on the input. A softmax over a "
                "dimension of size 1 gives ones; use a sigmoid there.",
                band=Band("std", low=CONSTANT * abs(float(mean[-1]))),
            )


def _taught_outputs(evidence: Evidence) -> list[int]:
    """The columns of the model's outputs that gradients come back to; if there are none, of all its outputs.

    Outputs without gradient, such as lengths, may well be constant.
    """
    own = [column for column in evidence.of_kind("value", "output") if _is_own(evidence.series[column])]
    gradients = [*evidence.of_kind("grad_norm", "output"), *evidence.of_kind("grad", "output")]
    taught = {series.path for series in (evidence.series[column] for column in gradients) if _is_own(series)}
    return [column for column in own if evidence.series[column].path in taught] or own


def _is_own(series: Series) -> bool:
    """Whether a series is of the model itself, at its first call."""
    return not (series.module or series.call)


def _has_one_element(info: TensorInfo | None) -> bool:
    """Whether a tensor is known to have a single element."""
    return info is not None and all(size == 1 for size in info.shape)


def dropout_extreme(evidence: Evidence) -> Iterator[Finding]:
    """A dropout layer, or function, drops nearly everything."""
    for name, dropped, row, is_measured in _dropouts(evidence):
        if MOST_DROPPED <= dropped <= 1:
            yield finding(
                evidence,
                "dropout-extreme",
                "warning",
                at=name,
                rows=range(row, len(evidence)),
                numbers={"p": dropped},
                text=f"{named(name)} sets {dropped:.0%} of what it is given to zero, in the mean."
                if is_measured
                else f"{named(name)} drops {dropped:.0%} of its inputs and scales up the rest.",
                advice="Use a share of 0.1 to 0.5. `p` is the share that is dropped, not the one that is kept.",
            )


class _Dropout(NamedTuple):
    """A module that drops a share of what it is given, from a row on; whether that was measured, or is an option."""

    module: str
    dropped: float
    row: int
    is_measured: bool


def _dropouts(evidence: Evidence) -> Iterator[_Dropout]:
    """Each dropout layer, and each module whose function drops nearly all.

    Of layers that do not show their `p`, such as a `DropPath`, the share of elements that they set to zero is measured.
    """
    places = evidence.places
    layers = {name for name in places.called if any(word in places.class_of(name).lower() for word in DROPS)}
    for name in sorted(layers, key=places.order):
        told = number(places.option(name, "p"))
        is_told = bool(np.isfinite(told))
        yield _Dropout(name, told if is_told else _share_dropped(evidence, name), 0, not is_told)
    seen: set[str] = set()
    for row, dropout in operations(evidence, "dropout"):
        if dropout.module not in layers | seen and dropout.numbers[0] >= MOST_DROPPED:
            seen.add(dropout.module)
            yield _Dropout(dropout.module, dropout.numbers[0], row, is_measured=False)


def _share_dropped(evidence: Evidence, module: str) -> float:
    """The share of what is not zero in a module's input that is zero in its output, in the mean; NaN if not known."""
    columns = evidence.find(module, 0, "input", "input[0]"), evidence.find(module, 0, "output", "output")
    if None in columns or evidence.places.modules[module].params:
        return math.nan
    given, left = (1 - evidence.zero_shares[:, column] for column in columns if column is not None)
    known = np.isfinite(given) & np.isfinite(left) & (given > 0)
    return float(1 - (left[known] / given[known]).mean()) if known.sum() >= LEAST_DROPS else math.nan
