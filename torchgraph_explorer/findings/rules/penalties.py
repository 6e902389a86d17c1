"""A penalty on the weights within the loss whose gradient leaves nothing of that of the data."""

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

ALIKE = 0.1
"""How far a matrix' gradient over its values may be from that of the others."""

EQUAL_SIZES = 0.98
"""Mean magnitude of the elements of a gradient over their root mean square, from which on all have the same."""

MOST = 0.9
"""Share of the elements of all matrices that are in such ones: a small last layer may well get more from the data."""

OFTEN = 0.4
"""Share of the recorded steps at which it has to be so."""

SOLVED = 0.01
"""Length of the gradients at the model's outputs over that at first, below which the data asks for nothing more."""


def penalty_dominates(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of nearly all matrices are the same multiple of their values, or all have one magnitude.

    The first is the gradient of the sum of squares of the weights, the second that of the sum of their magnitudes. Of a
    loss of the data, neither is so. Where the data's is solved, as by a hinge loss beyond all margins, nothing else is
    left than a penalty, however small: such steps do not count.
    """
    weights = trained_matrices(evidence)
    if len(weights) < LEAST_MATRICES:
        return
    keys = [evidence.series[one] for one in weights]
    grads = [evidence.find(one.module, one.call, one.role, one.path, "grad") for one in keys]
    columns = [(weight, grad) for weight, grad in zip(weights, grads, strict=True) if grad is not None]
    if len(columns) < LEAST_MATRICES:
        return
    values, gradients = (np.array(of) for of in zip(*columns, strict=True))
    is_solved = _is_solved(evidence)
    for name, power, found in (
        ("squares", 2, _factors_of_squares(evidence, values, gradients)),
        ("magnitudes", 1, _of_magnitudes(evidence, gradients)),
    ):
        rows = np.flatnonzero(np.isfinite(found) & ~is_solved)
        if len(rows) < max(LEAST_STEPS, OFTEN * len(evidence)):
            continue
        factor = float(np.median(found[rows]))
        if not (np.abs(found[rows] / factor - 1) < ALIKE).all():
            continue
        yield finding(
            evidence,
            "weight-decay-dominates",
            "warning",
            at=None,
            rows=range(len(evidence)),  # as it stays the same, it is a part of the gradients before, too
            numbers={"factor": factor / power, "matrices": len(columns), "steps": len(rows)},
            text=f"At {len(rows)} of {len(evidence)} recorded steps, the gradients of the weight matrices are, within "
            f"a few percent, those of a penalty in the loss: the sum of the {name} of the weights, times "
            f"{factor / power:.2g}. It pulls the weights to zero, and hardly any gradient of the data is left.",
            advice="Lower the factor of the penalty on the weights by 100 or more, or leave it out.",
        )
        return


def _is_solved(evidence: Evidence) -> Flags:
    """The rows at which next to nothing comes back to the model's outputs, beside what came at first."""
    lengths = evidence.matrix("l2_norm")[:, [one.norms for one in trained_outputs(evidence)]].astype(np.float64)
    if not lengths.shape[1]:
        return np.zeros(len(evidence), dtype=bool)
    found: Flags = (lengths <= SOLVED * lengths[0]).all(axis=1)
    return found


def _factors_of_squares(evidence: Evidence, values: npt.NDArray[np.intp], gradients: npt.NDArray[np.intp]) -> Floats:
    """At each row, what nearly all is multiplied by in its gradient; NaN where there is no such multiple."""
    of_values, of_gradients = (evidence.matrix("l2_norm")[:, of].astype(np.float64) for of in (values, gradients))
    with np.errstate(all="ignore"):
        factor: Floats = np.linalg.norm(of_gradients, axis=1) / np.linalg.norm(of_values, axis=1)
        near = [
            np.abs(evidence.matrix(name)[:, gradients] / evidence.matrix(name)[:, values] / factor[:, None] - 1) < ALIKE
            for name in ("std", "absolute_mean", "l2_norm")
        ]
    return np.where(_are_most(evidence, values, np.logical_and.reduce(near)), factor, np.nan)


def _of_magnitudes(evidence: Evidence, gradients: npt.NDArray[np.intp]) -> Floats:
    """At each row, the magnitude of nearly all elements of the gradients; NaN where it differs."""
    mean, count = (evidence.matrix(name)[:, gradients].astype(np.float64) for name in ("absolute_mean", "count"))
    with np.errstate(all="ignore"):
        magnitude: Floats = (mean * count).sum(axis=1) / count.sum(axis=1)
        are_equal = mean > EQUAL_SIZES * evidence.rms[:, gradients]
        near = np.abs(mean / magnitude[:, None] - 1) < ALIKE
    return np.where(_are_most(evidence, gradients, are_equal & near), magnitude, np.nan)


def _are_most(evidence: Evidence, columns: npt.NDArray[np.intp], told: Flags) -> Flags:
    """The rows at which this is `told` of matrices that have nearly all elements, and of several."""
    count = np.nan_to_num(evidence.matrix("count")[:, columns]).astype(np.float64)
    with np.errstate(all="ignore"):
        share = (count * told).sum(axis=1) / count.sum(axis=1)
    found: Flags = (share > MOST) & (told.sum(axis=1) >= LEAST_MATRICES)
    return found
