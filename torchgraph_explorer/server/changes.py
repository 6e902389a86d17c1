"""`api/changes` and `api/related`: what changed at a step, and what moves with something. See http_api.md."""

from __future__ import annotations

import math
from typing import Any

from torchgraph_explorer.findings.changes import Change, find_changes
from torchgraph_explorer.findings.measures import size_text
from torchgraph_explorer.findings.relations import Relation, find_related
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Series

Json = dict[str, Any]

MOST_RANKED = 100
"""Series that are sent; the first ones."""


def changes_answer(model: ModelRecord, step: int, since: int | None) -> Json:
    """`api/changes`."""
    found = find_changes(model, step, since)
    return {
        "step": found.step,
        "since": found.since,
        "usual": _number(found.usual),
        "ranked": [_change(one) for one in found.ranked[:MOST_RANKED]],
        "count": len(found.ranked),
    }


def related_answer(model: ModelRecord, target: Series | str) -> Json:
    """`api/related`."""
    found = find_related(model, target)
    return {
        "target": found.target,
        "chance": found.chance,
        "steps": found.steps,
        "spacing": found.spacing,
        "ranked": [_relation(one) for one in found.ranked[:MOST_RANKED]],
        "count": len(found.ranked),
        "beyond_chance": sum(one.is_beyond_chance for one in found.ranked),
    }


def _change(one: Change) -> Json:
    is_distance = one.measure == "distribution"
    before, now = (
        (f"{value:.2g}" if is_distance else size_text(one.measure, value)) for value in (one.before, one.now)
    )
    return {
        "series": series_json(one.series),
        "score": one.score,
        "measure": one.measure,
        "before": before,
        "now": now,
        "distance": _number(one.distance),
    }


def _relation(one: Relation) -> Json:
    return {
        "series": series_json(one.series),
        "correlation": one.correlation,
        "ahead": one.ahead,
        "is_beyond_chance": one.is_beyond_chance,
    }


def series_json(one: Series) -> Json:
    """The names of a series."""
    return {"module": one.module, "call": one.call, "role": one.role, "path": one.path, "kind": one.kind}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
