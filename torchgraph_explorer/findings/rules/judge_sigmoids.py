"""Finds a sigmoid at the end of a discriminator whose loss applies another one, where it is a part of what is watched.

The evidence is its outputs for batches with one label, as of real or of generated samples, and the gradients at them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.judges import judges_of, outputs_of
from torchgraph_explorer.findings.rules.outputs import lie_within
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.findings.rules.twice_by_gradient import LEAST_RANGE, LEAST_WITHOUT_MODULE

EXACT = 1e-3
"""Largest difference of the gradients of a batch, times its samples, from those of such a loss: it is rounding."""

VARIED = 1e-3
"""Least range of the outputs of a batch, so that two of its gradients tell the loss."""

PARTS = (1.0, 0.5)
"""What the loss of a batch may be multiplied by: the mean of that of real and of generated samples has a half of it."""

Floats = npt.NDArray[np.float64]


def sigmoid_of_judge_twice(evidence: Evidence) -> Iterator[Finding]:
    """The gradients at a part's probabilities are those of a cross entropy that takes them for logits.

    The loop has to call the part itself. It gives one number a sample, and all samples of a batch have one label.
    """
    for module in judges_of(evidence):
        rows = [_rows(evidence, column) for column in _outputs_within(evidence, module)]
        known = [found for found in rows if found is not None]
        if not known or any(not is_twice.all() for _, is_twice in known):
            continue
        seen = np.unique(np.concatenate([steps for steps, _ in known]))
        if len(seen) < LEAST_ROWS or not _has_sigmoid(evidence, module, len(seen)):
            continue
        yield finding(
            evidence,
            "softmax-before-loss",
            "warning",
            at=module,
            rows=seen,
            numbers={"steps": len(seen)},
            text=f"The outputs of {named(module)} are those of a sigmoid, and the gradient that comes back is that of "
            "a loss that applies another one, such as `binary_cross_entropy_with_logits`. It cannot get small.",
            advice="Remove the sigmoid at the end of the network: the loss applies it. Apply it yourself only to show "
            "or use probabilities.",
        )


def _has_sigmoid(evidence: Evidence, judge: str, rows: int) -> bool:
    """Whether a sigmoid is a module of this one, or its outputs at so many rows are too varied for untrained logits."""
    called = evidence.places.called
    if any(f"{one}.".startswith(f"{judge}.") and evidence.places.class_of(one) == "Sigmoid" for one in called):
        return True
    columns = _outputs_within(evidence, judge)
    low, high = (evidence.matrix(name)[:, columns] for name in ("min", "max"))
    return bool(rows >= LEAST_WITHOUT_MODULE and np.nanmax(high) - np.nanmin(low) > LEAST_RANGE)


def _outputs_within(evidence: Evidence, module: str) -> list[int]:
    """Those of a module's outputs that are always between 0 and 1."""
    return [column for column in outputs_of(evidence, module) if lie_within(evidence, column)]


def _rows(evidence: Evidence, column: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]] | None:
    """The rows at which the gradients of a call's outputs tell the loss, and at which of them it is such a loss."""
    series = evidence.series[column]
    norms = evidence.find(series.module, series.call, series.role, series.path, "grad_norm")
    if norms is None:
        return None
    low, high, count, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("min", "max", "count", "sampled")
    )
    least, most = (evidence.column(name, norms) * count for name in ("min", "max"))
    rows = np.flatnonzero((most > 0) & (high - low > VARIED) & (count == sampled))
    if not len(rows):
        return None
    wrong_low, wrong_high = (1 / (1 + np.exp(-some[rows])) for some in (low, high))
    is_twice = np.zeros(len(rows), dtype=bool)
    for part in PARTS:
        for first, last in ((wrong_low, wrong_high), (1 - wrong_high, 1 - wrong_low)):  # labels of 0, and of 1
            off = np.maximum(np.abs(least[rows] - part * first), np.abs(most[rows] - part * last))
            is_twice |= off < EXACT
    return rows, is_twice
