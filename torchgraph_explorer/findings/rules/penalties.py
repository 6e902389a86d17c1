"""A penalty on the weights within the loss whose gradient leaves nothing of that of the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.ratios import trained_matrices
from torchgraph_explorer.findings.rules.rule import finding

Floats = npt.NDArray[np.float64]

LEAST_MATRICES, LEAST_STEPS = 2, 3

ALIKE = 0.1
"""How far a matrix' gradient over its values may be from that of the others."""

EQUAL_SIZES = 0.98
"""Mean magnitude of the elements of a gradient over their root mean square, from which on all have the same."""

OFTEN = 0.4
"""Share of the recorded steps at which it has to be so."""


def penalty_dominates(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of all matrices are the same multiple of their values, or have one magnitude in all elements.

    The first is the gradient of the sum of squares of the weights, the second that of the sum of their magnitudes. Of a
    loss of the data, neither is so.
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
    for name, power, found in (
        ("squares", 2, _factors_of_squares(evidence, values, gradients)),
        ("magnitudes", 1, _of_magnitudes(evidence, gradients)),
    ):
        rows = np.flatnonzero(np.isfinite(found))
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
            text=f"At {len(rows)} of {len(evidence)} recorded steps, the gradients of all {len(columns)} weight "
            f"matrices are, but for a few percent, those of a penalty in the loss: the sum of the {name} of the "
            f"weights, times {factor / power:.2g}. It draws them to zero, and hardly any of the data's is left.",
            advice="Lower the factor of the penalty on the weights by 100 or more, or leave it out.",
        )
        return


def _factors_of_squares(evidence: Evidence, values: npt.NDArray[np.intp], gradients: npt.NDArray[np.intp]) -> Floats:
    """At each row, what all matrices are multiplied by in their gradients; NaN where these are no such multiples."""
    ratios = []
    for name in ("std", "absolute_mean", "l2_norm"):
        of_values, of_gradients = (evidence.matrix(name)[:, of].astype(np.float64) for of in (values, gradients))
        with np.errstate(all="ignore"):
            ratios.append(of_gradients / of_values)
    every = np.concatenate(ratios, axis=1)
    middle: Floats = np.median(every, axis=1)
    is_so = (np.abs(every - middle[:, None]) < ALIKE * middle[:, None]).all(axis=1)
    return np.where(is_so, middle, np.nan)


def _of_magnitudes(evidence: Evidence, gradients: npt.NDArray[np.intp]) -> Floats:
    """At each row, the magnitude of the elements of all gradients; NaN where it differs."""
    mean = evidence.matrix("absolute_mean")[:, gradients].astype(np.float64)
    middle: Floats = np.median(mean, axis=1)
    with np.errstate(all="ignore"):
        are_equal = (mean > EQUAL_SIZES * evidence.rms[:, gradients]).all(axis=1)
        is_so = are_equal & (np.abs(mean - middle[:, None]) < ALIKE * middle[:, None]).all(axis=1) & (middle > 0)
    return np.where(is_so, middle, np.nan)
