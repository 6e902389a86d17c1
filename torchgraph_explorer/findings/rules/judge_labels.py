"""Finds a discriminator that is taught the same label for data and for what a generator made.

The evidence is the gradients at its outputs, which tell the label of each batch exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.judge_sigmoids import EXACT, PARTS, VARIED
from torchgraph_explorer.findings.rules.judges import Pair, outputs_of, pairs_of, updates_of
from torchgraph_explorer.findings.rules.outputs import lie_within
from torchgraph_explorer.findings.rules.rule import finding, named

LEAST_STEPS = 4
"""Fewest recorded updates of the discriminator at which the labels of both are known."""

Floats = npt.NDArray[np.float64]


def same_label_for_both(evidence: Evidence) -> Iterator[Finding]:
    """At all updates of a discriminator, data and what was generated have the same label of a binary cross entropy."""
    for pair in pairs_of(evidence):
        judge, maker, _ = pair
        rows = sorted(updates_of(evidence, judge) - updates_of(evidence, maker))
        labels = [one for row in rows for one in _labels(evidence, pair, row)]
        if len(labels) < LEAST_STEPS or len({label for both in labels for label in both}) != 1:
            continue
        yield finding(
            evidence,
            "one-class-batches",
            "warning",
            at=judge,
            rows=rows,
            numbers={"steps": len(labels), "label": labels[0][0]},
            text=f"At all {len(labels)} updates of {named(judge)} whose gradients tell the labels, data and what "
            f"{named(maker)} made have the same label, {labels[0][0]:g}: it learns to give one answer to all, and "
            f"{named(maker)} learns nothing from it.",
            advice="Give the discriminator labels of 1 for data and of 0 for what was generated, or the other way "
            "round. Only the generator's own loss has the label of data for what it made.",
        )


def _labels(evidence: Evidence, pair: Pair, row: int) -> Iterator[tuple[float, float]]:
    """The label of data, and of what was made, at an update of the discriminator, if all its calls tell them."""
    made = [float(evidence.column("mean", column)[row]) for column in outputs_of(evidence, pair.maker)]
    found: dict[bool, set[float]] = {False: set(), True: set()}
    for column in outputs_of(evidence, pair.judge):
        series = evidence.series[column]
        norms = evidence.find(series.module, series.call, series.role, series.path, "grad_norm")
        if norms is None or not evidence.is_there[row, norms]:
            continue
        given = evidence.find(series.module, series.call, "input", "input[0]")
        is_made = given is not None and float(evidence.column("mean", given)[row]) in made
        found[is_made].add(_label(evidence, column, norms, row))
    if all(len(labels) == 1 and not np.isnan([*labels]).any() for labels in found.values()):
        yield next(iter(found[False])), next(iter(found[True]))


def _label(evidence: Evidence, column: int, norms: int, row: int) -> float:  # noqa: PLR0917
    """The label of all samples of a batch, 0 or 1, by the smallest and the largest gradient; NaN if it is not told."""
    low, high, count, sampled = (
        evidence.column(name, column)[row].astype(np.float64) for name in ("min", "max", "count", "sampled")
    )
    if count != sampled or high - low < VARIED:
        return float("nan")
    least, most = (float(evidence.column(name, norms)[row]) * count for name in ("min", "max"))
    with np.errstate(all="ignore"):
        if lie_within(evidence, column):  # the derivatives of logarithms of probabilities
            expected = {0.0: (1 / (1 - low), 1 / (1 - high)), 1.0: (1 / high, 1 / low)}
        else:
            wrong_low, wrong_high = (1 / (1 + np.exp(-one)) for one in (low, high))
            expected = {0.0: (wrong_low, wrong_high), 1.0: (1 - wrong_high, 1 - wrong_low)}
    told = [
        label
        for label, (first, last) in expected.items()
        for part in PARTS
        if abs(least - part * first) < EXACT * max(1.0, first) and abs(most - part * last) < EXACT * max(1.0, last)
    ]
    return told[0] if len({*told}) == 1 else float("nan")
