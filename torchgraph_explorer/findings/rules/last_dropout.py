"""Dropout behind the last layer: what the loss compares with the targets is partly zeros."""

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
"""Of outputs that are zero more often than that, the model's way of being may be to have few others."""

LEAST_ZEROS = 0.02
"""Share of zeros from which on they are looked at."""

ERRORS = 5.0
"""Standard errors by which the share of zeros may be off at a step, if each element is dropped by itself."""

LEAST_SPREAD = 0.2
"""Standard deviation of that share over the standard error, at least: zeros that are no chance stay where they are."""


def dropout_on_output(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs go through a dropout and then into the loss.

    The loss has to be known to be taken of them: what is watched may also be a part, whose features something else
    takes, and then a dropout behind the last layer is a usual thing. Without a dropout module, zeros of what is no
    logit may also be those of a mask, and then it is no warning.
    """
    for one, info, column, norms in trained_outputs(evidence):
        rows = _dropped_rows(evidence, column)
        if rows is None:
            continue
        is_entropy = first_is_cross_entropy(evidence, column, norms, info=info)
        if is_entropy or squared_errors(evidence, column, norms) is not None:
            yield _told(
                evidence, one, rows, zeros=float(np.median(evidence.zero_shares[rows, column])), sure=is_entropy
            )


def _dropped_rows(evidence: Evidence, column: int) -> Rows | None:
    """The rows in training mode, if at all of them elements of an output were zero by chance, as often as at others."""
    low, high, sampled = (evidence.column(name, column).astype(np.float64) for name in ("min", "max", "sampled"))
    shares = evidence.zero_shares[:, column]
    rows = np.array(rows_with(evidence, lambda one: one.is_training), np.intp)
    rows = rows[np.isfinite(shares[rows]) & (sampled[rows] > 0)]
    if len(rows) < LEAST_ROWS or not (low[rows].min() < 0 < high[rows].max()):
        return None
    usual = float((shares[rows] * sampled[rows]).sum() / sampled[rows].sum())
    if not LEAST_ZEROS < usual < MOST_DROPPED:
        return None
    off = (shares[rows] - usual) / np.sqrt(usual * (1 - usual) / sampled[rows])
    return rows if np.abs(off).max() < ERRORS and off.std() > LEAST_SPREAD else None


def _told(evidence: Evidence, one: Series, rows: Rows, *, zeros: float, sure: bool) -> Finding:
    last = last_module(evidence)
    is_module = "Dropout" in evidence.places.class_of(last)
    where = f"by {named(last)} " if is_module else ""
    return finding(
        evidence,
        "dropout-on-output",
        "warning" if is_module or sure else "info",
        at=last if is_module else one,
        rows=rows,
        numbers={"zeros": zeros, "steps": len(rows)},
        text=f"{zeros:.0%} of the model's outputs are dropped {where}at each training step, and the loss "
        "takes these zeros for answers. No training can make that error small.",
        advice="Put the dropout before the last layer, not behind it.",
    )
