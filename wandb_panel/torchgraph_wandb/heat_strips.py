"""Histograms over the steps as heat strips of a few rows, for all series at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms, bucket_of, lower_edge, quantiles, upper_edge
from torchgraph_explorer.record.nonfinite import Traits, are_nonfinite, traits
from torchgraph_explorer.schema import STATISTICS, Frame, Series
from torchgraph_wandb.text_encoding import (
    NOT_FINITE,
    NOT_RECORDED,
    Codes,
    encode_codes,
    encode_flags,
    encode_floats,
    share_codes,
)

ROWS = 24
"""Rows of a strip. The first and the last one hold the elements beyond the axis."""

INNER = ROWS - 2

STEP_STATISTICS = ("mean", "std", "min", "max", "l2_norm", "zero_share", "nonfinite", "sampled")
"""The statistics kept of each step, in this order."""

HAS_NAN, HAS_INFINITY, IS_MISSING = 1, 2, 4
"""Flags of a step of a series. A mask's infinity does not count; see `record.nonfinite`."""

Floats = npt.NDArray[np.float64]

_SPAN = 2 * 1024 + 1
"""Bucket numbers are from -1019 to 1019; adding this many per row keeps the rows of a `Histograms` apart."""


@dataclass(frozen=True, slots=True)
class HeatStrips:
    """The strips of every series.

    Attributes:
        axes: Where the inner rows of each series begin and end, `[series, 2]`; NaN without any finite value.
        cells: Codes of the share of a step's elements in each row, `[series, steps, ROWS]`, the lowest row first. All
            rows are `NOT_FINITE` at a step without a finite element, and `NOT_RECORDED` at a step without the series.
        flags: The flags above, `[series, steps]`.
        statistics: `[series, steps, len(STEP_STATISTICS)]`; NaN at a step without the series.
    """

    axes: Floats
    cells: Codes
    flags: npt.NDArray[np.uint8]
    statistics: npt.NDArray[np.float32]

    def encoded(self, series: int) -> str:
        """One series as text: axis, flags, cells step by step from the top row down, statistics step by step."""
        parts = (encode_flags(self.flags[series]), encode_codes(self.cells[series, :, ::-1]))
        return encode_floats(self.axes[series]) + "".join(parts) + encode_floats(self.statistics[series])


def heat_strips(frames: Sequence[Frame], series: Sequence[Series], *, reject: float) -> HeatStrips:
    """The strips of `series`, with a column for each of `frames`.

    `reject` is the share of extreme elements that the axes leave out of each frame.
    """
    shape = (len(series), len(frames))
    statistics = np.full((*shape, len(STEP_STATISTICS)), np.nan, dtype=np.float32)
    ends = np.full((*shape, 2), np.nan)
    flags = np.full(shape, IS_MISSING, dtype=np.uint8)
    known_traits = traits(series)
    for column, frame in enumerate(frames):
        statistics[frame.series, column] = _step_statistics(frame.statistics)[frame.rows]
        ends[frame.series, column] = _ends(frame, reject)[frame.rows]
        flags[frame.series, column] = _flags(frame, known_traits)
    axes = _axes(ends)
    cells = np.full((*shape, ROWS), NOT_RECORDED, dtype=np.int64)
    for column, frame in enumerate(frames):
        cells[frame.series, column] = _cells(frame, axes[frame.series])
    return HeatStrips(axes, cells, flags, statistics)


def _flags(frame: Frame, known_traits: Traits) -> npt.NDArray[np.uint8]:
    """The flags of each of the frame's series."""
    statistics = frame.statistics[frame.rows]
    is_nonfinite = are_nonfinite(frame.series, statistics, known_traits)
    nan, above, below = (
        statistics[:, STATISTICS.index(name)] > 0 for name in ("nan", "positive_infinity", "negative_infinity")
    )
    return np.where(is_nonfinite, HAS_NAN * nan + HAS_INFINITY * (above | below), 0).astype(np.uint8)


def _step_statistics(statistics: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """`[rows, len(STEP_STATISTICS)]`."""
    column = {name: statistics[:, number].astype(np.float64) for number, name in enumerate(STATISTICS)}
    column["zero_share"] = np.divide(
        column["zeros"], column["sampled"], out=np.zeros(len(statistics)), where=column["sampled"] > 0
    )
    column["nonfinite"] = column["nan"] + column["positive_infinity"] + column["negative_infinity"]
    found: npt.NDArray[np.float32] = np.stack([column[name] for name in STEP_STATISTICS], axis=1).astype(np.float32)
    return found


def _ends(frame: Frame, reject: float) -> Floats:
    """The range of each row's elements without the most extreme ones, `[rows, 2]`."""
    low, high = (frame.statistics[:, STATISTICS.index(name)] for name in ("min", "max"))
    return quantiles(frame.histograms, [reject / 2, 1 - reject / 2], low=low, high=high)


def _axes(ends: Floats) -> Floats:
    """The axis of each series: from its typical lowest to its typical highest end, `[series, 2]`.

    A few steps that exploded do not squash the others. The axis of a constant gets some width.
    """
    axes = np.full((len(ends), 2), np.nan)
    known = np.isfinite(ends).any(axis=(1, 2))
    low = np.nanquantile(ends[known, :, 0], 0.05, axis=1)
    high = np.nanquantile(ends[known, :, 1], 0.95, axis=1)
    room = np.where(high > low, 0.0, np.maximum(np.abs(low) / 10, 1e-12))
    axes[known] = np.stack([low - room, high + room], axis=1)
    # The chart reads the rounded axis, so the rows must be cut from that one.
    return axes.astype(np.float32).astype(np.float64)


def _cells(frame: Frame, axes: Floats) -> Codes:
    """The cells of each of the frame's series, `[series, ROWS]`."""
    edges = axes[:, :1] + (axes[:, 1:] - axes[:, :1]) * np.linspace(0, 1, INNER + 1)
    below = np.nan_to_num(_below(frame, edges))
    total = _totals(frame.histograms)[frame.rows].astype(np.float64)[:, None]
    counts = np.diff(below, axis=1, prepend=0.0, append=total)
    codes = share_codes(np.divide(counts, total, out=np.zeros_like(counts), where=total > 0))
    statistics = _step_statistics(frame.statistics)[frame.rows]
    has_no_finite = (statistics[:, STEP_STATISTICS.index("sampled")] == 0) & (
        statistics[:, STEP_STATISTICS.index("nonfinite")] > 0
    )
    return np.where(has_no_finite[:, None], NOT_FINITE, codes)


def _totals(histograms: Histograms) -> npt.NDArray[np.int64]:
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    found: npt.NDArray[np.int64] = np.diff(reached[histograms.offsets.astype(np.int64)])
    return found


def _below(frame: Frame, edges: Floats) -> Floats:
    """How many elements of each series lie below each of its `edges`, `[series, edges]`.

    Elements are assumed to be spread evenly within their bucket, between the row's smallest and largest element.
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
    """The number of non-empty buckets of each row."""
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
