"""Findings as text, Markdown and JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from torchgraph_explorer.findings.finding import Band, Finding

Found: TypeAlias = Mapping[str, Sequence[Finding]]
"""The findings of each model, by its name."""

SCHEMA = 1
"""Version of the JSON, docs/findings.md. It grows if a field changes its meaning or goes; new fields may come."""

NOTHING = "Nothing found."


def as_json(run: str, found: Found) -> dict[str, Any]:
    """The findings as plain values: the schema in docs/findings.md."""
    return {"schema": SCHEMA, "run": run, "models": [_model(name, findings) for name, findings in found.items()]}


def _model(name: str, findings: Sequence[Finding]) -> dict[str, Any]:
    numbers = {id(one): number for number, one in enumerate(findings)}
    return {"model": name, "findings": [_plain(one, numbers) for one in findings]}


def _plain(one: Finding, numbers: Mapping[int, int]) -> dict[str, Any]:
    names = ("kind", "severity", "module", "call", "path", "step", "last_step", "text", "advice")
    return {
        "id": numbers[id(one)],
        **{name: getattr(one, name) for name in names},
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


def as_text(found: Found) -> str:
    """The findings for a terminal; what follows from another is indented below it."""
    lines: list[str] = []
    for name, findings in found.items():
        lines += [*([""] if lines else []), f"model {name}", *([] if findings else [f"  {NOTHING}"])]
        for one in findings:
            indent = "    " if one.causes else "  "
            lines += [
                f"{indent}{one.severity:<8} {one.kind} at {place(one)}, {when(one)}",
                f"{indent}  {one.text}",
                *([] if one.causes else [f"{indent}  Try: {one.advice}"]),
            ]
    return "\n".join(lines)


def as_markdown(run: str, found: Found) -> str:
    """The findings as Markdown, as for a comment on a change."""
    lines = [f"# Findings of {_escaped(run)}"]
    for name, findings in found.items():
        lines += ["", f"## {_escaped(name)}", "", *([] if findings else [NOTHING])]
        for one in findings:
            indent = "  " if one.causes else ""
            head = f"**{one.kind}** ({one.severity}) at {_escaped(place(one))}, {when(one)}"
            lines.append(f"{indent}- {head}: {_escaped(one.text)} *{_escaped(one.advice)}*")
    return "\n".join(lines)


def place(one: Finding) -> str:
    """Where it is, in words."""
    if one.module is None:
        return "the whole run"
    call = f" call {one.call}" if one.call else ""
    path = f" {one.path}" if one.path else ""
    return f"{one.module or 'the model'}{call}{path}"


def when(one: Finding) -> str:
    """Since when, in words."""
    return f"step {one.step}" if one.step == one.last_step else f"steps {one.step} to {one.last_step}"


def _escaped(text: str) -> str:
    """`text` of a record, as Markdown that shows it and nothing else."""
    parts = text.replace("\n", " ").split("`")
    parts[::2] = [_SPECIAL.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


_SPECIAL = re.compile(r"[\\*_\[\]<>#|!]")
