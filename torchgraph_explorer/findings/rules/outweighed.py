"""Finds tasks whose loss hardly counts beside that of another task, in the layers that both share.

The evidence is the gradients that come back through each head to the tensor that all heads take.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding, named

OUTWEIGHED = 1000.0
"""Least ratio of the gradients that two heads pass back. Where weights are chosen with care, a small part of a loss is
a hundredth or so of the rest."""

LEAST_STEPS = 8
"""Fewest recorded steps with both gradients."""

QUARTERS = 4
"""The ratio has to be so large in the first and in the last of these parts of the run, in the median: a task that is
solved has small gradients later."""


class _Head(NamedTuple):
    """A module that makes an output of the model from what other heads take as well.

    Attributes:
        module: Its name.
        taken: The column of the values of its first input.
        passed: The column of the gradient norms that come back through it.
    """

    module: str
    taken: int
    passed: int


def loss_outweighed(evidence: Evidence) -> Iterator[Finding]:
    """The gradient of one head is far smaller than that of another, from the first steps to the last ones."""
    if need_not_fall(evidence):
        return
    heads = _heads(evidence)
    norms = evidence.matrix("mean").astype(np.float64)
    means = {head: evidence.column("mean", head.taken) for head in heads}
    for small in heads:
        for large in heads:
            if small == large or not np.array_equal(means[small], means[large], equal_nan=True):
                continue
            low, high = norms[:, small.passed], norms[:, large.passed]
            rows = np.flatnonzero((low > 0) & (high > 0) & np.isfinite(low) & np.isfinite(high))
            if len(rows) < LEAST_STEPS:
                continue
            ratios = high[rows] / low[rows]
            part = len(rows) // QUARTERS
            if min(np.median(ratios[:part]), np.median(ratios[-part:])) < OUTWEIGHED:
                continue
            ratio = float(np.median(ratios))
            yield finding(
                evidence,
                "loss-outweighed",
                "warning",
                at=small.module,
                rows=rows,
                numbers={"ratio": ratio},
                text=f"The gradient that comes back through {named(small.module)} to what it shares with "
                f"{named(large.module)} is {ratio:.2g} times smaller, from the first steps on: the shared layers learn "
                f"next to nothing for {named(small.module)}.",
                advice="Give the parts of the loss weights that make their gradients alike, or scale the targets of "
                "the larger one: subtract their mean and divide by their standard deviation.",
            )
            return


def _heads(evidence: Evidence) -> list[_Head]:
    """The outermost modules that give outputs of the model which get a gradient, and which no other module takes."""
    places, found = evidence.places, []
    is_taken = {source for before in places.sources.values() for source in before}
    for output in trained_outputs(evidence):
        means = evidence.column("mean", output.column)
        for number, call in enumerate(places.calls):
            if not call.module or number in is_taken or not call.inputs:
                continue
            made = evidence.find(call.module, call.call, "output", "output")
            if made is None or not np.array_equal(evidence.column("mean", made), means, equal_nan=True):
                continue
            path = call.inputs[0].path
            taken = evidence.find(call.module, call.call, "input", path)
            passed = evidence.find(call.module, call.call, "input", path, "grad_norm")
            if taken is not None and passed is not None:
                found.append(_Head(call.module, taken, passed))
            break
    return found
