"""Finds a loss that takes probabilities for their logarithms: `nll_loss(softmax(logits))`, or `kl_div` of a softmax.

The evidence is the logged loss, which is negative, and the gradients at the model's output.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.loss import LEAST_TO_DIVERGE, judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    classes_and_positions,
    is_softmax,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding
from torchgraph_explorer.findings.rules.softmax import softmax_before_loss

LEAST_CLASSES = 3
"""Fewest classes of an output that is looked at."""

EXACT = 2e-3
"""Largest relative difference between the logged loss and that of a divergence; and how far below zero rounding may put
a target."""


def taken_for_others(evidence: Evidence) -> Iterator[Finding]:
    """The loss takes probabilities for logits or for their logarithms, at the model's outputs or within the loss."""
    yield from softmax_before_loss(evidence)
    found = [*logarithm_missing(evidence)]
    yield from found or divergence_of_probabilities(evidence)


def logarithm_missing(evidence: Evidence) -> Iterator[Finding]:
    """The logged loss is minus the probability of the right class, and the gradients at the logits fit.

    Such a loss begins as minus one over the number of classes, and does not get below minus one. The gradient of a
    probability p is p times that of its logarithm: at first it is shorter than that of a cross entropy by a factor of
    the number of classes, and its norm is at most `sqrt(2) * p * (1 - p)`.
    """
    loss = judged(evidence)
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE or loss.values.max() >= 0 or loss.values.min() < -1 - EQUAL:
        return
    for series, info, column, norms in trained_outputs(evidence):
        if is_softmax(evidence, column, info):
            continue
        _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
        lengths = (evidence.column("mean", norms) * samples_of(evidence, info, column))[rows].astype(np.float64)
        known = np.isfinite(lengths)
        rows, lengths, probabilities = rows[known], lengths[known], -loss.values[values[known]]
        if len(rows) < LEAST_ROWS:
            continue
        for classes, positions in classes_and_positions(info):
            scaled = lengths * math.sqrt(positions)
            expected = math.sqrt(1 - 1 / classes) / classes
            begins_equal = abs(probabilities[0] * classes - 1) < AS_EXPECTED
            is_short = abs(scaled[0] / expected - 1) < 2 * AS_EXPECTED
            most = probabilities * np.maximum(1 - probabilities, EQUAL) * math.sqrt(2) * (1 + AS_EXPECTED)
            if classes >= LEAST_CLASSES and begins_equal and is_short and (scaled < most).all():
                yield finding(
                    evidence,
                    "softmax-before-loss",
                    "warning",
                    at=series,
                    rows=rows,
                    numbers={"steps": len(rows), "classes": classes},
                    text="The loss is minus the probability of the right class, not minus its logarithm: it begins as "
                    f"{-probabilities[0]:.3g}, with {classes} classes, and its gradients are short. The samples that "
                    "are answered most wrongly teach the model least.",
                    advice="Hand the logits to `cross_entropy`, or use `log_softmax` instead of `softmax` before "
                    "`nll_loss` or `kl_div`.",
                )
                break


def divergence_of_probabilities(evidence: Evidence) -> Iterator[Finding]:
    """The logged loss is `kl_div` of probabilities where it takes their logarithms, as it is negative.

    The live training computed its value for each reduction of `kl_div`, from the targets that the gradients tell.
    """
    loss = judged(evidence)
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE or loss.values.min() >= 0:
        return
    known = dict(zip(loss.steps.tolist(), loss.values.tolist(), strict=True))
    seen = numbers_of(evidence, "divergence")
    seen = [(row, numbers) for row, numbers in seen if int(evidence.steps[row]) in known]
    if len(seen) < LEAST_ROWS:
        return
    for reduction in range(0, 6, 2):  # sum, mean over the samples, mean over all elements: each with its value first
        values = [(known[int(evidence.steps[row])], *numbers[reduction : reduction + 2]) for row, numbers in seen]
        if all(
            abs(logged - expected) < EXACT * abs(logged) and least_target > -EXACT
            for logged, expected, least_target in values
        ):
            yield finding(
                evidence,
                "softmax-before-loss",
                "warning",
                at="",
                rows=[row for row, _ in seen],
                numbers={"first": values[0][0]},
                text="The loss is a `kl_div` that is given probabilities where it takes their logarithms: it is "
                f"{values[0][0]:.3g} at first, and a divergence is never negative. What is answered most wrongly "
                "teaches least.",
                advice="Hand `log_softmax(logits)` to `kl_div`, and the probabilities of the targets as they are.",
            )
            return
