"""Finds two optimizers that change the same weights in one step.

The evidence is the names in the parameter groups of the optimizers that made each update.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding
from torchgraph_explorer.schema import TrainingFacts

ALONE = frozenset({"SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "ASGD"})
"""Classes of torch's optimizers. Others may wrap one of these and share its parameters, and step it."""

OFTEN = 0.9
"""Least share of the recorded updates that two such optimizers make."""


def updated_twice(evidence: Evidence) -> Iterator[Finding]:
    """All parameters of one optimizer are in another one, too, and both step with the same gradients."""
    known = rows_with(evidence, lambda facts: bool(facts.groups))
    rows = [row for row in known if _both(facts_at(evidence, row))]
    if len(rows) < max(LEAST_ROWS, OFTEN * len(known)):
        return
    first, second, shared = _both(facts_at(evidence, rows[0])) or ("", "", 0)
    yield finding(
        evidence,
        "updated-twice",
        "warning",
        at=None,
        rows=rows,
        numbers={"parameters": shared},
        text=f"Two optimizers, {first} and {second}, both step at each update, and {shared} parameters are in both of "
        "them: each is changed twice with the same gradient.",
        advice="Give each optimizer parameters of its own, such as `model.body.parameters()` and "
        "`model.head.parameters()`, or use one optimizer with two groups.",
    )


def _both(facts: TrainingFacts) -> tuple[str, str, int] | None:
    """The names of two optimizers of which one holds all parameters of the other, and their number; None if none do."""
    held: dict[str, set[str]] = {}
    for group in facts.groups:
        if group.optimizer.partition(" ")[0] in ALONE and (group.learning_rate or 0) > 0:
            held.setdefault(group.optimizer, set()).update(group.parameters)
    for (first, ours), (second, theirs) in combinations(held.items(), 2):
        shared = ours & theirs
        if shared and len(shared) == min(len(ours), len(theirs)):
            return first, second, len(shared)
    return None
