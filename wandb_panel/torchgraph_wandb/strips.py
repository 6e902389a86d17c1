"""Histograms over the steps as heat strips: few rows, for every series at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms, bucket_of, lower_edge, quantiles, upper_edge
from torchgraph_explorer.record.nonfinite import Traits, are_nonfinite, traits
from torchgraph_explorer.schema import STATISTICS, Frame, Series
from torchgraph_wandb.letters import (
    NOT_FINITE,
    NOT_RECORDED,
    Codes,
    packed_codes,
    packed_flags,
    packed_numbers,
    share_codes,
)

ROWS = 24
"""Rows of a strip. The outermost two hold what lies beyond the axis."""

INNER = ROWS - 2

TOLD = ("mean", "std", "min", "max", "l2_norm", "zero_share", "nonfinite", "sampled")
"""What is told of each step, in this order."""

HAS_NAN, HAS_INFINITY, IS_MISSING = 1, 2, 4
"""Flags of a step of a series. NaN and infinity where they should not be; see `record.nonfinite`."""

Floats = npt.NDArray[np.float64]

_SPAN = 2 * 1024 + 1
"""Numbers of buckets are from -1019 to 1019; rows of histograms are set apart by this."""


@dataclass(frozen=True, slots=True)
class Strips:
    """Every series over the steps.

    Attributes:
        axes: Where the inner rows of each series begin and end, `[series, 2]`; NaN without any finite value.
        cells: Codes of the share of a step's elements in each row, `[series, steps, ROWS]`, the lowest row first. All
            rows are `NOT_FINITE` at a step without a finite element, and `NOT_RECORDED` at one without the series.
        flags: `[series, steps]`, of the flags above.
        told: `[series, steps, len(TOLD)]`; NaN at a step without the series.
    """

    axes: Floats
    cells: Codes
    flags: npt.NDArray[np.uint8]
    told: npt.NDArray[np.float32]

    def packed(self, series: int) -> str:
        """One series as letters: axis, flags, cells step by step from the top row down, what is told of each step."""
        parts = (packed_flags(self.flags[series]), packed_codes(self.cells[series, :, ::-1]))
        return packed_numbers(self.axes[series]) + "".join(parts) + packed_numbers(self.told[series])


def strips(frames: Sequence[Frame], series: Sequence[Series], *, reject: float) -> Strips:
    """Strips of `series`, a column for each of `frames`.

    `reject` is the share of extreme elements, frame by frame, that the axes leave out.
    """
    shape = (len(series), len(frames))
    told = np.full((*shape, len(TOLD)), np.nan, dtype=np.float32)
    ends = np.full((*shape, 2), np.nan)
    flags = np.full(shape, IS_MISSING, dtype=np.uint8)
    of = traits(series)
    for column, frame in enumerate(frames):
        told[frame.series, column] = _told(frame.statistics)[frame.rows]
        ends[frame.series, column] = _ends(frame, reject)[frame.rows]
        flags[frame.series, column] = _flags(frame, of)
    axes = _axes(ends)
    cells = np.full((*shape, ROWS), NOT_RECORDED, dtype=np.int64)
    for column, frame in enumerate(frames):
        cells[frame.series, column] = _cells(frame, axes[frame.series])
    return Strips(axes, cells, flags, told)


def _flags(frame: Frame, of: Traits) -> npt.NDArray[np.uint8]:
    """Those of each of the frame's series."""
    statistics = frame.statistics[frame.rows]
    is_bad = are_nonfinite(frame.series, statistics, of)
    nan, above, below = (
        statistics[:, STATISTICS.index(name)] > 0 for name in ("nan", "positive_infinity", "negative_infinity")
    )
    return np.where(is_bad, HAS_NAN * nan + HAS_INFINITY * (above | below), 0).astype(np.uint8)


