"""Finds a Dice coefficient, or a similar ratio, of logits instead of probabilities, by values that it cannot have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import ratios_of_overlap
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, quoted

BEYOND = 1.05
"""Least magnitude on both sides of zero that such a ratio of probabilities does not have: it is between 0 and 1, and
with the opposite sign, or beside a cross entropy, beyond 1 on one side alone."""


def dice_of_logits(evidence: Evidence) -> Iterator[Finding]:
    """A scalar that has the name of a Dice coefficient or the like is above 1 at some steps, and below -1 at others."""
    for scalar in ratios_of_overlap(evidence.scalars):
        values = scalar.values[np.isfinite(scalar.values)]
        if len(values) < LEAST_ROWS or not (values.max() > BEYOND and values.min() < -BEYOND):
            continue
        beyond = scalar.steps[np.abs(scalar.values) > BEYOND]
        rows = np.flatnonzero(np.isin(evidence.steps, beyond))
        if not len(rows):
            continue
        yield finding(
            evidence,
            "logits-before-nll",
            "warning",
            at="",
            rows=rows,
            numbers={"lowest": float(values.min()), "highest": float(values.max())},
            text=f"`{quoted(scalar.name)}` is between {values.min():.3g} and {values.max():.3g}, but the overlap of "
            "probabilities and labels, over both, is between 0 and 1. So what it compares with the labels are logits, "
            "not probabilities.",
            advice="Apply a `sigmoid`, or a `softmax` over the classes, before this loss.",
        )
        return
