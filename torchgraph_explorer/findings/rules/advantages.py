"""Finds advantages that broadcast, so that each action of a batch is weighed by the mean advantage of all.

The evidence is the weights of the actions, which the live training inferred from the gradients at a policy's logits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, numbers_of
from torchgraph_explorer.findings.rules.outputs import sample_size, trained_outputs
from torchgraph_explorer.findings.rules.rule import finding

LEAST_STEPS = 3
"""Fewest of the first recorded steps whose weights are known."""

EXACT = 1e-3
"""Largest difference, which is rounding, of gradients from those of a policy's loss, and between the weights of a
batch; each over the largest."""

VARIES = 0.02
"""Least range of the weights of the steps over the largest. A cross entropy has the same weight at each step."""


def advantages_broadcast(evidence: Evidence) -> Iterator[Finding]:
    """All actions of a batch have the same weight, which goes up and down, while the model also gives values.

    Advantages `[n, 1]` and logarithms of probabilities `[n]` make `[n, n]` products, whose mean weighs each action by
    the mean advantage. With the values of a critic, no two samples have the same advantage. Without a critic, all steps
    of one episode may have its return as their weight.
    """
    seen = numbers_of(evidence, "policy")
    outputs = [*trained_outputs(evidence)] if len(seen) >= LEAST_STEPS else []
    if not any(sample_size(output.info) == 1 for output in outputs[1:]):
        return
    off, low, high = np.array([numbers for _, numbers in seen]).T
    largest = np.maximum(np.abs(low), np.abs(high))
    if not (off < EXACT).all() or not (high - low <= EXACT * largest).all():
        return
    samples = np.array([facts_at(evidence, row).batch_size or 1 for row, _ in seen])
    if not all(_goes_up_and_down(weights) for weights in (high, high * samples)):
        return
    yield finding(
        evidence,
        "targets-broadcast",
        "warning",
        at=outputs[0].series,
        rows=[row for row, _ in seen],
        numbers={"samples": float(np.median(samples)), "steps": len(seen)},
        text=f"All {np.median(samples):.0f} actions of a batch have the same weight in the policy's loss, another one "
        "at each step, though the model gives a value for each sample: the weight is the mean of all advantages. "
        "Advantages `[n, 1]` and logarithms of probabilities `[n]` broadcast to `[n, n]`. So no action is preferred to "
        "another one.",
        advice="Give both the same shape: `values.squeeze(-1)` before the advantages are computed. An assertion on the "
        "shapes finds the place.",
    )


def _goes_up_and_down(weights: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    """Whether the weights of the steps differ, and neither only rise nor only fall, as a schedule's do."""
    changes = np.diff(weights)
    differs = np.ptp(weights) > VARIES * np.abs(weights).max()
    return bool(differs and ((weights < 0).any() or ((changes > 0).any() and (changes < 0).any())))
