"""A loss that takes the probabilities of logits for their logarithms: `nll_loss(softmax(logits))`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.heads import (
    AS_EXPECTED,
    EQUAL,
    classes_and_positions,
    is_softmax,
    samples_of,
    softmax_before_loss,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.loss import LEAST_TO_DIVERGE, judged
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding

LEAST_CLASSES = 3


def taken_for_others(evidence: Evidence) -> Iterator[Finding]:
    """The loss takes probabilities for logits or logarithms, at the model's outputs or within the loss."""
    yield from softmax_before_loss(evidence)
    yield from logarithm_missing(evidence)


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
