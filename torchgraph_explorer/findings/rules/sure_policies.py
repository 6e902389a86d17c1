"""Finds policies that are sure of one action in every state soon after they begin to learn.

The evidence is the gradient at the logits, which is gone although the logits are large.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import is_rewarded, tell_of_rewards
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, held

GONE = 1e-6
"""Largest gradient of a batch at the logits of a policy that is sure, over the largest at first."""

LEAST_LOGIT = 7.0
"""Least magnitude of logits that may make a probability of `GONE`: two of opposite sign are 14 apart."""

HELD = 0.5
"""Least share of the training, up to its end, over which the gradient is gone."""

LEAST_STEPS = 4
"""Fewest recorded steps at which it is gone."""


def policy_is_sure(evidence: Evidence) -> Iterator[Finding]:
    """The softmax of a policy gives one action all of the probability for half of the training or more.

    A network that learns from labels may well end so. Where rewards teach, what is never tried is never learned.
    """
    if not (tell_of_rewards(evidence.scalars) or is_rewarded(evidence)):
        return
    for output in trained_outputs(evidence):
        if len(output.info.shape) != 2 or (output.info.shape[1] or 0) < 2:  # two actions
            continue
        most = evidence.column("max", output.norms).astype(np.float64)
        rows = np.flatnonzero(np.isfinite(most))
        first = float(most[rows[:LEAST_ROWS]].max(initial=0))
        is_large = evidence.peaks[rows, output.column] > LEAST_LOGIT
        kept = held((most[rows] <= GONE * first) & is_large, evidence.steps[rows], share=HELD)
        if kept is None or len(kept) < LEAST_STEPS or not first > 0:
            continue
        seen = rows[kept]
        yield finding(
            evidence,
            "saturated-activation",
            "info",
            at=output.series,
            rows=seen,
            numbers={"gradient": float(most[seen].max()), "first_gradient": first, "steps": len(seen)},
            text="The policy gives one action all of the probability, in every state of the batches that were "
            f"recorded from step {evidence.steps[seen[0]]} on: the gradient at its logits is {most[seen].max():.1g}, "
            f"after {first:.1g} at first. It tries nothing else, and learns nothing more.",
            advice="If the rewards are not yet what they could be, lower the learning rate, add the entropy of the "
            "actions to the loss, or subtract a baseline from the returns.",
        )
        return
