"""Finds a cross entropy with the wrong sign by the gradients at the model's output in the first recorded steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, operations
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.findings.rules.twice_by_gradient import LEAST_STEPS, VARIED

EXACT = 1e-3
"""Largest relative distance of the gradients from those of such a loss, and of its weights from those of a mean or a
sum: the difference is rounding."""


class _Weights(NamedTuple):
    """The smallest and the largest weight in a cross entropy, and how many places or elements have a gradient."""

    least: float
    most: float
    places: float

    def are(self, sign: int) -> bool:
        """Whether the loss is a mean or a sum, times `sign`."""
        return any(
            max(abs(sign * self.least * times - 1), abs(sign * self.most * times - 1)) < EXACT
            for times in (1, self.places)
        )


def negated_by_gradient(evidence: Evidence) -> Finding | None:
    """The gradients at the model's only output are exactly those of a cross entropy, and updates make it larger.

    Where there are several passes or outputs, one may be meant to be confused.
    """
    outputs = [*trained_outputs(evidence)]
    if len(outputs) != 1:
        return None
    path = outputs[0].series.path
    seen = [(row, _sign(one.numbers)) for row, one in operations(evidence, "sign") if one.module == path]
    rows = [row for row, sign in seen if sign is not None]
    ways = {(sign, _is_maximising(evidence, row)) for row, sign in seen if sign is not None}
    if len(rows) < LEAST_STEPS or ways not in ({(-1, False)}, {(1, True)}):
        return None
    is_loss = ways == {(-1, False)}
    return finding(
        evidence,
        "loss-negated",
        "error",
        at=None,
        rows=rows,
        numbers={"steps": len(rows)},
        text="The gradient that comes back to the model's output is that of a cross entropy"
        + (" with the wrong sign: it" if is_loss else ", and the optimizer has `maximize=True`: the update")
        + " makes the right answer less likely. The model learns to be as wrong as it can.",
        advice="Change the sign of the loss. A sum of logarithms of probabilities needs a minus before it."
        if is_loss
        else "Leave `maximize=True` out: it is for an objective that is to grow, and a loss is to fall.",
    )


def _is_maximising(evidence: Evidence, row: int) -> bool | None:
    """Whether all optimizers of an update go up the gradient; None if only some do, or the step has several passes."""
    step, groups = evidence.facts[row], facts_at(evidence, row).groups
    ways = {one.is_maximising for one in groups}
    return ways.pop() if step is not None and step.passes == 1 and len(ways) == 1 else None


def _sign(numbers: Sequence[float]) -> int | None:
    """The sign of a mean or summed cross entropy; 0 for another loss, and None if the step does not tell.

    Args:
        numbers: Those of an `Operation` of the kind `sign`.
    """
    off, *of_classes = numbers[:4]
    *of_labels, deviation = numbers[4:]
    if off < EXACT:
        weights = _Weights(*of_classes)
        return -1 if weights.are(-1) else int(weights.are(1))
    return (-1 if _Weights(*of_labels).are(1) else 0) if deviation > VARIED else None