def _told(statistics: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """`[rows, len(TOLD)]`."""
    column = {name: statistics[:, number].astype(np.float64) for number, name in enumerate(STATISTICS)}
    column["zero_share"] = np.divide(
        column["zeros"], column["sampled"], out=np.zeros(len(statistics)), where=column["sampled"] > 0
    )
    column["nonfinite"] = column["nan"] + column["positive_infinity"] + column["negative_infinity"]
    found: npt.NDArray[np.float32] = np.stack([column[name] for name in TOLD], axis=1).astype(np.float32)
    return found


def _ends(frame: Frame, reject: float) -> Floats:
    """Where the elements of each row lie without the most extreme ones, `[rows, 2]`."""
    low, high = (frame.statistics[:, STATISTICS.index(name)] for name in ("min", "max"))
    return quantiles(frame.histograms, [reject / 2, 1 - reject / 2], low=low, high=high)


def _axes(ends: Floats) -> Floats:
    """The axis of each series: from its usual lowest to its usual highest end, `[series, 2]`.

    A few steps that exploded do not squash the others. A constant gets some room.
    """
    axes = np.full((len(ends), 2), np.nan)
    known = np.isfinite(ends).any(axis=(1, 2))
    low = np.nanquantile(ends[known, :, 0], 0.05, axis=1)
    high = np.nanquantile(ends[known, :, 1], 0.95, axis=1)
    room = np.where(high > low, 0.0, np.maximum(np.abs(low) / 10, 1e-12))
    axes[known] = np.stack([low - room, high + room], axis=1)
    # What the chart reads is the rounded axis, so that is what the rows are cut from.
    return axes.astype(np.float32).astype(np.float64)


def _cells(frame: Frame, axes: Floats) -> Codes:
    """The column of each of the frame's series, `[series, ROWS]`."""
    edges = axes[:, :1] + (axes[:, 1:] - axes[:, :1]) * np.linspace(0, 1, INNER + 1)
    below = np.nan_to_num(_below(frame, edges))
    total = _totals(frame.histograms)[frame.rows].astype(np.float64)[:, None]
    counts = np.diff(below, axis=1, prepend=0.0, append=total)
    codes = share_codes(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
    statistics = _told(frame.statistics)[frame.rows]
    is_lost = (statistics[:, TOLD.index("sampled")] == 0) & (statistics[:, TOLD.index("nonfinite")] > 0)
    return np.where(is_lost[:, None], NOT_FINITE, codes)


def _totals(histograms: Histograms) -> npt.NDArray[np.int64]:
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    found: npt.NDArray[np.int64] = np.diff(reached[histograms.offsets.astype(np.int64)])
    return found


def _below(frame: Frame, edges: Floats) -> Floats:
    """How many elements of each series lie below each of its `edges`, `[series, edges]`.

    Elements are taken as spread evenly within their bucket, as far as the row's extremes allow.
    """
    histograms, rows = frame.histograms, frame.rows.astype(np.int64)[:, None]
    if not len(histograms.buckets):
        return np.zeros_like(edges)
    row_of_entry = np.repeat(np.arange(len(histograms)), _entries(histograms))
    keys = row_of_entry * _SPAN + histograms.buckets
    sought = np.nan_to_num(edges).astype(np.float32)
    at = np.searchsorted(keys, rows * _SPAN + bucket_of(sought))
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    before = reached[at] - reached[histograms.offsets.astype(np.int64)[rows]]
    entry = np.minimum(at, len(keys) - 1)
    is_inside = keys[entry] == rows * _SPAN + bucket_of(sought)
    return before + np.where(is_inside, _share_below(frame, entry, sought) * histograms.counts[entry], 0.0)


def _entries(histograms: Histograms) -> npt.NDArray[np.int64]:
    """How many buckets each row has."""
    offsets = histograms.offsets.astype(np.int64)
    return offsets[1:] - offsets[:-1]


def _share_below(frame: Frame, entry: npt.NDArray[np.int64], edges: npt.NDArray[np.float32]) -> Floats:
    """The share of the elements of each entry's bucket that lie below an edge within that bucket."""
    buckets = frame.histograms.buckets[entry]
    low, high = (
        frame.statistics[frame.rows, STATISTICS.index(name)].astype(np.float64)[:, None] for name in ("min", "max")
    )
    lower = np.where(buckets == 0, 0.0, np.maximum(lower_edge(buckets), low))
    upper = np.where(buckets == 0, 0.0, np.minimum(upper_edge(buckets), high))
    width = upper - lower
    inside = np.divide(edges - lower, width, out=(edges > lower).astype(np.float64), where=width > 0)
    found: Floats = np.clip(inside, 0.0, 1.0)
    return found
