"""Makes one finding of those that are at several calls of one module."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchgraph_explorer.finding import SEVERITIES, Finding


def once_a_module(findings: Iterable[Finding], *, most: int) -> list[Finding]:
    """The first `most` findings. Those of one kind at several calls of a module are joined, and count as one."""
    found: dict[object, list[Finding]] = {}
    for one in findings:
        place = len(found) if one.call is None else (one.kind, one.module, one.path)
        if place not in found and len(found) == most:
            break
        found.setdefault(place, []).append(one)
    return [_as_one(some) for some in found.values()]


def _as_one(some: Sequence[Finding]) -> Finding:
    """The finding that begins first, with the worst severity of all. Its text says at how many calls it is."""
    first = min(some, key=lambda one: (one.step, one.call or 0))
    others = len(some) - 1
    if not others:
        return first
    return replace(
        first,
        severity=max((one.severity for one in some), key=SEVERITIES.index),
        evidence={**first.evidence, "calls": float(len(some))},
        text=f"{first.text} The same is found at {others} other call{'s' * (others > 1)} of the module in a step.",
    )
