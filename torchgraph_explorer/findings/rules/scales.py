"""Finds targets in units that the outputs of a network would take very long to reach.

The evidence is a logged squared error that stays far larger than the square of the outputs; or targets that no output
comes near, by the gradients at the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import is_rewarded, need_not_fall
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_of, rows_with
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

LEAST_UPDATES, LEAST_LATE = 100, 3
"""Fewest steps after which outputs should be among their targets, and fewest recorded ones of the second half."""

STAY = 0.5
"""Largest range of the middle of the targets over the steps, over how far the outputs have moved: numbers that are
computed as targets from the gradients of other losses move with the outputs."""

ROUNDING = 1e-5
"""Least range of targets that differ, over their magnitude: below it, the difference may be rounding."""


def targets_not_scaled(evidence: Evidence) -> Iterator[Finding]:
    """The targets are on another scale than the outputs."""
    yield from _divided_twice(evidence)
    found = [*_far_away(evidence)]
    yield from found or _beyond_all_outputs(evidence)


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


def _beyond_all_outputs(evidence: Evidence) -> Iterator[Finding]:
    """In the second half of the steps, all targets are on one side of all outputs, by more than their own range.

    So the network has not even learned their mean. The targets are those of a mean squared error, which stay where they
    are while the outputs move.
    """
    output = next(trained_outputs(evidence), None)
    rows = np.array(rows_with(evidence, lambda facts: facts.targets is not None), np.intp)
    steps = evidence.steps[rows]
    if output is None or len(rows) < LEAST_LATE or steps[-1] - steps[0] < LEAST_UPDATES:
        return
    if need_not_fall(evidence) or is_rewarded(evidence):  # what a critic has to answer moves while it learns
        return
    low, high = np.array([facts_at(evidence, row).targets for row in rows.tolist()]).T
    least, most, means = (
        evidence.column(name, output.column)[rows].astype(np.float64) for name in ("min", "max", "mean")
    )
    is_late = 2 * steps >= steps[0] + steps[-1]
    ranges, middles = high - low, (high + low) / 2
    stay = np.ptp(middles) < STAY * abs(means[-1] - means[0])
    vary = (ranges > ROUNDING * np.abs(middles)).all()  # not one label for all samples, as a discriminator may have
    gaps = np.maximum(low - most, least - high)[is_late] / ranges[is_late]
    if not stay or not vary or len(gaps) < LEAST_LATE or not (gaps > 1).all():
        return
    yield finding(
        evidence,
        "targets-not-scaled",
        "warning",
        at=output.series,
        rows=rows,
        numbers={"low": float(low.min()), "high": float(high.max()), "gap": float(gaps[-1])},
        text=f"The targets are between {low.min():.4g} and {high.max():.4g}. The mean output has only come from "
        f"{means[0]:.3g} to {means[-1]:.3g} in {steps[-1] - steps[0]} steps, and is still {gaps[-1]:.3g} times the "
        "range of the targets away. Until it is there, the network learns nothing but this distance.",
        advice="Subtract the mean of the training targets and divide by their standard deviation; turn that "
        "back only to show or use predictions.",
    )
