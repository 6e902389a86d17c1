"""Finds targets in units that the outputs of a network would take very long to reach.

The evidence is a logged squared error that stays far larger than the square of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.loss import is_flat, judged
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.findings.rules.targets import squared_errors

FAR = 30.0
"""Least root mean squared error over the root mean square of the outputs, at all steps of the second half."""

DEAD = 0.5
"""Least share of zeros in outputs that may be those of a dead ReLU, which are not reported."""


LEAST_STEPS = 3
"""Fewest of the first recorded steps that show the labels of a binary cross entropy."""

NEAR = 2e-5
"""Largest difference, which is rounding, of labels that are equal."""

SMALLEST, LARGEST = 1e-3, 0.02
"""Between these lies the largest label of a mask that was divided once too often, as by 255."""

BYTE = 255
"""The largest number of a byte, which masks and images have for 1."""

VARIED = 0.005
"""Least standard deviation of the outputs, far above `NEAR`, so that labels which are all near zero are no chance."""


def targets_not_scaled(evidence: Evidence) -> Iterator[Finding]:
    """The targets are on another scale than the outputs."""
    yield from _divided_twice(evidence)
    yield from _far_away(evidence)


def _divided_twice(evidence: Evidence) -> Iterator[Finding]:
    """The labels of a binary cross entropy are 0 and a number far below 1."""
    output = next(trained_outputs(evidence), None)
    seen = numbers_of(evidence, "binary")
    if output is None or len(seen) < LEAST_STEPS:
        return
    spreads = evidence.column("std", output.column)
    for first in (0, 3):  # logits, probabilities
        labels = [numbers[first : first + 3] for _, numbers in seen]
        highest = [high for _, high, _ in labels]
        is_small = all(abs(low) < NEAR and SMALLEST < high < LARGEST for low, high, _ in labels)
        is_one_scale = max(highest) - min(highest) < NEAR
        is_mask = all(between < NEAR for *_, between in labels) or abs(max(highest) * BYTE - 1) < BYTE * NEAR
        if is_small and is_one_scale and is_mask and all(spreads[row] > VARIED for row, _ in seen):
            yield finding(
                evidence,
                "targets-not-scaled",
                "warning",
                at=output.series,
                rows=[row for row, _ in seen],
                numbers={"largest_target": highest[0]},
                text=f"The labels of a binary cross entropy go from 0 to {highest[0]:.3g}, and not to 1: the model "
                "learns to answer 0 everywhere.",
                advice="Look for a division that is made twice, as by 255: a loader may already have scaled the masks "
                "to 0–1.",
            )
            return


def _far_away(evidence: Evidence) -> Iterator[Finding]:
    """The squared error stays where it began, and is that of targets far larger than what the model gives."""
    loss = judged(evidence)
    if loss is None or not is_flat(loss):
        return
    for series, _, column, norms in trained_outputs(evidence):
        errors = squared_errors(evidence, column, norms)
        if errors is None:
            continue
        half = len(errors.rows) // 2
        late, error = errors.rows[half:], float(np.sqrt(errors.values[half:].min()))
        size = float(np.median(evidence.rms[late, column]))
        zeros = float(np.median(evidence.zero_shares[late, column]))
        if error > FAR * size > 0 and zeros < DEAD:
            yield finding(
                evidence,
                "targets-not-scaled",
                "warning",
                at=series,
                rows=errors.rows,
                numbers={"root_mean_squared_error": error, "rms": size},
                text=f"The outputs have a root mean square of {size:.3g}, and the targets are {error:.3g} or more away "
                "from them. At this learning rate, the network would take very long to get to their scale.",
                advice="Subtract the mean of the training targets and divide by their standard deviation; turn that "
                "back only to show or use predictions.",
            )
