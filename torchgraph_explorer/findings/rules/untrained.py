"""Finds frozen layers that were never trained.

The evidence is that their weights have the distribution that torch initialises new layers with.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.made import is_as_made
from torchgraph_explorer.findings.rules.optimizer import is_changed
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named

LEAST_LAYERS = 2
"""Fewest frozen layers with initial weights that are no chance."""


def frozen_untrained(evidence: Evidence) -> Iterator[Finding]:
    """All frozen layers have the weights that torch gives to new ones, so no trained weights were loaded.

    Random features that nothing trains may be meant, so the severity is `info`; but not that no matrix is trained at
    all, and only biases or scales are.
    """
    places = evidence.places
    weights = [
        weight for weight in places.weights() if dimensions(weight.info) > 1 and weight.module.name in places.called
    ]
    frozen = [weight for weight in weights if not weight.info.requires_grad]
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    is_trained = any(group.parameters for row in rows for group in facts_at(evidence, row).groups)
    if len(frozen) < LEAST_LAYERS or len(rows) < LEAST_ROWS or not is_trained:
        return
    for weight in frozen:
        if not is_as_made(evidence, weight) or is_changed(evidence, weight.module.name, weight.info.path):
            return
    first = min((weight.module.name for weight in frozen), key=places.order)
    yield finding(
        evidence,
        "frozen-untrained",
        "warning" if len(frozen) == len(weights) else "info",
        at=first,
        rows=rows,
        numbers={"layers": len(frozen), "trained": len(weights) - len(frozen)},
        text=f"{len(frozen)} layers, from {named(first)} on, are frozen, and their weights are distributed as in new "
        "layers: they were never trained."
        + (" Only biases, scales or the like are trained." if len(frozen) == len(weights) else ""),
        advice="Load the trained weights before freezing them, and check that all keys were found "
        "(`strict=True`). If they are to be trained, set `requires_grad_(True)`.",
    )
