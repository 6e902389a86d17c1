"""Finds a penalty on the weights within the loss whose gradient leaves nothing of that of the data.

The evidence is that the gradients of nearly all matrices are those of such a penalty.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.ratios import trained_matrices
from torchgraph_explorer.findings.rules.rule import Flags, finding

Floats = npt.NDArray[np.float64]

LEAST_MATRICES, LEAST_STEPS = 2, 3
"""Fewest matrices whose gradients are those of a penalty, and fewest steps at which they are."""

ALIKE = 0.1
"""Largest relative difference of the factor of one matrix, or of one step, from that of all."""

EQUAL_SIZES = 0.98
"""Least mean magnitude over root mean square of a gradient whose elements all have one magnitude."""

MOST = 0.9
"""Least share of the elements of all matrices that are in those with the gradient of a penalty. A small last layer may
well get more gradient from the data."""

OFTEN = 0.4
"""Least share of the recorded steps at which the gradients are those of a penalty."""

SOLVED = 0.01
"""Largest norm of the gradients at the model's outputs, over that at first, of a loss of the data that is solved."""


def penalty_dominates(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of nearly all matrices are the same multiple of their values, or all have one magnitude.

    The first is the gradient of a sum of squares of the weights, the second that of a sum of their magnitudes. A loss
    of the data has neither. Where that loss is solved, as a hinge loss beyond all margins is, the gradient of a penalty
    is all that is left, however small the penalty: such steps do not count.

    A penalty makes the weights smaller. The gradient of a loss may well be a multiple of weights that it makes larger:
    all layers of a network in balance grow by the same factor.
    """
    weights = trained_matrices(evidence)
    if len(weights) < LEAST_MATRICES:
        return
    keys = [evidence.series[column] for column in weights]
    grads = [evidence.find(key.module, key.call, key.role, key.path, "grad") for key in keys]
    columns = [(weight, grad) for weight, grad in zip(weights, grads, strict=True) if grad is not None]
    if len(columns) < LEAST_MATRICES:
        return
    values, gradients = map(np.array, zip(*columns, strict=True))
    is_solved = _is_solved(evidence)
    for name, power, factors in (
        ("squares", 2, _factors_of_squares(evidence, values, gradients)),
        ("magnitudes", 1, _factors_of_magnitudes(evidence, gradients)),
    ):
        rows = np.flatnonzero(np.isfinite(factors) & ~is_solved)
        if len(rows) < max(LEAST_STEPS, OFTEN * len(evidence)):
            continue
        factor = float(np.median(factors[rows]))
        if not (np.abs(factors[rows] / factor - 1) < ALIKE).all() or not _shrink(evidence, values, since=int(rows[0])):
            continue
        yield finding(
            evidence,
            "weight-decay-dominates",
            "warning",
            at=None,
            rows=range(len(evidence)),  # the penalty is part of the gradients at other steps, too
            numbers={"factor": factor / power, "matrices": len(columns), "steps": len(rows)},
            text=f"At {len(rows)} of {len(evidence)} recorded steps, the gradients of the weight matrices are, within "
            f"{ALIKE:.0%}, those of a penalty in the loss: the sum of the {name} of the weights, times "
            f"{factor / power:.2g}. It pulls the weights to zero, and hardly any gradient of the data is left.",
            advice="Lower the factor of the penalty on the weights by 100 or more, or leave it out.",
        )
        return


def _shrink(evidence: Evidence, values: npt.NDArray[np.intp], *, since: int) -> bool:
    """Whether the norm of the matrices, whose values these are, is lower at the end than at the row `since`."""
    norms = np.linalg.norm(evidence.matrix("l2_norm")[:, values].astype(np.float64), axis=1)
    return bool(norms[-1] < norms[since])


def _is_solved(evidence: Evidence) -> Flags:
    """At which rows the gradients at all outputs of the model are next to nothing beside those at first, `[steps]`."""
    norms = [output.norms for output in trained_outputs(evidence)]
    lengths = evidence.matrix("l2_norm")[:, norms].astype(np.float64)
    if not norms:
        return np.zeros(len(evidence), dtype=bool)
    found: Flags = (lengths <= SOLVED * lengths[0]).all(axis=1)
    return found


def _factors_of_squares(evidence: Evidence, values: npt.NDArray[np.intp], gradients: npt.NDArray[np.intp]) -> Floats:
    """The factor by which nearly all gradients are multiples of the values, `[steps]`; NaN where they are none.

    That is told from the standard deviations, mean magnitudes and norms of both.
    """
    of_values, of_gradients = (
        np.linalg.norm(evidence.matrix("l2_norm")[:, columns].astype(np.float64), axis=1)
        for columns in (values, gradients)
    )
    with np.errstate(all="ignore"):
        factor: Floats = of_gradients / of_values
        near = [
            np.abs(evidence.matrix(name)[:, gradients] / evidence.matrix(name)[:, values] / factor[:, None] - 1) < ALIKE
            for name in ("std", "absolute_mean", "l2_norm")
        ]
    return np.where(_are_most(evidence, values, np.logical_and.reduce(near)), factor, np.nan)


def _factors_of_magnitudes(evidence: Evidence, gradients: npt.NDArray[np.intp]) -> Floats:
    """The magnitude that nearly all elements of the gradients have, `[steps]`; NaN where they have several."""
    mean, count = (evidence.matrix(name)[:, gradients].astype(np.float64) for name in ("absolute_mean", "count"))
    with np.errstate(all="ignore"):
        magnitude: Floats = (mean * count).sum(axis=1) / count.sum(axis=1)
        are_equal = mean > EQUAL_SIZES * evidence.rms[:, gradients]
        near = np.abs(mean / magnitude[:, None] - 1) < ALIKE
    return np.where(_are_most(evidence, gradients, are_equal & near), magnitude, np.nan)


def _are_most(evidence: Evidence, columns: npt.NDArray[np.intp], flags: Flags) -> Flags:
    """At which rows `flags`, `[steps, matrices]`, are set for several matrices that have nearly all elements."""
    count = np.nan_to_num(evidence.matrix("count")[:, columns]).astype(np.float64)
    with np.errstate(all="ignore"):
        share = (count * flags).sum(axis=1) / count.sum(axis=1)
    found: Flags = (share > MOST) & (flags.sum(axis=1) >= LEAST_MATRICES)
    return found
