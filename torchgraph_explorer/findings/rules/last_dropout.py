"""Finds dropout behind the last layer: part of what the loss compares with the targets are zeros.

The evidence is a share of zeros in the model's outputs that is the same at all steps in training mode, up to chance.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import first_is_cross_entropy
from torchgraph_explorer.findings.rules.facts import rows_with
from torchgraph_explorer.findings.rules.outputs import last_module, trained_outputs
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, named
from torchgraph_explorer.findings.rules.targets import squared_errors
from torchgraph_explorer.schema import Series

MOST_DROPPED = 0.95
"""Largest share of zeros in the outputs that is taken for dropout: a model may have sparse outputs on purpose."""

LEAST_ZEROS = 0.02
"""Least share of zeros in the outputs that is taken for dropout."""

ERRORS = 5.0
"""Most standard errors by which the share of zeros of a step differs from that of all, if each element is dropped by
itself."""

LEAST_SPREAD = 0.2
"""Least standard deviation of the share of zeros over the steps, over its standard error. Zeros that are always at the
same elements, as those of a mask, do not vary so much."""


def dropout_on_output(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs go through a dropout and then into the loss.

    The loss has to be known to be a cross entropy or squared error of these outputs. What is watched may also be a part
    of a model, whose features another part takes, and then a dropout at its end is usual. Without a dropout module, a
    squared error of partly zeros is no warning, as a mask may have made them.
    """
    for series, info, column, norms in trained_outputs(evidence):
        rows = _dropped_rows(evidence, column)
        if rows is None:
            continue
        is_entropy = first_is_cross_entropy(evidence, column, norms, info=info)
        if is_entropy or squared_errors(evidence, column, norms) is not None:
            zeros = float(np.median(evidence.zero_shares[rows, column]))
            yield _report(evidence, series, rows, zeros=zeros, is_sure=is_entropy)


def _dropped_rows(evidence: Evidence, column: int) -> Rows | None:
    """The rows in training mode, if elements of an output were zero with the same probability at all of them.

    None if they were not, if there are too few or too many zeros, or if the output does not take both signs.
    """
    low, high, sampled = (evidence.column(name, column).astype(np.float64) for name in ("min", "max", "sampled"))
    shares = evidence.zero_shares[:, column]
    rows = np.array(rows_with(evidence, lambda facts: facts.is_training), np.intp)
    rows = rows[np.isfinite(shares[rows]) & (sampled[rows] > 0)]
    if len(rows) < LEAST_ROWS or not (low[rows].min() < 0 < high[rows].max()):
        return None
    usual = float((shares[rows] * sampled[rows]).sum() / sampled[rows].sum())
    if not LEAST_ZEROS < usual < MOST_DROPPED:
        return None
    errors = (shares[rows] - usual) / np.sqrt(usual * (1 - usual) / sampled[rows])  # of a binomial distribution
    return rows if np.abs(errors).max() < ERRORS and errors.std() > LEAST_SPREAD else None


def _report(evidence: Evidence, output: Series, rows: Rows, *, zeros: float, is_sure: bool) -> Finding:
    """The finding of a dropout, at its module if that is the last one, else at the model's output."""
    last = last_module(evidence)
    is_module = "Dropout" in evidence.places.class_of(last)
    where = f"by {named(last)} " if is_module else ""
    return finding(
        evidence,
        "dropout-on-output",
        "warning" if is_module or is_sure else "info",
        at=last if is_module else output,
        rows=rows,
        numbers={"zeros": zeros, "steps": len(rows)},
        text=f"{zeros:.0%} of the model's outputs are dropped {where}at each training step, and the loss "
        "takes these zeros for answers. No training can make that error small.",
        advice="Put the dropout before the last layer, not behind it.",
    )
