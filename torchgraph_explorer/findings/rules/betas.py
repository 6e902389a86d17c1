"""Finds betas of Adam with which its updates are not bounded, as where the two were swapped.

The evidence is the parameter groups that the live training recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.schema import ParameterGroup

FAMILY = {"Adam", "AdamW", "NAdam", "RAdam", "SparseAdam"}
"""Classes of optimizers whose betas mean what Adam's do."""


def betas_swapped(evidence: Evidence) -> Iterator[Finding]:
    """Adam averages gradients over so many more steps than their squares that it need not converge.

    The condition for convergence that is violated is that of theorem 4.1 in Kingma and Ba, "Adam: A Method for
    Stochastic Optimization" (2015): `beta1 ** 2 / sqrt(beta2) < 1`.
    """
    rows = rows_with(evidence, lambda facts: any(map(_is_unbounded, facts.groups)))
    if not rows:
        return
    group = next(filter(_is_unbounded, facts_at(evidence, rows[0]).groups))
    first, second = group.betas or (0.0, 0.0)
    yield finding(
        evidence,
        "betas-swapped",
        "warning",
        at=None,
        rows=rows,
        numbers={"beta1": first, "beta2": second},
        text=f"{group.optimizer} has betas=({first:g}, {second:g}): it averages the gradients over many more steps "
        "than their squares, so its updates are not bounded by the learning rate.",
        advice="The first beta is for the mean of the gradients, and the second for the mean of their squares. The "
        "default is (0.9, 0.999).",
    )


def _is_unbounded(group: ParameterGroup) -> bool:
    """Whether the betas of a group violate the condition, with the first one above the second."""
    if group.betas is None or group.optimizer.partition(" ")[0] not in FAMILY:
        return False
    first, second = group.betas
    return 0 < second < first < 1 and first**2 >= sqrt(second)
