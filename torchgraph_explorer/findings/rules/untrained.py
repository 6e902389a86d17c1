"""Frozen layers that were never trained."""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import rows_with
from torchgraph_explorer.findings.rules.made import is_as_made
from torchgraph_explorer.findings.rules.optimizer import is_changed
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named

LEAST_LAYERS = 2
"""So many frozen layers, all of them as they were made, are no chance."""


def frozen_untrained(evidence: Evidence) -> Iterator[Finding]:
    """All frozen layers have the weights that torch gives to new ones: no trained weights were loaded.

    Random features that nothing trains may be meant, so it is no warning.
    """
    places = evidence.places
    weights = [one for one in places.weights() if dimensions(one.info) > 1 and one.module.name in places.called]
    frozen = [one for one in weights if not one.info.requires_grad]
    rows = rows_with(evidence, lambda one: bool(one.groups))
    if len(frozen) < LEAST_LAYERS or len(frozen) == len(weights) or len(rows) < LEAST_ROWS:
        return
    if not all(
        is_as_made(evidence, one) and not is_changed(evidence, one.module.name, one.info.path) for one in frozen
    ):
        return
    first = min((one.module.name for one in frozen), key=places.order)
    yield finding(
        evidence,
        "frozen-untrained",
        "info",
        at=first,
        rows=rows,
        numbers={"layers": len(frozen), "trained": len(weights) - len(frozen)},
        text=f"{len(frozen)} layers, from {named(first)} on, are frozen, and their weights are distributed as in new "
        "layers: they were never trained.",
        advice="Load the trained weights before freezing them, and check that all keys were found "
        "(`strict=True`). If they are to be trained, set `requires_grad_(True)`.",
    )
