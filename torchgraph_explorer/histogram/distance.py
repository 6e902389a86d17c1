"""How far apart two histograms are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram.buckets import LAST_BUCKET, lower_edge, upper_edge
from torchgraph_explorer.histogram.histograms import Histograms

Floats: TypeAlias = "npt.NDArray[np.float64]"

_WIDTH = 2 * LAST_BUCKET + 2


def distances(a: Histograms, b: Histograms) -> Floats:
    """How far the rows of `a` are from those of `b`, `[rows]`, from 0 (the same) to 1.

    That is the Wasserstein distance, how far the elements of one have to be moved on average to become the other's,
    divided by the sum of both mean magnitudes. So it has no unit: series of any scale can be ranked by it. It is 1/3
    where one tensor is twice the other, and 1 only where the one's elements are all positive and the other's negative,
    or where only one is 0. Unlike distances that compare bucket by bucket, such as that of Jensen and Shannon, it says
    how far a distribution has moved, also after the two overlap no more.

    Elements are taken as spread evenly within their bucket, so differences within one, up to a quarter of an octave, do
    not show. A row without elements is at a distance of 1 from one with elements, and of 0 from another without.
    """
    rows = len(a)
    share_a, key_a = _shares(a)
    share_b, key_b = _shares(b)
    keys, at = np.unique(np.concatenate([key_a, key_b]), return_inverse=True)
    change = _sums(at.reshape(-1), np.concatenate([share_a, -share_b]), len(keys))
    row, bucket = keys // _WIDTH, keys % _WIDTH - LAST_BUCKET
    low, high = lower_edge(bucket), upper_edge(bucket)
    after = _running_sum(change, row)
    within = (high - low) * _mean_magnitude(after - change, after)
    is_followed = np.append(np.diff(row) == 0, False)[: len(row)]
    between = np.where(is_followed, np.abs(after) * (np.append(low[1:], 0.0)[: len(low)] - high), 0.0)
    moved = _sums(row, within + between, rows)
    magnitude = _mean(share_a, key_a, rows) + _mean(share_b, key_b, rows)
    found = np.divide(moved, magnitude, out=np.zeros(rows), where=magnitude > 0)
    is_empty_a, is_empty_b = (np.diff(one.offsets.astype(np.int64)) == 0 for one in (a, b))
    return np.where(is_empty_a | is_empty_b, (is_empty_a != is_empty_b).astype(np.float64), np.clip(found, 0.0, 1.0))


def _shares(histograms: Histograms) -> tuple[Floats, npt.NDArray[np.int64]]:
    """The share of its row's elements that each entry has, and a key that ascends by row and bucket."""
    sizes: npt.NDArray[np.int64] = np.diff(histograms.offsets.astype(np.int64)).astype(np.int64)
    row = np.repeat(np.arange(len(sizes)), sizes)
    counts = histograms.counts.astype(np.float64)
    totals = _sums(row, counts, len(sizes))
    return counts / totals[row], row * _WIDTH + histograms.buckets + LAST_BUCKET


def _mean(share: Floats, key: npt.NDArray[np.int64], rows: int) -> Floats:
    """The mean magnitude of each row's elements."""
    bucket = key % _WIDTH - LAST_BUCKET
    middle = np.where(bucket == 0, 0.0, np.abs(lower_edge(bucket) + upper_edge(bucket)) / 2)
    return _sums(key // _WIDTH, share * middle, rows)


def _sums(group: npt.NDArray[np.int64], values: Floats, groups: int) -> Floats:
    """The sum of the values of each group."""
    sums: Floats = np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)
    return sums


def _running_sum(values: Floats, row: npt.NDArray[np.int64]) -> Floats:
    """The sum of the values so far within each row."""
    total = np.cumsum(values)
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    before = np.concatenate([np.zeros(1), total])[starts]
    sizes: npt.NDArray[np.int64] = np.diff(starts, append=len(row)).astype(np.int64)
    within: Floats = total - np.repeat(before, sizes)
    return within


def _mean_magnitude(start: Floats, end: Floats) -> Floats:
    """The mean of the magnitude of what goes in a straight line from `start` to `end`."""
    both = np.abs(start) + np.abs(end)
    crossing = np.divide(start**2 + end**2, 2 * both, out=np.zeros_like(both), where=both > 0)
    found: Floats = np.where(start * end >= 0, both / 2, crossing)
    return found
