"""Finds two outputs of one network that a loss only draws together, so that all samples come to look alike.

The evidence is the gradients at both, which are equally long at all samples, and the directions of the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import numbers_by_place
from torchgraph_explorer.findings.rules.rule import finding, held, named

EQUAL = 1e-5
"""Largest relative difference, which is rounding, between the statistics of the lengths of both gradients."""

TOGETHER, CAME = 0.01, 0.05
"""Largest mean square distance of vectors of length 1 from their mean, of samples that look alike; and over that at
first. Those of usual embeddings are 0.1 to 1."""

HELD = 0.25
"""Least share of the training, up to its end, over which it is so small."""

LEAST_STEPS = 4
"""Fewest recorded steps with both gradients and with directions."""


def twins_attract(evidence: Evidence) -> Iterator[Finding]:
    """The loss depends on nothing but the differences of two outputs, and the vectors of all samples come together.

    Pairs with labels, of which some repel each other, also have such a loss, but their vectors do not come together.
    """
    for (kind, place), measured in numbers_by_place(evidence, "direction", "part").items():
        name = "" if kind == "direction" else place  # that of an output is its path
        rows = np.array([row for row, _ in measured], np.intp)
        apart = np.array([distance for _, (_, distance) in measured])
        kept = held(apart <= min(TOGETHER, CAME * float(apart[0])), evidence.steps[rows], share=HELD)
        if kept is None or len(rows) < LEAST_STEPS or not _are_twins(evidence, name):
            continue
        yield finding(
            evidence,
            "collapse",
            "warning",
            at=name,
            rows=rows[kept],
            numbers={"apart": float(apart[-1]), "first": float(apart[0])},
            text=f"The vectors that {named(name)} gives for the samples of a batch have come to point the same way: "
            f"the mean square of their distance from the mean direction is {apart[-1]:.1g}, after {apart[0]:.1g} at "
            "first. The loss depends on nothing but the differences of two such vectors, which are smallest if all "
            "vectors are the same.",
            advice="A term is missing that keeps samples apart: negative pairs, or the variance of features. Or the "
            "one of the two that is the target needs `.detach()`, behind a predictor for the other.",
        )
        return


def _are_twins(evidence: Evidence, module: str) -> bool:
    """Whether the gradients at two outputs of the module, or of two calls of it, are equally long at all samples."""
    columns = [
        number
        for number, one in enumerate(evidence.series)
        if one.module == module and one.role == "output" and one.kind == "grad_norm"
    ]
    if len(columns) != 2:
        return False
    there = np.flatnonzero(evidence.is_there[:, columns].all(axis=1))
    lengths = evidence.matrix("max")[there][:, columns]
    rows = there[(lengths > 0).all(axis=1)]
    if len(rows) < LEAST_STEPS:
        return False
    for statistic in ("min", "max", "mean", "l2_norm", "count"):
        one, other = evidence.matrix(statistic)[rows][:, columns].astype(np.float64).T
        if not (np.abs(one - other) <= EQUAL * np.maximum(np.abs(one), np.abs(other))).all():
            return False
    return True
