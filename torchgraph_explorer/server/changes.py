"""`api/changes` and `api/related`: what changed at a step, and what moves with something. See http_api.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.changes import Change, find_changes
from torchgraph_explorer.findings.cooccurrence import (
    Condition,
    CoOccurrence,
    CoOccurrences,
    FindingRate,
    find_conditional,
    find_cooccurrences,
)
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


def cooccurrences_answer(model: ModelRecord, first: int, last: int, *, findings: Sequence[Finding]) -> Json:
    """`api/related` for the steps of a finding."""
    name = f"What is asked about, from step {first} to {last},"
    return _cooccurrences(find_cooccurrences(model, first, last, name=name, findings=findings))


def conditional_answer(model: ModelRecord, condition: Condition, findings: Sequence[Finding]) -> Json:
    """`api/related` for the steps at which a condition holds."""
    return _cooccurrences(find_conditional(model, condition, findings))


def _cooccurrences(found: CoOccurrences) -> Json:
    return {
        "chance": found.chance,
        "steps": found.steps,
        "others": found.others,
        "ranked": [_cooccurrence(one) for one in found.ranked[:MOST_RANKED]],
        "count": len(found.ranked),
        "beyond_chance": sum(one.is_beyond_chance for one in found.ranked),
        "findings": [_rate(one) for one in found.findings],
    }


def _rate(one: FindingRate) -> Json:
    finding = one.finding
    return {
        "kind": finding.kind,
        "module": finding.module,
        "call": finding.call,
        "path": finding.path,
        "step": finding.step,
        "last_step": finding.last_step,
        "share": one.share,
        "elsewhere": one.elsewhere,
        "chance": one.chance,
        "is_beyond_chance": one.is_beyond_chance,
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
        **_named(one.what),
        "correlation": one.correlation,
        "ahead": one.ahead,
        "is_beyond_chance": one.is_beyond_chance,
    }


def _cooccurrence(one: CoOccurrence) -> Json:
    return {
        **_named(one.what),
        "measure": one.measure,
        "score": one.score,
        "share": one.share,
        "elsewhere": one.elsewhere,
        "ahead": one.ahead,
        "is_beyond_chance": one.is_beyond_chance,
    }


def _named(what: Series | str) -> Json:
    """A series by its names, or a scalar by its name."""
    return {"scalar": what} if isinstance(what, str) else {"series": series_json(what)}


def series_json(one: Series) -> Json:
    """The names of a series."""
    return {"module": one.module, "call": one.call, "role": one.role, "path": one.path, "kind": one.kind}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
