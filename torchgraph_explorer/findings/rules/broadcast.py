"""Targets that broadcast against the predictions, so that each of these is compared with the targets of all samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding, Severity
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.loss import judged, noise_of
from torchgraph_explorer.findings.rules.ordered import broadcast_order
from torchgraph_explorer.findings.rules.outputs import rounding, samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

LEAST_STEPS = 3
"""Recorded steps with gradients."""

LEAST_SAMPLES = 4
"""Of fewer samples, a common centre may be a chance."""

EXACT = 1e-3
"""By how much the gradients may differ from those of the distance from one number: that much is rounding."""

MORE = 1.02
"""The logged loss over the square of that distance, at least. With a single target for all, they are the same."""

OF_CHANCE = 0.05
"""How much the variance of the targets of a batch differs at least from that of the next one, over what it does where
they are drawn at random: the root of two over their number."""

MULTIPLE = 0.01
"""By how much what a loss has beside the error may differ from a multiple of a penalty on the weights."""

VARIES = 0.01
"""By how much that number differs between batches, over the distances, where no loss was logged."""

LEAST_OF_ABSOLUTE = 4
"""Different sizes of gradients, in whole numbers, from which on they count targets above and below a prediction."""

LARGEST_COUNT = 1e4
"""Up to this, whole numbers can be told from others in float32."""


class _Centred(NamedTuple):
    """What gradients tell of predictions that all are drawn to one number.

    Attributes:
        rows: The rows with gradients.
        centre: That number, at each of them.
        square: The mean square of the distances from it, weighted as the loss is.
    """

    rows: Rows
    centre: Floats
    square: Floats


def targets_broadcast(evidence: Evidence) -> Iterator[Finding]:
    """The gradient of each prediction is its distance from one number, the mean of the batch's targets.

    So it is for `[n, 1]` predictions and `[n]` targets, whose squared differences are `[n, n]`. The loss is then
    larger than the square of these distances by the variance of the targets, which no prediction can make smaller.
    """
    if not need_not_fall(evidence):  # adversaries have one target for all
        found = [*_by_size(evidence), *_of_several(evidence)]
        if found or _is_one_target(evidence):
            yield from found
            return
    yield from broadcast_order(evidence)


def _is_one_target(evidence: Evidence) -> bool:
    """Whether these are gradients of a squared error, and the logged loss is that of one target for all of a batch."""
    loss = judged(evidence)
    is_known = loss is not None and len(loss.values) >= LEAST_STEPS
    numbers = [one for one in trained_outputs(evidence) if _is_one_number(one.info)] if is_known else []
    return any(
        _centred(evidence, one.column, one.norms, weight=weight) is not None for one in numbers for weight in (2.0, 1.0)
    )


def _of_several(evidence: Evidence) -> Iterator[Finding]:
    """The same of outputs of several numbers for each sample: all samples have one target, and it is none's own."""
    seen = numbers_of(evidence, "shared")
    if len(seen) < LEAST_STEPS or not all(numbers[0] < EXACT for _, numbers in seen):
        return
    rows = np.array([row for row, _ in seen], np.intp)
    for one, info, column, norms in trained_outputs(evidence):
        count, length = (
            evidence.column(*of)[rows].astype(np.float64) for of in (("count", column), ("l2_norm", norms))
        )
        found = _Centred(rows, np.array([numbers[1] for _, numbers in seen]), count * length**2 / 4)
        samples = samples_of(evidence, info, column)
        severity = _severity(evidence, found, samples=samples[rows])
        if severity is not None:
            yield _told_of_several(evidence, one, rows, severity=severity, samples=samples)
        return


def _told_of_several(
    evidence: Evidence, one: Series, rows: Rows, *, severity: Severity, samples: npt.NDArray[np.float64]
) -> Finding:
    number = float(np.median(samples[rows]))
    return finding(
        evidence,
        "targets-broadcast",
        severity,
        at=one,
        rows=rows,
        numbers={"samples": number, "steps": len(rows)},
        text=f"The loss pulls all {number:.0f} outputs of a batch to the same numbers, the mean of its targets: "
        "predictions and targets have different shapes, such as `[n, 1, ...]` and `[n, ...]`, and broadcast to "
        "`[n, n, ...]`. So the model can only learn that mean.",
        advice="Give predictions and targets the same shape before the loss. torch warns of it when the loss is first "
        "computed.",
    )


def _by_size(evidence: Evidence) -> Iterator[Finding]:
    for one, info, column, norms in trained_outputs(evidence):
        if not _is_one_number(info):
            continue
        counted = _counted(evidence, column, norms)
        if counted is not None:
            samples = float(np.median(evidence.column("count", column)[counted]))
            yield _told_of_counts(evidence, one, counted, samples=samples)
            continue
        found = next((of for weight in (2.0, 1.0) if (of := _centred(evidence, column, norms, weight=weight))), None)
        count = evidence.column("count", column).astype(np.float64)
        severity = None if found is None else _severity(evidence, found, samples=count[found.rows])
        if found is not None and severity is not None:
            samples = float(np.median(count[found.rows]))
            yield _told(evidence, one, found, severity=severity, samples=samples)


