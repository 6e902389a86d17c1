"""Finds targets that broadcast against the predictions, so that each prediction is compared with all samples' targets.

The evidence is the gradients at the predictions: they draw all predictions of a batch to one number, or count targets;
and the logged loss, which has the variance of the targets beside the error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding, Severity
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall
from torchgraph_explorer.findings.places import dimensions, is_one_number
from torchgraph_explorer.findings.rules.advantages import advantages_broadcast
from torchgraph_explorer.findings.rules.centred import (
    EXACT,
    LEAST_SAMPLES,
    LEAST_STEPS,
    Centred,
    Floats,
    centred,
    varies,
)
from torchgraph_explorer.findings.rules.critics import critic_broadcasts
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.loss import judged, noise_of
from torchgraph_explorer.findings.rules.ordered import broadcast_order
from torchgraph_explorer.findings.rules.outputs import samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding
from torchgraph_explorer.schema import Series

MORE = 1.02
"""Least logged loss over the mean squared distance from that number. If all samples really have that one target, both
are equal."""

OF_CHANCE = 0.05
"""Least noise of the variance of a batch's targets from batch to batch, over the noise that it has where targets are
drawn at random: `sqrt(2 / samples)` of the variance."""

MULTIPLE = 0.01
"""Largest spread of the ratio of what the loss has beside the error to a penalty on the weights, as a share of the
ratio, if that is the penalty."""

LEAST_OF_ABSOLUTE = 4
"""Fewest different whole numbers that the gradients of an absolute error have, if they count targets above and below a
prediction. With one target for each sample, all are 1."""

LEAST_LATE, LEAST_UPDATES, FOLLOWS = 3, 100, 0.9
"""Fewest recorded steps in the second half of the run, and fewest steps of all, that tell whether predictions follow
what they are drawn to. If they do, what is left of it beside the mean prediction has a standard deviation of less than
this share of its own."""

LARGEST_COUNT = 1e4
"""Most samples: counts of targets have to be told from other numbers in float32."""


def targets_broadcast(evidence: Evidence) -> Iterator[Finding]:
    """The gradient of each prediction is its distance from one number, the mean of the batch's targets.

    The squared differences of `[n, 1]` predictions and `[n]` targets are `[n, n]`, and have such gradients. Their mean
    is the mean squared distance from that number plus the variance of the targets, which no prediction makes smaller.
    """
    yield from advantages_broadcast(evidence)
    of_critic = [*critic_broadcasts(evidence)]
    if of_critic:
        yield from of_critic
        return
    if not need_not_fall(evidence):  # adversaries have one target for all
        found = [*_by_size(evidence), *_of_several(evidence)]
        if found or _is_one_target(evidence):
            yield from found
            return
    yield from broadcast_order(evidence)


def _is_one_target(evidence: Evidence) -> bool:
    """Whether a loss was logged, and gradients of a squared error draw all predictions of a batch to one number."""
    loss = judged(evidence)
    is_known = loss is not None and len(loss.values) >= LEAST_STEPS
    outputs = [output for output in trained_outputs(evidence) if is_one_number(output.info)] if is_known else []
    return any(_centred_of_squares(evidence, output.column, output.norms) is not None for output in outputs)


def _of_several(evidence: Evidence) -> Iterator[Finding]:
    """Report outputs of several numbers a sample that are drawn to the same numbers, the mean of the batch's targets.

    That all samples have the same target was measured in the first steps.
    """
    seen = numbers_of(evidence, "shared")
    if len(seen) < LEAST_STEPS or not all(numbers[0] < EXACT for _, numbers in seen):
        return
    rows = np.array([row for row, _ in seen], np.intp)
    for series, info, column, norms in trained_outputs(evidence):
        count = evidence.column("count", column)[rows].astype(np.float64)
        length = evidence.column("l2_norm", norms)[rows].astype(np.float64)
        square = count * length**2 / 4
        found = Centred(rows, np.array([numbers[1] for _, numbers in seen]), square, square)
        samples = samples_of(evidence, info, column)
        severity = _severity(evidence, found, samples=samples[rows])
        if severity is not None:
            yield _report_several(evidence, series, rows, severity=severity, samples=samples)
        return


def _report_several(evidence: Evidence, output: Series, rows: Rows, *, severity: Severity, samples: Floats) -> Finding:
    """The finding at an output of several numbers for each of so many `samples`, `[steps]`."""
    number = float(np.median(samples[rows]))
    return finding(
        evidence,
        "targets-broadcast",
        severity,
        at=output,
        rows=rows,
        numbers={"samples": number, "steps": len(rows)},
        text=f"The loss pulls all {number:.0f} outputs of a batch to the same numbers, the mean of its targets: "
        "predictions and targets have different shapes, such as `[n, 1, ...]` and `[n, ...]`, and broadcast to "
        "`[n, n, ...]`. So the model can only learn that mean.",
        advice="Give predictions and targets the same shape before the loss. torch warns of it when the loss is first "
        "computed.",
    )


def _by_size(evidence: Evidence) -> Iterator[Finding]:
    """Report outputs of one number a sample whose gradients count targets, or draw all of a batch to one number."""
    for series, info, column, norms in trained_outputs(evidence):
        if not is_one_number(info):
            continue
        counted = _counted(evidence, column, norms)
        if counted is not None:
            samples = float(np.median(evidence.column("count", column)[counted]))
            yield _report_counts(evidence, series, counted, samples=samples)
            continue
        found = _centred_of_squares(evidence, column, norms)
        count = evidence.column("count", column).astype(np.float64)
        severity = None if found is None else _severity(evidence, found, samples=count[found.rows])
        if found is not None and severity == "info" and not _follows(evidence, found, column):
            severity = "warning"
        if found is not None and severity is not None:
            samples = float(np.median(count[found.rows]))
            yield _report(evidence, series, found, severity=severity, samples=samples)


def _centred_of_squares(evidence: Evidence, column: int, norms: int) -> Centred | None:
    """The number that a mean squared error, or half of one, draws all predictions to; None if there is none."""
    weights = (2.0, 1.0)
    return next((found for weight in weights if (found := centred(evidence, column, norms, weight=weight))), None)


def _counted(evidence: Evidence, column: int, norms: int) -> Rows | None:
    """The rows with gradients, if each gradient counts targets of the batch; None if one does not.

    The absolute error of a prediction against all `n` targets has the gradient `below - above`, the numbers of targets
    below and above the prediction: a whole number up to `n`, and odd if `n` is. A mean loss divides it by `n * n`. The
    gradient of an absolute error of one target is 1 at all samples.
    """
    count = evidence.column("count", column).astype(np.float64)
    low, high = (evidence.column(name, norms).astype(np.float64) for name in ("min", "max"))
    rows = np.flatnonzero(np.isfinite(low) & (high > 0) & (count >= LEAST_SAMPLES) & (count <= LARGEST_COUNT))
    if len(rows) < LEAST_STEPS:
        return None
    n = count[rows]
    for scale in (n * n, np.ones(len(rows))):
        sizes = np.stack([low[rows], high[rows]]) * scale
        whole = np.round(sizes)
        is_whole = (np.abs(sizes - whole) < EXACT * np.maximum(1, whole / 100)) & ((whole - n) % 2 == 0) & (whole <= n)
        if is_whole.all() and len(np.unique(whole)) >= LEAST_OF_ABSOLUTE:
            return rows
    return None


def _severity(evidence: Evidence, found: Centred, *, samples: Floats) -> Severity | None:
    """How sure it is that the centre is the mean of different targets of a batch's samples; None if it is not.

    The centre then differs from batch to batch, as no constant does. The loss is larger than `found.square` by the
    variance of the targets, which varies from batch to batch, unlike a penalty on the weights, or is constant to the
    last digits where all batches are the same. Without a logged loss, all samples of a batch may really have one
    target, so the severity is `info`, unless the predictions do not follow it.
    """
    is_another = varies(found)
    loss = judged(evidence)
    _, rows, values = np.intersect1d(evidence.steps[found.rows], loss.steps if loss else [], return_indices=True)
    if loss is None or len(rows) < LEAST_STEPS:
        return "info" if is_another else None
    logged, square = loss.values[values], found.square[rows]
    rest = logged - square
    usual = float(np.median(rest))
    if not np.median(logged / square) > MORE:
        return None
    differs = noise_of(rest) > OF_CHANCE * np.sqrt(2 / np.median(samples)) * usual
    if np.ptp(rest) < EXACT * usual:
        return "warning"
    return "warning" if is_another and differs and not _is_penalty(evidence, found.rows[rows], rest) else None


def _follows(evidence: Evidence, found: Centred, column: int) -> bool:
    """Whether the mean prediction goes with the centre from batch to batch, or too few batches tell.

    Where all samples of a batch really have one target, a model that has learned anything answers another number for
    a batch with another target. The mean of the targets of many samples says nothing of any one of them.
    """
    steps = evidence.steps[found.rows]
    late = 2 * steps >= steps[0] + steps[-1]
    means = evidence.column("mean", column)[found.rows].astype(np.float64)
    if late.sum() < LEAST_LATE or steps[-1] - steps[0] < LEAST_UPDATES:
        return True
    off = (found.centre - means)[late]
    return bool(off.std() < FOLLOWS * found.centre[late].std())


def _is_penalty(evidence: Evidence, rows: Rows, rest: Floats) -> bool:
    """Whether `rest`, a part of the loss, is a multiple of an l2 or l1 penalty on all parameters or on all matrices."""
    every = evidence.of_kind("value", "param")
    matrices = [column for column in every if dimensions(evidence.places.tensor(evidence.series[column])) > 1]
    for columns in (every, matrices):
        lengths, sizes, count = (
            evidence.matrix(name)[rows][:, columns].astype(np.float64) for name in ("l2_norm", "absolute_mean", "count")
        )
        for penalty in ((lengths**2).sum(axis=1), (sizes * count).sum(axis=1)):
            factors = rest / penalty
            if np.ptp(factors) < MULTIPLE * abs(np.median(factors)):
                return True
    return False


def _report_counts(evidence: Evidence, output: Series, rows: Rows, *, samples: float) -> Finding:
    """The finding that the loss is an absolute error against the targets of all samples."""
    return finding(
        evidence,
        "targets-broadcast",
        "warning",
        at=output,
        rows=rows,
        numbers={"samples": samples, "steps": len(rows)},
        text="The loss is an absolute error between each prediction and the targets of all "
        f"{samples:.0f} samples of the batch: {_SHAPES} So the model can only learn the median of the targets.",
        advice=_ADVICE,
    )


_SHAPES = "predictions `[n, 1]` and targets `[n]`, or the other way round, broadcast to `[n, n]`."
_ADVICE = "Give predictions and targets the same shape before the loss: `model(x).squeeze(1)`, or `y.unsqueeze(1)`."


def _report(evidence: Evidence, output: Series, found: Centred, *, severity: Severity, samples: float) -> Finding:
    """The finding that the loss is a squared error against the targets of all samples."""
    return finding(
        evidence,
        "targets-broadcast",
        severity,
        at=output,
        rows=found.rows,
        numbers={"samples": samples, "centre": float(found.centre[-1]), "steps": len(found.rows)},
        text=f"The loss pulls all {samples:.0f} predictions of a batch to one number, the mean of its targets "
        f"({found.centre[-1]:.3g} at the last step): {_SHAPES} So the model can only learn that mean.",
        advice=_ADVICE,
    )
