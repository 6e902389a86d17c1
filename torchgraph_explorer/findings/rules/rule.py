"""What every rule uses: its type, the making of a finding, and how long a condition held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding, Severity
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.schema import Series

Rule: TypeAlias = Callable[[Evidence], Iterable[Finding]]
Flags: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.intp]

LEAST_ROWS = 2
"""Recorded steps at which something has to be so, at least, before it is told."""

_MOST_LISTED = 4
"""Names that a sentence lists."""


def held(flags: Flags, *, share: float) -> Rows | None:
    """The rows at which `flags` are set, from their last beginning on: those of a condition that holds at the end.

    None unless it holds without a break up to the last row, for `share` of all rows and for `LEAST_ROWS` at least.
    """
    breaks = np.flatnonzero(~flags)
    first = int(breaks[-1]) + 1 if len(breaks) else 0
    rows = np.arange(first, len(flags))
    return rows if len(rows) >= max(LEAST_ROWS, share * len(flags)) else None


def mostly_held(flags: Flags, *, share: float, breaks: float) -> Rows | None:
    """As `held`, with some breaks: from the beginning on, and over the last half, `flags` lack at most this share."""
    for first in np.flatnonzero(flags).tolist():
        rest = flags[first:]
        if len(rest) < max(LEAST_ROWS, share * len(flags)):
            return None
        if (~rest).mean() <= breaks and (~rest[len(rest) // 2 :]).mean() <= breaks:
            return first + np.flatnonzero(rest)
    return None


def finding(
    evidence: Evidence,
    kind: str,
    severity: Severity,
    *,
    at: Series | str | None,
    rows: npt.NDArray[np.integer] | Iterable[int],
    numbers: dict[str, float],
    text: str,
    advice: str,
    band: Band | None = None,
) -> Finding:
    """A finding at a series, a module or the whole run, seen at some rows of `evidence`."""
    seen = [*map(int, rows)]
    series = at if isinstance(at, Series) else None
    return Finding(
        kind=kind,
        severity=severity,
        module=series.module if series else at if isinstance(at, str) else None,
        call=series.call if series else None,
        path=series.path if series else None,
        step=int(evidence.steps[seen[0]]),
        last_step=int(evidence.steps[seen[-1]]),
        evidence={name: float(value) for name, value in numbers.items()},
        text=text[:1].upper() + text[1:],
        advice=advice,
        band=band,
    )


def named(module: str) -> str:
    """A module's name in a sentence."""
    return f"`{quoted(module)}`" if module else "the model"


def quoted(name: str) -> str:
    """A name from the record as it can stand between backquotes."""
    return name.replace("`", "'").replace("\n", " ")


def listed(names: Sequence[str]) -> str:
    """Names from the record in a sentence: all of up to four, else three and how many more there are."""
    shown = [f"`{quoted(name)}`" for name in (names if len(names) <= _MOST_LISTED else names[: _MOST_LISTED - 1])]
    more = len(names) - len(shown)
    parts = [*shown, f"{more} more"] if more else shown
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
