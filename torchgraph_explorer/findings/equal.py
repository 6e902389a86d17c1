"""Findings that say the same of neighbouring modules, put together: the rule of the viewer's `findings/roots.ts`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchgraph_explorer.finding import Finding

FEWEST = 3
"""So many root causes that say the same stand together."""

_NUMBER = re.compile(r"([0-9]+)")


def together(findings: Sequence[Finding]) -> list[list[Finding]]:
    """All findings in their order: each by itself, or three or more root causes that say the same.

    What follows from another finding in the list always stands by itself, as does a root cause that others follow from.
    """
    listed = set(map(id, findings))
    causes = {id(cause) for one in findings for cause in one.causes}
    runs: list[list[Finding]] = []
    roots: list[Finding] = []
    for one in findings:
        follows = any(id(cause) in listed for cause in one.causes)
        if not follows and roots and not {id(roots[-1]), id(one)} & causes and _are_equal(roots[-1], one):
            roots.append(one)
            continue
        runs.append(own := [one])
        roots = roots if follows else own
    return [part for run in runs for part in ([run] if len(run) >= FEWEST else [[one] for one in run])]


def span(places: Sequence[str]) -> str:
    """Where findings of several modules are: `blocks.0–11.fc`, or the first and the last, `encoder … head`."""
    first, last = (_NUMBER.split(place) for place in (places[0], places[-1]))
    different = [at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other]
    if len(first) != len(last) or len(different) != 1 or different[0] % 2 == 0:
        return f"{places[0]} … {places[-1]}"
    [at] = different
    return "".join([*first[:at], f"{first[at]}–{last[at]}", *first[at + 1 :]])


def _are_equal(one: Finding, other: Finding) -> bool:
    if one.module is None or other.module is None:
        return False
    return _said(one) == _said(other) and _are_neighbours(one.module, other.module)


def _said(one: Finding) -> tuple[object, ...]:
    """What a finding says, but for the name of its module."""
    text = one.text.replace(f"`{one.module}`", "``")
    return one.kind, one.severity, one.call, one.path, one.step, one.last_step, text


def _are_neighbours(one: str, other: str) -> bool:
    """In the same module, or at the same place in modules that differ in their number."""
    around = one.rpartition(".")[0] == other.rpartition(".")[0]
    return around or _NUMBER.sub("0", one) == _NUMBER.sub("0", other)
