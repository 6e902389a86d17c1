"""Finds frozen layers that were never trained.

The evidence is that their weights have the distribution that torch initialises new layers with.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight, dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.made import is_as_made
from torchgraph_explorer.findings.rules.optimizer import is_changed
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named

_NORMALISATIONS = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm", "GroupNorm"})
"""Classes of layers whose weights are new as ones."""

LEAST_LAYERS = 2
"""Fewest frozen layers with initial weights that are no chance."""


def frozen_untrained(evidence: Evidence) -> Iterator[Finding]:
    """All frozen layers have the weights that torch gives to new ones, so no trained weights were loaded.

    Random features that nothing trains may be meant, so the severity is `info`; but not that no matrix is trained at
    all, and only biases or scales are; nor a whole network with frozen normalisations before a head that is trained.
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
    is_backbone = len(frozen) < len(weights) and _is_backbone(evidence, weights)
    yield finding(
        evidence,
        "frozen-untrained",
        "warning" if len(frozen) == len(weights) or is_backbone else "info",
        at=first,
        rows=rows,
        numbers={"layers": len(frozen), "trained": len(weights) - len(frozen)},
        text=f"{len(frozen)} layers, from {named(first)} on, are frozen, and their weights are distributed as in new "
        "layers: they were never trained."
        + (" Only biases, scales or the like are trained." if len(frozen) == len(weights) else "")
        + (" All that is trained comes after them, and learns from random features." if is_backbone else ""),
        advice="Load the trained weights before freezing them, and check that all keys were found "
        "(`strict=True`). If they are to be trained, set `requires_grad_(True)`.",
    )


def _is_backbone(evidence: Evidence, weights: list[Weight]) -> bool:
    """Whether all trained matrices come after the frozen ones, and normalisations among these are frozen as well.

    Their scales are as they were made. A backbone is frozen so when a checkpoint was loaded, and random features have
    mostly none. Trained layers between frozen ones may be adapters, and a network that is frozen as a whole a target.
    """
    places = evidence.places
    frozen = [weight.module.name for weight in weights if not weight.info.requires_grad]
    trained = [weight.module.name for weight in weights if weight.info.requires_grad]
    first = min(map(places.order, trained))
    if max(map(places.order, frozen)) > first:
        return False
    scales = [
        evidence.find(name, None, "param", "weight")
        for name in places.called
        if places.class_of(name) in _NORMALISATIONS and places.order(name) < first
    ]
    is_new = [column is not None and _is_one(evidence, column) for column in scales]
    return bool(is_new) and all(is_new)


def _is_one(evidence: Evidence, column: int) -> bool:
    """Whether all elements of a parameter are 1 at all steps."""
    low, high = (evidence.column(name, column) for name in ("min", "max"))
    return bool((low == 1).all() and (high == 1).all())
