"""Finds a batch that the training loop feeds to the model again and again.

The evidence is statistics of the model's inputs that stay the same to the last bit from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.findings.rules.same_noise import noise_repeated

LEAST_STEPS = 8
"""Fewest recorded steps whose batches are compared."""

LEAST_DIFFERENT = 3
"""The run has more different batches than this if it is not trained on few batches on purpose."""

STUCK = 0.5
"""Least share of the recorded steps, up to the last one, that have one and the same batch, after others."""

IN_A_ROW = 5
"""Fewest consecutive steps with the same batch, in the median over the batches, that are too many."""

USUAL_SIZES = (8, 16, 32, 64, 128, 256)
"""Usual numbers of samples in a batch. A constant input of another size is taken for the whole data set."""


def repeated_batch(evidence: Evidence) -> Iterator[Finding]:
    """The model's inputs are the same to the last bit at many consecutive steps, or at all steps.

    So may be those of a generator, which the training loop calls itself.
    """
    yield from noise_repeated(evidence)
    inputs = [one for one in evidence.of_kind("value", "input") if not evidence.series[one].module]
    inputs = [one for one in inputs if evidence.is_there[:, one].all() and _is_whole(evidence, one)]
    inputs = [one for one in inputs if not _has_two_values(evidence, one)]
    if len(evidence) < LEAST_STEPS or not inputs or evidence.is_of_evaluations:  # whose data is the same on purpose
        return
    changes = _changes(evidence, inputs)
    runs = np.diff(np.flatnonzero(np.concatenate([[True], changes, [True]])))
    is_stuck = len(runs) > LEAST_DIFFERENT and runs[-1] >= STUCK * len(evidence) and not _comes_round(evidence, inputs)
    is_slow = len(runs) > LEAST_DIFFERENT and np.median(runs) >= IN_A_ROW and not _are_apart(evidence)
    at = evidence.series[inputs[0]]
    if len(runs) == 1 and _is_usual_batch(evidence, inputs[0]):
        yield finding(
            evidence,
            "repeated-batch",
            "info",
            at=at,
            rows=range(len(evidence)),
            numbers={"steps": len(evidence), "different": 1},
            text=f"The model's input is the same at all {len(evidence)} recorded steps.",
            advice="If this is not the whole data set, nor one batch on purpose, look at how the loop takes the next "
            "batch: `next(iter(loader))` begins again each time.",
        )
    elif (is_stuck or is_slow) and not need_not_fall(evidence):
        rows = range(len(evidence) - int(runs[-1]), len(evidence)) if is_stuck else range(len(evidence))
        how = (
            f"stays the same from step {evidence.steps[rows[0]]} on"
            if is_stuck
            else f"is the same for up to {int(runs.max())} steps in a row"
        )
        yield finding(
            evidence,
            "repeated-batch",
            "warning",
            at=at,
            rows=rows,
            numbers={"steps": len(evidence), "different": len(runs), "longest": int(runs.max())},
            text=f"The model's input {how}: the {len(evidence)} recorded steps have only {len(runs)} batches, one "
            "after the other.",
            advice="Look at how the loop takes the next batch, and at what caches samples on the way.",
        )


def _is_usual_batch(evidence: Evidence, column: int) -> bool:
    """Whether an input has a usual number of samples for a batch, and so is probably no whole data set."""
    info = evidence.places.tensor(evidence.series[column])
    return info is not None and bool(info.shape) and info.shape[0] in USUAL_SIZES


def _is_whole(evidence: Evidence, column: int) -> bool:
    """Whether an input's statistics are of all its elements at each step; those of a random sample would differ."""
    return bool((evidence.column("count", column) == evidence.column("sampled", column)).all())


def _has_two_values(evidence: Evidence, column: int) -> bool:
    """Whether an input's elements have at most two values, as one-hot codes: then other samples have equal statistics.

    The variance of elements with a given minimum, mean and maximum is at most `(max - mean) * (mean - min)`. Only
    elements that are all at the minimum or the maximum reach that.
    """
    low, mean, high, std = (evidence.column(name, column) for name in ("min", "mean", "max", "std"))
    return bool(np.isclose(std**2, (high - mean) * (mean - low), rtol=1e-4, atol=0.0).all())


def _changes(evidence: Evidence, inputs: list[int]) -> npt.NDArray[np.bool_]:
    """Whether any of the inputs differs from the recorded step before, `[steps - 1]`."""
    values = evidence.telling(inputs)
    changed: npt.NDArray[np.bool_] = (values[:, 1:] != values[:, :-1]).any(axis=(0, 2))
    return changed


def _comes_round(evidence: Evidence, inputs: list[int]) -> bool:
    """Whether the last batch is that of all recorded steps at multiples of some period from it, and of no other.

    A loader that does not shuffle gives the same batch once in each round through the data. It is recorded each time
    where the period of the recorded steps is one of such rounds, too.
    """
    values = evidence.telling(inputs)
    is_same = (values == values[:, -1:]).all(axis=(0, 2))
    before = evidence.steps[-1] - evidence.steps
    period = np.gcd.reduce(before[is_same])
    return bool(period > 1 and (is_same == (before % period == 0)).all())


def _are_apart(evidence: Evidence) -> bool:
    """Whether most recorded steps have unrecorded ones between them, which may have had other batches."""
    return bool(np.median(np.diff(evidence.steps)) > 1)
