"""The statistics of several tensors, or of several steps of one, merged into those of all their elements together."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import STATISTICS

Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"

COLUMN = {name: column for column, name in enumerate(STATISTICS)}
"""Where each statistic is in a row."""

NON_FINITE = [COLUMN[name] for name in ("nan", "positive_infinity", "negative_infinity")]
_ADDED = [COLUMN["count"], COLUMN["sampled"], *NON_FINITE, COLUMN["zeros"]]


def merge_moments(rows: Floats, starts: Ints, *, weights: Floats) -> Floats:
    """The statistics of the groups of `rows` that begin at `starts`, `[groups, len(STATISTICS)]`.

    Counts are added up. Mean, absolute mean and standard deviation are those of all elements together, where a row
    counts by its weight, usually its sampled elements; NaN where the weights of a group are all 0. `l2_norm` is left to
    the caller: what it is of a group depends on what the rows are.
    """
    merged = np.full((len(starts), len(STATISTICS)), np.nan)
    whole = group_sum(weights, starts)
    mean, absolute, std = (rows[:, COLUMN[name]] for name in ("mean", "absolute_mean", "std"))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        centre = group_sum(weights * mean, starts) / whole
        away = mean - np.repeat(centre, np.diff(starts, append=len(rows)))
        merged[:, COLUMN["mean"]] = centre
        merged[:, COLUMN["absolute_mean"]] = group_sum(weights * absolute, starts) / whole
        merged[:, COLUMN["std"]] = np.sqrt(group_sum(weights * (std**2 + away**2), starts) / whole)
    merged[:, _ADDED] = np.stack([group_sum(rows[:, column], starts) for column in _ADDED], axis=1)
    merged[:, COLUMN["min"]] = np.fmin.reduceat(rows[:, COLUMN["min"]], starts)
    merged[:, COLUMN["max"]] = np.fmax.reduceat(rows[:, COLUMN["max"]], starts)
    return merged


def group_sum(values: Floats, starts: Ints) -> Floats:
    """The sums of the groups that begin at `starts`; NaN counts as 0."""
    return np.add.reduceat(np.nan_to_num(values, nan=0.0), starts)
