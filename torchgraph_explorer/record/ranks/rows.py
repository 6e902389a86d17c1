"""The rows of several ranks made those of the whole tensors, of which each rank has a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.schema import STATISTICS

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_AT = {name: column for column, name in enumerate(STATISTICS)}
_ADDED = [_AT[name] for name in ("count", "sampled", "nan", "positive_infinity", "negative_infinity")]
_NON_FINITE = [_AT[name] for name in ("nan", "positive_infinity", "negative_infinity")]
_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_COUNT = float(np.iinfo(np.uint32).max)
_SAME = 1e-6
"""Shares of sampled elements that differ by less are the same: counts have the precision of float32."""


def added(
    statistics: npt.NDArray[np.float32], histograms: Histograms, starts: Ints
) -> tuple[npt.NDArray[np.float32], Histograms]:
    """The statistics and histograms of tensors whose parts are the rows from each of `starts` to the next.

    They are those of the concatenated parts, to the precision of float32. What was sampled is an estimate: each part
    counts by its finite elements, of which another share may have been sampled than of other parts. Where the shares
    are equal, as where nothing was sampled, counts just add up; else those of parts with a smaller share are scaled up.
    """
    sizes = np.diff(starts, append=len(statistics))
    wide = statistics.astype(np.float64)
    with np.errstate(all="ignore"):  # a record may hold any numbers
        stands_for = _elements_stood_for(wide)
        scale = np.clip(stands_for / np.repeat(_least(stands_for, starts), sizes), 1.0, _LARGEST_COUNT)
        scale[~(np.abs(scale - 1) > _SAME)] = 1.0
        merged = _statistics(wide, starts, scale=scale).astype(np.float32)
    alone = sizes == 1
    merged[alone] = statistics[starts[alone]]
    return merged, _histograms(histograms, sizes, scale=scale)


def taken(histograms: Histograms, rows: Ints) -> Histograms:
    """The histograms of `rows`, in that order."""
    offsets = histograms.offsets.astype(np.int64)
    sizes = (offsets[1:] - offsets[:-1])[rows]
    ends = np.concatenate(([0], np.cumsum(sizes)))
    entries = np.arange(ends[-1]) + np.repeat(offsets[rows] - ends[:-1], sizes)
    return Histograms(ends.astype(np.uint32), histograms.buckets[entries], histograms.counts[entries])


def first_of_each_part(groups: npt.NDArray[np.generic], parts: Ints) -> Ints:
    """The indices of the rows that are to be added up, ascending: of rows with the same part, the first of their group.

    `groups` ascend; a part of -1 is like no other.
    """
    own = np.where(parts < 0, -1 - np.arange(len(parts)), parts)
    order = np.lexsort((own, groups))  # stable: the first stays first
    is_new = np.append(True, (np.diff(groups[order]) != 0) | (np.diff(own[order]) != 0))[: len(order)]
    return np.sort(order[is_new])


def stacked(parts: Sequence[Histograms]) -> Histograms:
    """The histograms of all `parts`, in order."""
    sizes = np.concatenate([np.diff(part.offsets.astype(np.int64)) for part in parts])
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32)
    buckets, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("buckets", "counts"))
    return Histograms(offsets, buckets, counts)


def _elements_stood_for(rows: Floats) -> Floats:
    """How many finite elements each sampled one stands for; NaN where there is none."""
    finite = rows[:, _AT["count"]] - rows[:, _NON_FINITE].sum(axis=1)
    return np.where(rows[:, _AT["sampled"]] > 0, finite / rows[:, _AT["sampled"]], np.nan)


def _least(values: Floats, starts: Ints) -> Floats:
    found: Floats = np.fmin.reduceat(values, starts)
    return found


def _statistics(rows: Floats, starts: Ints, *, scale: Floats) -> Floats:
    """The statistics of the groups of `rows` that begin at `starts`."""

    def total(values: Floats) -> Floats:
        return np.add.reduceat(np.nan_to_num(values, nan=0.0), starts)

    old = {name: rows[:, column] for name, column in _AT.items()}
    sizes = np.diff(starts, append=len(rows))
    weights = old["sampled"] * scale
    merged = np.empty((len(starts), len(STATISTICS)))
    merged[:, _ADDED] = np.stack([total(rows[:, column]) for column in _ADDED], axis=1)
    sampled, whole = total(old["sampled"]), total(weights)
    mean = total(weights * old["mean"]) / whole
    away = old["mean"] - np.repeat(mean, sizes)
    merged[:, _AT["mean"]] = mean
    merged[:, _AT["absolute_mean"]] = total(weights * old["absolute_mean"]) / whole
    merged[:, _AT["std"]] = np.sqrt(total(weights * (old["std"] ** 2 + away**2)) / whole)
    merged[:, _AT["l2_norm"]] = np.where(whole > 0, np.sqrt(total(old["l2_norm"] ** 2)), np.nan)
    merged[:, _AT["zeros"]] = np.where(whole > 0, total(old["zeros"] * scale) * sampled / whole, 0.0)
    merged[:, _AT["min"]] = np.fmin.reduceat(old["min"], starts)
    merged[:, _AT["max"]] = np.fmax.reduceat(old["max"], starts)
    return np.clip(merged, -_LARGEST, _LARGEST)


def _histograms(parts: Histograms, sizes: Ints, *, scale: Floats) -> Histograms:
    """The histograms of `sizes` neighbouring rows each, added up. No bucket is lost by scaling."""
    offsets = parts.offsets.astype(np.int64)
    entries: Ints = offsets[1:] - offsets[:-1]
    group = np.repeat(np.repeat(np.arange(len(sizes)), sizes), entries)
    places, at = np.unique(group << 16 | (parts.buckets.astype(np.int64) & 0xFFFF) ^ 0x8000, return_inverse=True)
    sums = np.bincount(at, weights=parts.counts * np.repeat(scale, entries), minlength=len(places))
    counts = np.clip(np.rint(sums), 1, _LARGEST_COUNT).astype(np.uint32)
    ends = np.searchsorted(places >> 16, np.arange(len(sizes) + 1)).astype(np.uint32)
    buckets = ((places & 0xFFFF) ^ 0x8000).astype(np.uint16).view(np.int16)
    return Histograms(ends, buckets, counts)
