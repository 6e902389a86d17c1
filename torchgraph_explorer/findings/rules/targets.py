"""Losses whose targets do not fit what the network can say: logits for logarithms, and numbers out of its range."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.heads import EQUAL, classes_and_positions, ends_with, samples_of
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

LEAST_OF_COSINES = -1.05
"""A loss that is linear in its outputs, with gradients of norm 1, is not below -1 if it is a negative cosine."""

AS_LOGGED = 0.02
"""By how much the logged loss may differ from the squared error that the gradients tell."""

OFTEN = 0.5
"""Share of the steps at which the error has to be larger than the range."""

RANGES = {"Sigmoid": (0.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
"""What the outputs of these classes lie between."""


def logits_before_nll(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are logits, and the loss takes them for the logarithms of probabilities.

    Its gradient is then the label whatever the answer is: each sample's has the norm 1. Logarithms of probabilities are
    not above zero. A distance has such gradients, too, but is not negative; and a cosine is not beyond 1.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values) or loss.values.min() > LEAST_OF_COSINES:
        return
    for one, info, norms in _trained_outputs(evidence):
        column = evidence.find(one.module, one.call, "output", one.path)
        if column is None or not np.nanmax(evidence.column("max", column), initial=0) > EQUAL:
            continue
        size = samples_of(evidence, info, column)
        for classes, positions in classes_and_positions(info):
            rows = _of_norm_one(evidence, norms, size * math.sqrt(positions))
            if classes > 2 and len(rows) >= LEAST_ROWS:
                yield _not_logarithms(evidence, one, rows, lowest=float(loss.values.min()))
                break


def _trained_outputs(evidence: Evidence) -> Iterator[tuple[Series, TensorInfo, int]]:
    """The outputs of the model that gradients come back to, and the columns of the norms of these."""
    for column in evidence.of_kind("value", "output"):
        one = evidence.series[column]
        info = evidence.places.tensor(one)
        norms = evidence.find(one.module, one.call, "output", one.path, "grad_norm")
        if not one.module and not one.call and info is not None and info.shape and norms is not None:
            yield one, info, norms


def _of_norm_one(evidence: Evidence, norms: int, scale: Floats) -> Rows:
    """The rows with gradients, if each sample's, times `scale`, is 1 at all of them; else none."""
    low, high = (evidence.column(name, norms) * scale for name in ("min", "max"))
    rows = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    is_one = (np.abs(low[rows] - 1) < EQUAL) & (np.abs(high[rows] - 1) < EQUAL)
    return rows if is_one.all() else rows[:0]


def _not_logarithms(evidence: Evidence, one: Series, rows: Rows, *, lowest: float) -> Finding:
    return finding(
        evidence,
        "logits-before-nll",
        "warning",
        at=one,
        rows=rows,
        numbers={"steps": len(rows), "lowest_loss": lowest},
        text="The loss takes the model's outputs for logarithms of probabilities, as `nll_loss` does, and they are "
        f"not: some are above zero. Its gradient is the same whatever the model answers, and it falls without end: it "
        f"came to {lowest:.3g}.",
        advice="Hand the outputs to `cross_entropy`, or through `log_softmax` first.",
    )


def targets_out_of_range(evidence: Evidence) -> Iterator[Finding]:
    """The squared error of outputs that an activation bounds is larger than any with targets within these bounds."""
    loss = judged(evidence)
    if loss is None:
        return
    for one, _, norms in _trained_outputs(evidence):
        column = evidence.find(one.module, one.call, "output", one.path)
        bounded = None if column is None else _bounded_by(evidence, column)
        if column is None or bounded is None:
            continue
        name, (low, high) = bounded
        _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
        found = loss.values[values].astype(np.float64)
        count, length = (evidence.column(of, at)[rows] for of, at in (("count", column), ("l2_norm", norms)))
        expected = count.astype(np.float64) * length.astype(np.float64) ** 2 / 4
        known = np.isfinite(found) & np.isfinite(expected) & (found > 0)
        rows, found, expected = rows[known], found[known], expected[known]
        is_squared = np.abs(expected - found) < AS_LOGGED * found
        is_beyond = found > (high - low) ** 2
        if len(rows) < LEAST_ROWS or not is_squared.all() or is_beyond.mean() < OFTEN:
            continue
        yield _out_of_range(evidence, one, rows, name=name, error=float(np.sqrt(np.median(found))))


def _bounded_by(evidence: Evidence, column: int) -> tuple[str, tuple[float, float]] | None:
    """The last module, if it bounds the model's output, and the bounds."""
    return next(((name, RANGES[name]) for name in RANGES if ends_with(evidence, column, name)), None)


def _out_of_range(evidence: Evidence, one: Series, rows: Rows, *, name: str, error: float) -> Finding:
    low, high = RANGES[name]
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=one,
        rows=rows,
        numbers={"root_mean_squared_error": error, "low": low, "high": high},
        text=f"The targets are not in the range of the model's outputs, which a {name} keeps between {low:g} and "
        f"{high:g}: the error is {error:.3g} in the root mean square, and cannot be above {high - low:g} else.",
        advice=f"Leave out the {name} at the end of the network, or scale the targets to its range.",
    )