def _is_one_number(info: TensorInfo) -> bool:
    """Whether there is one number for each sample."""
    return bool(info.shape) and all(size == 1 for size in info.shape[1:])


def _centred(evidence: Evidence, column: int, norms: int, *, weight: float) -> _Centred | None:
    """The centre of the predictions' gradients; None if there is none.

    The loss is taken for `weight / 2` times a mean squared error. The largest gradient is that of the largest or the
    smallest prediction, which tells the centre; and the mean square of all gradients follows from it.
    """
    count, sampled, low, high, mean, std = (
        evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "min", "max", "mean", "std")
    )
    scale = count / weight
    most, length = (evidence.column(name, norms) * scale for name in ("max", "l2_norm"))
    rows = np.flatnonzero(np.isfinite(most) & (most > 0) & (count == sampled) & (count >= LEAST_SAMPLES))
    if len(rows) < LEAST_STEPS:
        return None
    square = length[rows] ** 2 / count[rows]
    centres = np.stack([high - most, low + most])[:, rows]
    errors = np.abs((std[rows] ** 2 + (mean[rows] - centres) ** 2) / square - 1)
    info = evidence.places.tensor(evidence.series[column])
    if not (errors.min(axis=0) < EXACT + 4 * (rounding(info) if info else 0)).all():  # of a square of a difference
        return None
    centre = np.take_along_axis(centres, errors.argmin(axis=0)[None], axis=0)[0]
    return _Centred(rows, centre, square * weight / 2)


def _counted(evidence: Evidence, column: int, norms: int) -> Rows | None:
    """The rows with gradients, if these count the targets of a batch; None if they do not.

    The absolute error of a prediction against all `n` targets has the gradient `below - above`, how many targets are
    below it and above it: a whole number up to `n`, and odd if `n` is; over `n` times `n` for a mean. That of an
    absolute error of one target is 1 at all samples.
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


def _severity(evidence: Evidence, found: _Centred, *, samples: Floats) -> Severity | None:
    """Whether the samples of a batch have different targets, which the centre is the mean of; None if not.

    The centre differs from batch to batch then, as no constant does, and the loss is larger by the variance of the
    targets, which differs, too, unlike a penalty on the weights. Where all batches are the same, that variance is.
    Without a logged loss, each batch may have one target.
    """
    varies = bool(found.centre.std() > VARIES * np.sqrt(np.median(found.square)))
    loss = judged(evidence)
    _, rows, values = np.intersect1d(evidence.steps[found.rows], loss.steps if loss else [], return_indices=True)
    if loss is None or len(rows) < LEAST_STEPS:
        return "info" if varies else None
    logged, square = loss.values[values], found.square[rows]
    rest = logged - square
    usual = float(np.median(rest))
    if not np.median(logged / square) > MORE:
        return None
    differs = noise_of(rest) > OF_CHANCE * np.sqrt(2 / np.median(samples)) * usual
    if np.ptp(rest) < EXACT * usual:
        return "warning"
    return "warning" if varies and differs and not _is_penalty(evidence, found.rows[rows], rest) else None


def _is_penalty(evidence: Evidence, rows: Rows, rest: Floats) -> bool:
    """Whether this is a multiple of the squares, or of the magnitudes, of all parameters or of all matrices."""
    every = evidence.of_kind("value", "param")
    matrices = [one for one in every if dimensions(evidence.places.tensor(evidence.series[one])) > 1]
    for columns in (every, matrices):
        lengths, sizes, count = (
            evidence.matrix(name)[rows][:, columns].astype(np.float64) for name in ("l2_norm", "absolute_mean", "count")
        )
        for penalty in ((lengths**2).sum(axis=1), (sizes * count).sum(axis=1)):
            factors = rest / penalty
            if np.ptp(factors) < MULTIPLE * abs(np.median(factors)):
                return True
    return False


def _told_of_counts(evidence: Evidence, one: Series, rows: Rows, *, samples: float) -> Finding:
    return finding(
        evidence,
        "targets-broadcast",
        "warning",
        at=one,
        rows=rows,
        numbers={"samples": samples, "steps": len(rows)},
        text="The loss is an absolute error between each prediction and the targets of all "
        f"{samples:.0f} samples of the batch: {_SHAPES} So the model can only learn the median of the targets.",
        advice=_ADVICE,
    )


_SHAPES = "predictions `[n, 1]` and targets `[n]`, or the other way round, broadcast to `[n, n]`."
_ADVICE = "Give predictions and targets the same shape before the loss: `model(x).squeeze(1)`, or `y.unsqueeze(1)`."


def _told(evidence: Evidence, one: Series, found: _Centred, *, severity: Severity, samples: float) -> Finding:
    return finding(
        evidence,
        "targets-broadcast",
        severity,
        at=one,
        rows=found.rows,
        numbers={"samples": samples, "centre": float(found.centre[-1]), "steps": len(found.rows)},
        text=f"The loss pulls all {samples:.0f} predictions of a batch to one number, the mean of its targets "
        f"({found.centre[-1]:.3g} at the last step): {_SHAPES} So the model can only learn that mean.",
        advice=_ADVICE,
    )
