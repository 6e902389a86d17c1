"""Several runs, such as those of several seeds, as one band: their mean and their spread over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.comparison.matching import match_frames
from torchgraph_explorer.errors import OptionError

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"


@dataclass(frozen=True, slots=True)
class Spread:
    """One number of several runs over the steps.

    Attributes:
        steps: Those of the run that logged the fewest, `[n]`.
        values: Of each run, in the order given, `[runs, n]`: at the same step, or at the nearest that the run logged if
            it has none of `steps`. NaN where it has none, or where the number was not finite.
        runs: How many of them have a number at each step, `[n]`.
        mean: Their mean, `[n]`.
        std: Their standard deviation, `[n]`: that of a sample, so NaN for a single run.
        low: The smallest one, `[n]`.
        high: The largest one, `[n]`.
    """

    steps: Ints
    values: Floats
    runs: Ints
    mean: Floats
    std: Floats
    low: Floats
    high: Floats


def spread_of(lines: Sequence[tuple[Ints, Floats]]) -> Spread:
    """The spread of several lines, each of which is its steps, ascending, and its values.

    Raises:
        OptionError: There is no line, or one without steps.
    """
    if not lines or not all(len(steps) for steps, _ in lines):
        raise OptionError("A spread needs at least one run, and a value in each.")
    steps = min((steps for steps, _ in lines), key=len)
    values = np.stack([_at(steps, *line) for line in lines])
    values[~np.isfinite(values)] = np.nan
    count = (~np.isnan(values)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        mean = np.nansum(values, axis=0) / count
        std = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / np.where(count > 1, count - 1, np.nan))
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    return Spread(steps, values, count, mean, std, low, high)


def _at(steps: Ints, own: Ints, values: Floats) -> Floats:
    """The values at `steps`, of a line that has them at its `own` steps."""
    found = np.full(len(steps), np.nan)
    matched = match_frames(steps, own)
    found[matched.a] = values[matched.b]
    return found
