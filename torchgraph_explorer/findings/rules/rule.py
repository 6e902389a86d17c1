"""What every rule uses: its type, the making of a finding, and how long a condition held."""

from __future__ import annotations

import re
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
"""Fewest recorded steps that a condition has to hold at before a rule reports it."""

_MOST_LISTED = 4
"""Names that a sentence lists."""


def held(flags: Flags, steps: npt.NDArray[np.int64], *, share: float) -> Rows | None:
    """The rows of the unbroken run of set `flags` that ends at the last row: where a condition holds until the end.

    None if that run is shorter than `LEAST_ROWS`, or shorter than `share` of all rows and of the training between the
    first and the last of their `steps`. The first steps may be recorded more densely than the others.
    """
    breaks = np.flatnonzero(~flags)
    first = int(breaks[-1]) + 1 if len(breaks) else 0
    rows = np.arange(first, len(flags))
    if len(rows) < LEAST_ROWS:
        return None
    is_long = steps[-1] - steps[first] >= share * (steps[-1] - steps[0])
    return rows if is_long or len(rows) >= share * len(flags) else None


def mostly_held(flags: Flags, *, share: float, breaks: float) -> Rows | None:
    """Like `held`, but some rows of the run may be unset: up to the share `breaks` of the run, and of its second half.

    Returns the set rows of the longest such run. None if it is shorter than `share` of all rows, or than `LEAST_ROWS`.
    """
    for first in np.flatnonzero(flags).tolist():
        rest = flags[first:]
        if len(rest) < max(LEAST_ROWS, share * len(flags)):
            return None
        if (~rest).mean() <= breaks and (~rest[len(rest) // 2 :]).mean() <= breaks:
            return first + np.flatnonzero(rest)
    return None


def share_of_training(evidence: Evidence, rows: npt.NDArray[np.intp]) -> float:
    """The share of the recorded training that some rows stand for: each stands for the steps that are nearest to it.

    It is the share of all rows where steps are recorded at equal distance. The first ones may be recorded more densely.
    """
    gaps = np.diff(evidence.steps).astype(np.float64)
    each = np.append(gaps, gaps[-1:]) + np.append(gaps[:1], gaps) if len(gaps) else np.ones(1)
    return float(each[rows].sum() / each.sum())


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
    """Make a finding of `kind`.

    Args:
        evidence: What the rule looked at. Its `steps` turn `rows` into steps.
        kind: The key of the rule in `RULES`.
        severity: How bad it is.
        at: The series or the name of the module that it is about; None for the whole run.
        rows: The rows of `evidence` at which it was seen, ascending, at least one.
        numbers: What it was concluded from, by name. They are shown beside the text.
        text: What happened, in sentences. The first letter is made a capital.
        advice: What to do about it.
        band: The range in which a statistic of the series would be normal.
    """
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
        text=_without_exponents(text[:1].upper() + text[1:]),
        advice=advice,
        band=band,
    )


_EXPONENT = re.compile(r"\b\d(?:\.\d+)?e\+0[3-5]\b")
"""A number of thousands as `:.3g` writes it."""


def _without_exponents(text: str) -> str:
    """A text in which numbers below a million are written out: `1.65e+04` as `16,500`."""
    return _EXPONENT.sub(lambda found: f"{float(found[0]):,.0f}", text)


def named(module: str) -> str:
    """How a sentence calls a module: its name between backquotes, or "the model" for the root."""
    return f"`{quoted(module)}`" if module else "the model"


def number(option: str | None) -> float:
    """A value of a module's `extra_repr` as a number; NaN if it is missing or no number, such as `None`."""
    try:
        return float(option or "nan")
    except ValueError:
        return float("nan")


def quoted(name: str) -> str:
    """A name from the record, on one line and without backquotes, so that it can stand between backquotes."""
    return name.replace("`", "'").replace("\n", " ")


def listed(names: Sequence[str]) -> str:
    """Names from the record in a sentence: all of up to four, else three and how many more there are."""
    shown = [f"`{quoted(name)}`" for name in (names if len(names) <= _MOST_LISTED else names[: _MOST_LISTED - 1])]
    more = len(names) - len(shown)
    parts = [*shown, f"{more} more"] if more else shown
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
