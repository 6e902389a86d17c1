"""Findings as text, Markdown and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from torchgraph_explorer.finding import SEVERITIES, Band, Finding
from torchgraph_explorer.findings.equal import span, together
from torchgraph_explorer.findings.rules import RULES
from torchgraph_explorer.printable import printable

Found: TypeAlias = Mapping[str, Sequence[Finding]]
"""The findings of each model, by its name."""

SCHEMA = 1
"""Version of the JSON in docs/findings.md. It grows if a field goes or changes its meaning, but not for new fields."""

NOTHING = "Nothing found."

NO_STEP = "No step was recorded, so nothing could be checked."

MOST_ROOTS = 3
"""How many kinds a summary names."""

MOST_NAMED = 12
"""How many modules are named that a finding says the same of. JSON has all."""


def as_json(run: str, found: Found) -> dict[str, Any]:
    """The findings as plain values: the schema in docs/findings.md."""
    return {"schema": SCHEMA, "run": run, "models": [_model(name, findings) for name, findings in found.items()]}


def _model(name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    return {"model": name, "findings": plain(findings)}


def plain(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings of one model as plain values."""
    numbers = {id(one): number for number, one in enumerate(findings)}
    return [_plain(one, numbers) for one in findings]


def from_plain(values: Sequence[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """The findings that `plain` made these values of. Numbers that are not finite are NaN."""
    found: list[Finding] = []
    for one in values:
        numbers = {name: math.nan if value is None else value for name, value in one["evidence"].items()}
        causes = tuple(found[cause] for cause in one["causes"] if cause < len(found))
        band = Band(**one["band"]) if one["band"] else None
        found.append(Finding(**{name: one[name] for name in _NAMES}, evidence=numbers, causes=causes, band=band))
    return tuple(found)


_NAMES = ("kind", "severity", "module", "call", "path", "step", "last_step", "text", "advice")


def _plain(one: Finding, numbers: Mapping[int, int]) -> dict[str, Any]:
    return {
        "id": numbers[id(one)],
        **{name: getattr(one, name) for name in _NAMES},
        "evidence": {name: value if math.isfinite(value) else None for name, value in one.evidence.items()},
        "causes": [numbers[id(cause)] for cause in one.causes if id(cause) in numbers],
        "band": _plain_band(one.band) if one.band else None,
    }


def _plain_band(band: Band) -> dict[str, Any]:
    ends = {"low": band.low, "high": band.high}
    return {
        "statistic": band.statistic,
        "kind": band.kind,
        **{name: end if end is not None and math.isfinite(end) else None for name, end in ends.items()},
    }


def as_text(found: Found, without_steps: Collection[str] = ()) -> str:
    """The findings for a terminal; what follows from another is indented below it.

    `without_steps` are the models of which no step was recorded.
    """
    lines: list[str] = []
    for name, findings in found.items():
        nothing = NO_STEP if name in without_steps else NOTHING
        lines += [*([""] if lines else []), f"model {name}", *([] if findings else [f"  {nothing}"])]
        for equal in together(findings):
            one = equal[0]
            indent = "    " if one.causes else "  "
            lines += [
                *([] if one.causes or lines[-1] == f"model {name}" else [""]),  # between root causes
                f"{indent}{one.severity:<8} {one.kind} at {places(equal)}, {when(one)}",
                f"{indent}  {one.text}",
                *([f"{indent}  The same holds for {_others(equal)}."] if equal[1:] else []),
                *([] if one.causes else [f"{indent}  Try: {one.advice}"]),
            ]
    hint = _way_to_explanation([one for findings in found.values() for one in findings])
    return "\n".join([*lines, *(["", f"What a kind means, and when it may be wrong: {hint}"] if hint else [])])


def _way_to_explanation(findings: Sequence[Finding]) -> str:
    """The command that explains the first kind among `findings`; empty if all are of rules of the user's own."""
    known = next((one.kind for one in findings if one.kind in RULES), "")
    return known and f"torchgraph explain {known}"


def as_markdown(run: str, found: Found, without_steps: Collection[str] = ()) -> str:
    """The findings as Markdown, as for a comment on a change; `without_steps` as of `as_text`."""
    lines = [f"# Findings of {_escaped(run)}"]
    for name, findings in found.items():
        nothing = NO_STEP if name in without_steps else NOTHING
        lines += ["", f"## {_escaped(name)}", "", *([] if findings else [nothing])]
        for equal in together(findings):
            one = equal[0]
            indent = "  " if one.causes else ""
            head = f"**{one.kind}** ({one.severity}) at {_escaped(places(equal))}, {when(one)}"
            same = f" The same holds for {_escaped(_others(equal))}." if equal[1:] else ""
            lines.append(f"{indent}- {head}: {_escaped(one.text)}{same} *{_escaped(one.advice)}*")
    return "\n".join(lines)


def as_lines(new: Sequence[Finding]) -> list[str]:
    """What is new, for a terminal: a line for each kind of warning or error that is a root cause, and for NaN."""
    told = [one for one in new if one.is_at_least("warning") and (not one.causes or one.kind == "nan")]
    lines = []
    for some in _by_kind(told):
        first = some[0]
        follows = f" It follows from {first.causes[0].kind}." if first.causes else ""
        alike = [one for one in new if one.kind == first.kind and one.causes == (first,) and one.is_at_least("warning")]
        lines.append(
            f"{first.severity}: {kind_and_place([*some, *alike])}, since step {first.step}: {first.text}{follows}"
        )
    return list(map(printable, lines))


def as_summary(model: str, findings: Sequence[Finding], command: str) -> list[str]:
    """What was found in a run, for a terminal: a few lines; none if there is neither a warning nor an error."""
    counted = [one for one in findings if one.is_at_least("warning")]
    if not counted:
        return []
    counts = [(sum(one.severity == severity for one in counted), severity) for severity in reversed(SEVERITIES)]
    told = ", ".join(f"{number} {severity}{'s' * (number > 1)}" for number, severity in counts if number)
    roots = as_roots(counted)
    hint = _way_to_explanation([one for one in counted if not one.causes])
    more = f"and {len(roots) - MOST_ROOTS} more kinds; " if len(roots) > MOST_ROOTS else ""
    return [
        printable(f"{model}: {told}"),
        *(f"  {one}" for one in roots[:MOST_ROOTS]),
        f"  {more}what to try: {command}",
        *([f"  what it means: {hint}"] if hint else []),
    ]


def as_roots(findings: Sequence[Finding]) -> list[str]:
    """A line for each kind of warning or error that is a root cause, with what follows from it."""
    counted = [one for one in findings if one.is_at_least("warning")]
    return [printable(_root(some, counted)) for some in _by_kind(one for one in counted if not one.causes)]


def _by_kind(findings: Iterable[Finding]) -> list[list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.kind, []).append(one)
    return [*found.values()]


def _root(some: Sequence[Finding], among: Sequence[Finding]) -> str:
    """Findings of one kind, with the worst severity and the kinds of what follows from them."""
    roots = set(map(id, some))
    following = [one for one in among if any(id(cause) in roots for cause in one.causes)]
    worst = max((one.severity for one in (*some, *following)), key=SEVERITIES.index)
    alike = [one for one in following if one.kind == some[0].kind]
    kinds = list(dict.fromkeys(one.kind for one in following if one.kind != some[0].kind))
    follows = f"; {', '.join(kinds)} {'follow' if len(kinds) > 1 else 'follows'} from it" if kinds else ""
    return f"{worst}: {kind_and_place([*some, *alike])}, {when(some[0])}{follows}"


def kind_and_place(some: Sequence[Finding]) -> str:
    """The kind of some findings, the place of the first, and how many others there are."""
    others = f" and {len(some) - 1} more" if len(some) > 1 else ""
    where = f" at {place(some[0])}" if some[0].module is not None else ""
    return f"{some[0].kind}{where}{others}"


def place(one: Finding) -> str:
    """Where it is, in words."""
    if one.module is None:
        return "the whole run"
    call = f" (call {one.call + 1})" if one.call else ""  # counted from 1, as in the viewer
    path = f" {one.path}" if one.path else ""
    return f"{one.module or 'the model'}{call}{path}"


def places(equal: Sequence[Finding]) -> str:
    """Where findings are that say the same, in words, and of how many modules they are."""
    if len(equal) == 1:
        return place(equal[0])
    return f"{span([place(one) for one in equal])} ({len(equal)} modules)"


def _others(equal: Sequence[Finding]) -> str:
    names = [f"`{one.module}`" for one in equal[1:]]
    if len(names) <= MOST_NAMED:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more modules"


def when(one: Finding) -> str:
    """Since when, in words."""
    return f"step {one.step}" if one.step == one.last_step else f"steps {one.step} to {one.last_step}"


def _escaped(text: str) -> str:
    """`text` of a record as Markdown, escaped so that it is shown as it is."""
    parts = text.replace("\n", " ").split("`")
    parts[::2] = [_SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


_SPECIAL = re.compile(r"[\\*_\[\]<>#|!]")
