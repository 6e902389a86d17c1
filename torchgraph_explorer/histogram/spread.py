"""Where the elements of a histogram lie: quantiles, counts below a value, and the range that is drawn.

Elements are taken as spread evenly within their bucket. `low` and `high` are a row's smallest and largest element.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.histogram.buckets import LAST_BUCKET, bucket_of, lower_edge, upper_edge
from torchgraph_explorer.histogram.histograms import Histograms

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The quantiles that the views draw."""

_KEYS = 2 * LAST_BUCKET + 2
"""Rows are set apart by this in keys of (row, bucket)."""


def quantiles(
    histograms: Histograms, share: npt.ArrayLike, *, low: npt.ArrayLike, high: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """The values below which each `share` of a row's elements lies, `[rows, shares]`; NaN for an empty row.

    Elements are taken as spread evenly within their bucket, and `low` and `high`, the rows' smallest and largest
    element, bound the result. So the error is at most one bucket: a quarter of an octave.

    Raises:
        OptionError: A share is not from 0 to 1.

    Example:
        >>> model = open_run("runs").model()
        >>> [series] = model.find("", role="input", kind="value")
        >>> history = model.history(series)
        >>> low, high = history.column("min"), history.column("max")
        >>> quantiles(history.histograms, [0.25, 0.75], low=low, high=high).shape
        (2, 2)
    """
    given = share
    try:
        share = np.atleast_1d(np.asarray(share, dtype=np.float64))
    except (TypeError, ValueError):
        share = np.array([np.nan])
    if not ((share >= 0) & (share <= 1)).all():
        raise OptionError(f"quantiles({given!s:.80}): a share is a number from 0 to 1; 0.05 is 5 %.")
    lows = np.broadcast_to(np.asarray(low, dtype=np.float64), (len(histograms),))
    highs = np.broadcast_to(np.asarray(high, dtype=np.float64), (len(histograms),))
    found = np.full((len(histograms), len(share)), np.nan)
    filled = np.flatnonzero(np.diff(histograms.offsets.astype(np.int64)))
    if len(filled):
        within = _filled_quantiles(histograms, filled, share)
        found[filled] = np.clip(within, lows[filled, None], highs[filled, None])
    return found


def _filled_quantiles(
    histograms: Histograms, rows: npt.NDArray[np.intp], share: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The quantiles of `rows`, all of which have elements: `[rows, shares]`."""
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    first, stop = (histograms.offsets[rows + end].astype(np.int64)[:, None] for end in (0, 1))
    before = reached[first]
    wanted = share * (reached[stop] - before)
    whole = np.ceil(wanted).astype(np.int64)  # all rows' sums are searched at once, so exactly
    at = np.clip(np.searchsorted(reached[1:], before + whole, side="left"), first, stop - 1)
    inside = (wanted - (reached[at] - before)) / histograms.counts[at]
    lower, upper = lower_edge(histograms.buckets[at]), upper_edge(histograms.buckets[at])
    found: npt.NDArray[np.float64] = lower + inside * (upper - lower)
    return found


def counts_below(
    histograms: Histograms, rows: Ints, edges: Floats, *, low: npt.ArrayLike, high: npt.ArrayLike
) -> Floats:
    """How many elements of each of `rows` lie below each of its `edges`, `[len(rows), edges]`; NaN counts as 0.

    `low` and `high` are those of all rows of `histograms`. Elements of bucket 0 are taken as zeros.
    """
    if not len(histograms.buckets):
        return np.zeros_like(edges)
    offsets, row = histograms.offsets.astype(np.int64), rows.astype(np.int64)[:, None]
    keys = _row_of_entry(histograms) * _KEYS + histograms.buckets
    sought = np.nan_to_num(edges).astype(np.float32)
    wanted = row * _KEYS + bucket_of(sought)
    at = np.searchsorted(keys, wanted)
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    entry = np.minimum(at, len(keys) - 1)
    lower, upper = _spans(histograms, low, high)
    width = upper[entry] - lower[entry]
    inside = np.divide(sought - lower[entry], width, out=(sought > lower[entry]).astype(np.float64), where=width > 0)
    partly = np.where(keys[entry] == wanted, np.clip(inside, 0.0, 1.0) * histograms.counts[entry], 0.0)
    return reached[at] - reached[offsets[row]] + partly


def drawn_range(histograms: Histograms, reject: float, *, low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Where the elements of each row lie without the proportion `reject` that is farthest from the median, `[rows, 2]`.

    This is the meaning of `reject_outlier_proportion` wherever histograms are drawn. Distance from the median, rather
    than a share at each end, keeps the zeros of a ReLU's output and drops only its long tail. NaN for an empty row.
    """
    count = len(histograms)
    ends = np.stack([np.broadcast_to(np.asarray(end, dtype=np.float64), count) for end in (low, high)], axis=1)
    sizes = np.diff(histograms.offsets.astype(np.int64))
    found = np.where(sizes[:, None] > 0, ends, np.nan)
    rows = np.flatnonzero((sizes > 0) & (ends[:, 0] < ends[:, 1]))
    if reject <= 0 or not len(rows):
        return found
    some, (lows, highs) = histograms.of(rows), ends[rows].T
    median = quantiles(some, 0.5, low=lows, high=highs)[:, 0]
    total = np.add.reduceat(some.counts.astype(np.float64), some.offsets[:-1].astype(np.int64))
    reach = _reach(_rings(some, median, low=lows, high=highs), budget=reject * total)
    found[rows] = np.stack([np.maximum(lows, median - reach), np.minimum(highs, median + reach)], axis=1)
    return found


class _Rings(NamedTuple):
    """Elements by their distance from the centre of their row, spread evenly from `near` to `far`."""

    row: Ints
    near: Floats
    far: Floats
    elements: Floats


def _rings(histograms: Histograms, centre: Floats, *, low: Floats, high: Floats) -> _Rings:
    """The elements of each bucket, those below and those above their row's `centre` apart."""
    lower, upper = _spans(histograms, low, high)
    row = _row_of_entry(histograms)
    middle, width = centre[row], upper - lower
    below = np.divide(middle - lower, width, out=(upper <= middle).astype(np.float64), where=width > 0)
    below = np.clip(below, 0.0, 1.0)
    near = np.maximum(0.0, np.concatenate([middle - upper, lower - middle]))
    far = np.concatenate([middle - lower, upper - middle])
    count = np.concatenate([below * histograms.counts, (1 - below) * histograms.counts])
    is_there = count > 0
    return _Rings(np.concatenate([row, row])[is_there], near[is_there], far[is_there], count[is_there])


def _reach(rings: _Rings, *, budget: Floats) -> Floats:
    """The least distance of each row such that at most `budget` of its elements are farther away.

    What is farther falls linearly between the distances at which a bucket begins or ends. So the first of these at
    which it is little enough is found by bisection, all rows at once.
    """
    row, near, far, elements = rings
    rows, width = len(budget), far - near

    def beyond(distance: Floats, *, inclusive: bool = False) -> Floats:
        at = distance[row]
        alone = far >= at if inclusive else far > at
        share = np.divide(far - at, width, out=alone.astype(np.float64), where=width > 0)
        outside = np.clip(share, 0.0, 1.0) * elements
        return np.bincount(row, weights=outside, minlength=rows).astype(np.float64, copy=False)

    owner, distances = np.concatenate([row, row]), np.concatenate([near, far])
    distances = distances[np.lexsort((distances, owner))]
    sizes = np.bincount(owner, minlength=rows)
    first = np.cumsum(sizes) - sizes
    least, most = first.copy(), first + sizes - 1  # at the farthest there is nothing beyond
    while (least < most).any():
        middle = (least + most) // 2
        is_enough = beyond(distances[middle]) <= budget
        least, most = np.where(is_enough, least, np.minimum(middle + 1, most)), np.where(is_enough, middle, most)
    reach, before = distances[most], distances[np.maximum(most - 1, first)]
    over, under = beyond(before), beyond(reach, inclusive=True)
    is_between = (before < reach) & (under <= budget) & (over > budget)
    share = np.divide(over - budget, over - under, out=np.ones(rows), where=is_between & (over > under))
    found: Floats = np.where(is_between, before + share * (reach - before), reach)
    return found


def _spans(histograms: Histograms, low: npt.ArrayLike, high: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The smallest and largest values that the elements of each entry can have; bucket 0 is taken as zeros."""
    row, buckets = _row_of_entry(histograms), histograms.buckets
    lows, highs = (np.broadcast_to(np.asarray(end, dtype=np.float64), len(histograms))[row] for end in (low, high))
    lower = np.where(buckets == 0, 0.0, np.clip(lower_edge(buckets), lows, highs))
    upper = np.where(buckets == 0, 0.0, np.clip(upper_edge(buckets), lows, highs))
    return lower, upper


def _row_of_entry(histograms: Histograms) -> Ints:
    offsets = histograms.offsets.astype(np.int64)
    return np.repeat(np.arange(len(histograms)), offsets[1:] - offsets[:-1])
