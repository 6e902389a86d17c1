"""`api/scalars`: logged scalars, in as many bins as a page can show, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.scalars.index import LoggedSoFar, Scalar
from torchgraph_explorer.schema import StepNote
from torchgraph_explorer.server.pack import pack

Arrays = dict[str, npt.NDArray[np.generic]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WantedScalars:
    """What a client asks for, and what it holds.

    Attributes:
        scalars: Numbers of the scalars whose values it wants, in the order of first logging.
        most: Bins of a scalar at most.
        version: That of the latest answer; empty without one.
        first_step: It holds these scalars up to this step.
        unit: Steps of a bin that it holds; 0 if it holds none.
    """

    scalars: tuple[int, ...]
    most: int
    version: str = ""
    first_step: int = 0
    unit: int = 0


def scalars_answer(logged: LoggedSoFar, wanted: WantedScalars, *, epoch: int) -> bytes:
    """The binary answer. `epoch` is the model's, as clients know it."""
    whole, every = f"{epoch}.{logged.epoch}", logged.every
    version = f"{whole}.{logged.blocks}"
    if version == wanted.version and wanted.unit:
        return pack({"version": version, "is_same": True}, {})
    unit = unit_for(every, wanted.most)
    goes_on = wanted.version.startswith(f"{whole}.") and wanted.unit == unit
    first_step = wanted.first_step if goes_on else 0
    shown = [number for number in wanted.scalars if number < len(every)]
    arrays: Arrays = {}
    for number in shown:
        arrays |= {f"{number}.{name}": array for name, array in binned(every[number], unit, first_step).items()}
    meta = {**facts(every, logged.notes), "version": version, "is_same": False, "unit": unit, "from": first_step}
    return pack({**meta, "wanted": shown}, arrays)


def facts(scalars: Sequence[Scalar], notes: Sequence[StepNote]) -> dict[str, Any]:
    """What is said of every scalar, and the notes."""
    return {
        "scalars": [_fact(one) for one in scalars],
        "notes": [{"step": note.step, "time": note.time, "text": note.text} for note in notes],
    }


def _fact(scalar: Scalar) -> dict[str, Any]:
    label = {} if scalar.label is None else {"label": scalar.label}
    return {"name": scalar.name, **label, "values": len(scalar), "is_axis": _can_be_axis(scalar)}


def unit_for(scalars: Sequence[Scalar], most: int) -> int:
    """The smallest power of two such that no scalar has values in more than `most` bins of so many steps."""
    unit = 1
    for scalar in scalars:
        while len(scalar) > most and _bins(scalar.steps // unit) > most:
            unit *= 2
    return unit


def binned(scalar: Scalar, unit: int, first_step: int = 0) -> Arrays:
    """The bins of `unit` steps that hold values, from the one with `first_step` on. See http_api.md for the arrays."""
    start = int(np.searchsorted(scalar.steps, first_step // unit * unit))
    steps, times, values = scalar.steps[start:], scalar.times[start:], scalar.values[start:]
    bins = steps // unit
    starts = np.flatnonzero(np.append(True, bins[1:] != bins[:-1])) if len(bins) else np.zeros(0, dtype=np.int64)
    found: Arrays = {"step": steps[starts].astype(np.float64), "time": times[starts], "value": values[starts]}
    if unit == 1 or not len(starts):
        return found
    counts = np.diff(starts, append=len(steps))
    finite = np.isfinite(values)
    good = np.add.reduceat(finite.astype(np.int64), starts)
    return {
        **found,
        "value": np.where(counts == 1, values[starts], _means(np.where(finite, values, 0.0), starts, good)),
        "last": steps[starts + counts - 1].astype(np.float64),
        "count": counts.astype(np.uint32),
        "bad": (counts - good).astype(np.uint32),
        "low": _or_nan(np.minimum.reduceat(np.where(finite, values, np.inf), starts), good),
        "high": _or_nan(np.maximum.reduceat(np.where(finite, values, -np.inf), starts), good),
    }


def _bins(numbers: npt.NDArray[np.int64]) -> int:
    return int(np.count_nonzero(numbers[1:] != numbers[:-1])) + 1


def _means(values: Floats, starts: npt.NDArray[np.int64], good: Any) -> Floats:
    """The mean of the `good` finite values of each bin, beside which there are zeros; NaN without any.

    Nothing overflows.
    """
    shares = np.repeat(1.0 / np.maximum(good, 1), np.diff(starts, append=len(values)))
    means: Floats = np.add.reduceat(values * shares, starts)
    return _or_nan(means, good)


def _or_nan(values: Floats, good: Any) -> Floats:
    return np.where(good > 0, values, np.nan)


def _can_be_axis(scalar: Scalar) -> bool:
    """Whether the scalar never falls, and ends higher than it began, so that steps can be placed by it."""
    values = scalar.values
    if len(values) < 2 or not np.isfinite(values).all():
        return False
    return bool((values[1:] >= values[:-1]).all() and values[-1] > values[0])


def page_scalars(logged: LoggedSoFar, *, most: int, most_bytes: int) -> tuple[Mapping[str, Any], Arrays]:
    """The facts and the arrays of all scalars for an exported page, in fewer bins if there are many scalars."""
    every = logged.every
    bins = max(min(most, most_bytes // (60 * max(len(every), 1))), 16)
    unit = unit_for(every, bins)
    arrays: Arrays = {}
    for number, scalar in enumerate(every):
        arrays |= {f"{number}.{name}": array for name, array in binned(scalar, unit).items()}
    return {**facts(every, logged.notes), "unit": unit}, arrays
