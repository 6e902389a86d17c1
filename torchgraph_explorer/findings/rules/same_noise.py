"""Finds a generator that is given the same noise at each step, so that it only learns to make one batch.

The evidence is statistics of its inputs that stay the same to the last bit, while a discriminator's data does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.judges import pairs_of
from torchgraph_explorer.findings.rules.rule import finding, named

LEAST_STEPS = 6
"""Fewest recorded steps that have the same noise."""


def noise_repeated(evidence: Evidence) -> Iterator[Finding]:
    """All inputs of a generator are the same at all steps, and what its discriminator is given as data is not."""
    for judge, maker, _ in pairs_of(evidence):
        given = _inputs(evidence, maker)
        rows = np.flatnonzero(evidence.is_there[:, given].any(axis=1)) if given else np.array([], np.intp)
        if len(rows) < LEAST_STEPS or not all(_is_same(evidence, one) for one in given):
            continue
        if not any(_differs_from_start(evidence, one) for one in _inputs(evidence, judge)):
            continue
        yield finding(
            evidence,
            "repeated-batch",
            "warning",
            at=maker,
            rows=rows,
            numbers={"steps": len(rows), "different": 1},
            text=f"{named(maker)} is given the same numbers at all {len(rows)} recorded steps, while the data that "
            f"{named(judge)} is given changes: it learns to make this one batch, and nothing from other noise.",
            advice="Draw new noise at each step. Fixed noise is for pictures that show how the training goes on.",
        )


def _inputs(evidence: Evidence, module: str) -> list[int]:
    """The columns of the values of what a module is given, in all its calls."""
    return [one for one in evidence.of_kind("value", "input") if evidence.series[one].module == module]


def _is_same(evidence: Evidence, column: int) -> bool:
    """Whether a tensor, measured whole, is not constant and has the same statistics at all steps that have it."""
    rows = evidence.is_there[:, column]
    is_whole = (evidence.column("count", column)[rows] == evidence.column("sampled", column)[rows]).all()
    is_varied = (evidence.column("std", column)[rows] > 0).all()
    values = evidence.telling([column])[:, rows]
    return bool(rows.any() and is_whole and is_varied and (values == values[:, :1]).all())


def _differs_from_start(evidence: Evidence, column: int) -> bool:
    """Whether a discriminator's input is another one at most steps, as data is and as what is generated is, too."""
    means = evidence.column("mean", column)
    means = means[np.isfinite(means)]
    return len(np.unique(means)) > len(means) / 2
