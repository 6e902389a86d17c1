"""A comparison as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from torchgraph_explorer.comparison.divergence import Divergence
from torchgraph_explorer.comparison.models import Comparison, SeriesDifference
from torchgraph_explorer.comparison.scalars import ScalarDifference
from torchgraph_explorer.comparison.structure import Changed
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.report import plain
from torchgraph_explorer.schema import Series

SCHEMA = 1
"""Version of the JSON, docs/compare.md. It grows if a field changes its meaning or goes; new fields may come."""

MOST_NAMED = 10
"""The most entries of a list that a text names."""


def as_json(found: Comparison, *, most: int | None = None, with_findings: bool = True) -> dict[str, Any]:
    """The comparison as plain values, docs/compare.md; at most `most` of each list, series those that differ most."""
    steps, structure, scalars = found.steps, found.structure, found.scalars
    return {
        "schema": SCHEMA,
        "models": [found.a.name, found.b.name],
        "alignment": found.alignment,
        "steps": {"compared": len(steps), "recorded": [len(found.a), len(found.b)], **_ends(found)},
        "first_divergence": _divergence(found.first_divergence),
        "first_beyond_rounding": _divergence(found.first_beyond_rounding),
        "series": [_series_difference(one) for one in found.series[:most]],
        "series_compared": len(found.series),
        "structure": {
            "only_a": list(structure.only_a[:most]),
            "only_b": list(structure.only_b[:most]),
            "changed": [_changed(one) for one in structure.changed[:most]],
            "series_only_a": len(structure.series_only_a),
            "series_only_b": len(structure.series_only_b),
        },
        "scalars": {
            "both": [_scalar(one) for one in scalars.both[:most]],
            "only_a": list(scalars.only_a[:most]),
            "only_b": list(scalars.only_b[:most]),
        },
        "settings": [_changed(one) for one in found.settings[:most]],
        **(_findings(found) if with_findings else {}),
    }


def as_text(found: Comparison, names: tuple[str, str]) -> str:
    """The comparison for a terminal: what differs, in sections."""
    return "\n".join(_lines(found, names))


def _lines(found: Comparison, names: tuple[str, str]) -> Iterator[str]:
    yield f"a: {names[0]}"
    yield f"b: {names[1]}"
    yield ""
    yield _aligned(found)
    yield _verdict(found)
    yield from _structure_lines(found)
    differ = [one for one in found.series if one.first_different is not None or one.distance > 0 or one.gap > 0]
    yield from _section("Series that differ most", [_series_line(one) for one in differ])
    yield from _section("Scalars", [_scalar_line(one) for one in found.scalars.both if one.first_different is not None])
    for which, only in zip("ab", (found.scalars.only_a, found.scalars.only_b), strict=True):
        yield from _section(f"Scalars only in {which}", only)
    for which, findings in zip("ab", found.findings, strict=True):
        yield from _section(f"Findings only in {which}", [_finding_line(one) for one in findings])
    yield from _section("Settings and versions", [_changed_line(one) for one in found.settings])


def _aligned(found: Comparison) -> str:
    count = len(found.steps)
    match found.alignment:
        case "exact":
            if count == 1:
                return f"Compared the one step that both runs logged, {found.steps[0, 0]}.{_few_in_common(found)}"
            return f"Compared {count} steps that both runs logged, from {_span(found)}.{_few_in_common(found)}"
        case "nearest":
            return (
                f"No step was logged by both runs. Compared {count} steps of the run with fewer steps with the nearest "
                "steps of the other, so the first divergence cannot be found."
            )
        case _:
            return "Nothing was compared: a run has no steps."


def _few_in_common(found: Comparison) -> str:
    """What to do where most logged steps of the shorter run have no counterpart; empty where they have."""
    logged = len(found.a), len(found.b)
    if len(found.steps) >= min(logged) / 2:
        return ""
    return f" Run a logged {logged[0]} steps, run b {logged[1]}: with the same log_freq, more of them can be compared."


def _span(found: Comparison) -> str:
    return f"{found.steps[0, 0]} to {found.steps[-1, 0]}"


def _verdict(found: Comparison) -> str:
    if found.alignment != "exact":
        return "First divergence: unknown."
    first, beyond = found.first_divergence, found.first_beyond_rounding
    if first is None:
        return f"No difference in {len(found.series)} series."
    if first.is_rounding and beyond is not None:
        return f"First divergence: {first.text}\nBeyond rounding: {beyond.text}"
    return f"First divergence: {first.text} {first.differing} of {first.compared} series differ at that step."


def _structure_lines(found: Comparison) -> Iterator[str]:
    structure = found.structure
    for which, names, series in (
        ("a", structure.only_a, structure.series_only_a),
        ("b", structure.only_b, structure.series_only_b),
    ):
        yield from _section(f"Modules only in {which}", names)
        yield from _section(f"Series only in {which}", [series_name(one) for one in series])
    yield from _section("Modules that differ", [_changed_line(one) for one in structure.changed])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield f"{title} ({len(lines)}):" if len(lines) > 1 else f"{title}:"
    yield from (f"  {line}" for line in lines[:MOST_NAMED])
    if len(lines) > MOST_NAMED:
        yield f"  and {len(lines) - MOST_NAMED} more"


def series_name(series: Series) -> str:
    """A series in words."""
    call = f" (call {series.call + 1})" if series.call else ""
    return f"{series.module or 'the model'}{call} {series.path} {series.kind}"


def _series_line(one: SeriesDifference) -> str:
    since = "" if one.first_different is None else f", since step {one.first_different}"
    other = "" if one.other.module == one.series.module else f" (b: {one.other.module})"
    gap = _share(one.gap, bad="with different numbers of NaN or infinity")
    return f"{series_name(one.series)}{other}: distance {one.distance:.3g}, statistics {gap}{since}"


def _share(gap: float, *, bad: str = "NaN or infinity in one of them") -> str:
    return f"{gap:.2%} apart" if math.isfinite(gap) else bad


def _scalar_line(one: ScalarDifference) -> str:
    return (
        f"{one.name}: last values {one.last_a:.6g} and {one.last_b:.6g}, "
        f"largest difference {_share(one.largest)}, since step {one.first_different}"
    )


def _finding_line(one: Finding) -> str:
    place = "" if one.module is None else f" at {one.module or 'the model'}"
    return f"{one.severity}: {one.kind}{place}, step {one.step}"


def _changed_line(one: Changed) -> str:
    return f"{one.name}: {_none(one.a)} → {_none(one.b)}"


def _none(text: str | None) -> str:
    return "none" if text is None else text


def _ends(found: Comparison) -> dict[str, int | None]:
    steps = found.steps
    return {"first": int(steps[0, 0]), "last": int(steps[-1, 0])} if len(steps) else {"first": None, "last": None}


def _divergence(one: Divergence | None) -> dict[str, Any] | None:
    if one is None:
        return None
    plain_fields = ("step", "last_equal_step", "kind", "module", "call", "path", "differing", "compared", "text")
    return {
        **{name: getattr(one, name) for name in plain_fields},
        "series": _series(one.series),
        "distance": one.distance,
        "gap": _number(one.gap),
        "is_rounding": one.is_rounding,
    }


def _series_difference(one: SeriesDifference) -> dict[str, Any]:
    firsts = ("steps", "first_different", "first_beyond_rounding", "first_beyond_fluctuation", "distance_step")
    return {
        "series": _series(one.series),
        "other": _series(one.other),
        **{name: getattr(one, name) for name in firsts},
        "distance": one.distance,
        "gap": _number(one.gap),
    }


def _series(one: Series) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("id", "module", "call", "role", "path", "kind")}


def _changed(one: Changed) -> dict[str, Any]:
    return {"name": one.name, "a": one.a, "b": one.b}


def _scalar(one: ScalarDifference) -> dict[str, Any]:
    return {
        "name": one.name,
        "common": one.common,
        "first_different": one.first_different,
        **{name: _number(getattr(one, name)) for name in ("largest", "last_a", "last_b")},
    }


def _findings(found: Comparison) -> dict[str, Any]:
    one, other = found.findings
    return {"findings": {"only_a": plain(one), "only_b": plain(other)}}


def _number(value: float) -> float | None:
    """`value`; None if it is not finite, which JSON cannot say."""
    return value if math.isfinite(value) else None
