"""A loss that takes the probabilities of logits for their logarithms: `nll_loss(softmax(logits))`."""

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

EXACT = 2e-3
"""How near the logged loss comes to that of such a divergence, and how far targets may be below zero."""


def taken_for_others(evidence: Evidence) -> Iterator[Finding]:
    """The loss takes probabilities for logits or logarithms, at the model's outputs or within the loss."""
    yield from softmax_before_loss(evidence)
    found = [*logarithm_missing(evidence)]
    yield from found or divergence_of_probabilities(evidence)


def logarithm_missing(evidence: Evidence) -> Iterator[Finding]:
    """The logged loss is minus the probability of the right class, and the gradients at the logits are those of it.

    It begins as minus one over the number of classes, and does not get below minus one. The gradient of a probability p
    is p times that of its logarithm: at first it is shorter than that of a cross entropy by the number of classes, and
    never longer than p (1 - p) times the root of two.
    """
    loss = judged(evidence)
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE or loss.values.max() >= 0 or loss.values.min() < -1 - EQUAL:
        return
    for one, info, column, norms in trained_outputs(evidence):
        if is_softmax(evidence, column, info):
            continue
        _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
        lengths = (evidence.column("mean", norms) * samples_of(evidence, info, column))[rows].astype(np.float64)
        known = np.isfinite(lengths)
        rows, lengths, found = rows[known], lengths[known], -loss.values[values[known]]
        if len(rows) < LEAST_ROWS:
            continue
        for classes, positions in classes_and_positions(info):
            scaled = lengths * math.sqrt(positions)
            expected = math.sqrt(1 - 1 / classes) / classes
            begins_so = abs(found[0] * classes - 1) < AS_EXPECTED and abs(scaled[0] / expected - 1) < 2 * AS_EXPECTED
            most = found * np.maximum(1 - found, EQUAL) * math.sqrt(2) * (1 + AS_EXPECTED)
            if classes >= LEAST_CLASSES and begins_so and (scaled < most).all():
                yield finding(
                    evidence,
                    "softmax-before-loss",
                    "warning",
                    at=one,
                    rows=rows,
                    numbers={"steps": len(rows), "classes": classes},
                    text="The loss is minus the probability of the right class, not minus its logarithm: it begins as "
                    f"{-found[0]:.3g}, with {classes} classes, and its gradients are short. The samples that are "
                    "answered most wrongly teach the model least.",
                    advice="Hand the logits to `cross_entropy`, or use `log_softmax` instead of `softmax` before "
                    "`nll_loss` or `kl_div`.",
                )
                break


def divergence_of_probabilities(evidence: Evidence) -> Iterator[Finding]:
    """The logged loss is `kl_div` of a softmax where its logarithm is wanted, by what its gradients say of the targets.

    Such a loss is negative where a divergence cannot be.
    """
    loss = judged(evidence)
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE or loss.values.min() >= 0:
        return
    known = dict(zip(loss.steps.tolist(), loss.values.tolist(), strict=True))
    seen = numbers_of(evidence, "divergence")
    seen = [(row, numbers) for row, numbers in seen if int(evidence.steps[row]) in known]
    if len(seen) < LEAST_ROWS:
        return
    for reduction in range(0, 6, 2):
        values = [(known[int(evidence.steps[row])], *numbers[reduction : reduction + 2]) for row, numbers in seen]
        if all(abs(value - one) < EXACT * abs(value) and least > -EXACT for value, one, least in values):
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
