"""A softmax over one class, which is always right: a loss of zero that teaches nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import Flags, finding

LEAST_STEPS = 4
"""Recorded steps at which the gradient has to be zero."""


def single_class(evidence: Evidence) -> Iterator[Finding]:
    """The model gives one number for each sample, and a loss whose gradient is zero from the first step to the last.

    A second critic may be the larger one of two at each sample of an actor's loss. What trains it, which may be a call
    of its `forward`, reaches its parameters.
    """
    loss = judged(evidence)
    is_trained: Flags = np.any(evidence.peaks[:, evidence.of_kind("grad", "param")] > 0, axis=1)
    for one, info, column, norms in trained_outputs(evidence):
        longest = evidence.column("max", norms)
        rows = np.flatnonzero(np.isfinite(longest))
        has_one = len(info.shape) > 1 and info.shape[1] == 1
        is_zero = loss is None or not len(loss.values) or not loss.values.any()
        if not has_one or not is_zero or len(rows) < LEAST_STEPS or longest[rows].any() or is_trained[rows].any():
            continue
        yield finding(
            evidence,
            "single-class",
            "error",
            at=one,
            rows=rows,
            numbers={"steps": len(rows), "largest_output": float(np.nanmax(evidence.peaks[:, column]))},
            text=f"The model's output {_sizes(info.shape)} has one class, and the gradient that comes back is zero at "
            "each step: a softmax over one class is always 1, so a loss such as `cross_entropy` is zero whatever the "
            "model gives.",
            advice="For two classes, use `binary_cross_entropy_with_logits` with one output, or `cross_entropy` with "
            "two. For a regression, use a squared error.",
        )


def _sizes(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join('n' if size is None or not at else str(size) for at, size in enumerate(shape))}]"
