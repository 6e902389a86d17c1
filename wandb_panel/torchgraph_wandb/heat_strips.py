"""Histograms over the steps as heat strips of a few rows, for all series at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms, counts_below, drawn_range
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

HAS_NAN, HAS_INFINITY, IS_MISSING, HAS_NO_HISTOGRAM = 1, 2, 4, 8
"""Flags of a step of a series. A mask's infinity does not count; see `record.nonfinite`."""

_AROUND_MEAN = (1, 1.0), (2, 0.3)
_EXTREMES = 0.05
"""Without a histogram: how strong a row is that lies within so many standard deviations of the mean, or elsewhere."""

Floats = npt.NDArray[np.float64]

SMALLEST_NORMAL = 2.0**-126
"""The smallest normal float32; what is smaller is a rest of the bucket of the zeros."""

DRIFT_ROOM = 1 / 8
"""Room at each end of an axis: a steady drift loses that much when a tenth of its ends is left out."""


@dataclass(frozen=True, slots=True)
class HeatStrips:
    """The strips of every series.

    Attributes:
        axes: Where the inner rows of each series begin and end, `[series, 2]`; NaN without any finite value.
        cells: Codes of the share of a step's elements in each row, `[series, steps, ROWS]`, the lowest row first. All
            rows are `NOT_FINITE` at a step without a finite element, and `NOT_RECORDED` at a step without the series.
            At a step without a histogram, rows are strong near the mean, and weak between the smallest and largest
            element.
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

    `reject` is the proportion of outliers that the axes leave out, see `histogram.drawn_range`.
    """
    shape = (len(series), len(frames))
    statistics = np.full((*shape, len(STEP_STATISTICS)), np.nan, dtype=np.float32)
    ends = np.full((*shape, 2), np.nan)
    for column, frame in enumerate(frames):
        statistics[frame.series, column] = _step_statistics(frame.statistics)[frame.rows]
        ends[frame.series, column] = _ends(frame, reject)[frame.rows]
    axes = _axes(ends, reject, full=_full(statistics))
    cells = np.full((*shape, ROWS), NOT_RECORDED, dtype=np.int64)
    for column, frame in enumerate(frames):
        cells[frame.series, column] = _cells(frame, axes[frame.series])
    return HeatStrips(axes, cells, step_flags(frames, series), statistics)


def step_flags(frames: Iterable[Frame], series: Sequence[Series]) -> npt.NDArray[np.uint8]:
    """The flags of `series` at each of `frames`, `[series, frames]`."""
    known_traits = traits(series)
    columns = []
    for frame in frames:
        column = np.full(len(series), IS_MISSING, dtype=np.uint8)
        column[frame.series] = _flags(frame, known_traits)
        columns.append(column)
    return np.stack(columns, axis=1) if columns else np.zeros((len(series), 0), dtype=np.uint8)


def _flags(frame: Frame, known_traits: Traits) -> npt.NDArray[np.uint8]:
    """The flags of each of the frame's series."""
    statistics = frame.statistics[frame.rows]
    is_nonfinite = are_nonfinite(frame.series, statistics, known_traits)
    nan, above, below = (
        statistics[:, STATISTICS.index(name)] > 0 for name in ("nan", "positive_infinity", "negative_infinity")
    )
    marks = np.where(is_nonfinite, HAS_NAN * nan + HAS_INFINITY * (above | below), 0)
    found: npt.NDArray[np.uint8] = (marks + HAS_NO_HISTOGRAM * frame.without_histogram[frame.rows]).astype(np.uint8)
    return found


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
    """The range that each row is drawn in, `[rows, 2]`."""
    low, high = (frame.statistics[:, STATISTICS.index(name)] for name in ("min", "max"))
    drawn = drawn_range(frame.histograms, reject, low=low, high=high)
    return np.where(frame.without_histogram[:, None], np.stack([low, high], axis=1), drawn)


def range_over_time(ends: Floats, *, reject: float) -> Floats:
    """The range that each series is drawn in, `[series, 2]`, from the ranges of its steps, `[series, steps, 2]`.

    Leaves out the proportion `reject` of the ends that is most extreme, so that a few steps that exploded do not squash
    the others, and adds some room for a drift. NaN without a finite end. It is the `extentOfEnds` of the viewer;
    tests/contracts/ranges.json has cases for both.
    """
    values = np.sort(np.where(np.isfinite(ends), ends, np.nan).reshape(len(ends), -1), axis=1)  # NaN comes last
    count = np.isfinite(values).sum(axis=1)
    found = np.full((len(ends), 2), np.nan)
    rows = np.flatnonzero(count)
    last = count[rows] - 1
    skipped = np.floor(max(0.0, reject) / 2 * last).astype(np.int64)
    low, high = values[rows, skipped], values[rows, last - skipped]
    room = DRIFT_ROOM * (high - low)
    found[rows] = np.stack(
        [np.maximum(values[rows, 0], low - room), np.minimum(values[rows, last], high + room)], axis=1
    )
    return found


def _full(statistics: npt.NDArray[np.float32]) -> Floats:
    """The smallest and the largest element of each series over all steps, `[series, 2]`; NaN without any."""
    low, high = (statistics[..., STEP_STATISTICS.index(name)].astype(np.float64) for name in ("min", "max"))
    ends = np.stack([np.fmin.reduce(low, axis=1), np.fmax.reduce(high, axis=1)], axis=1)
    return np.where(np.isfinite(ends), ends, np.nan)


def _axes(ends: Floats, reject: float, *, full: Floats) -> Floats:
    """The axis of each series, `[series, 2]`. That of a constant gets some width.

    Where outliers are all but zeros, it is the `full` range, as `robustExtent` of the viewer has it.
    """
    found = range_over_time(ends, reject=reject)
    is_zero = (np.abs(found).max(axis=1) < SMALLEST_NORMAL) & np.isfinite(full).all(axis=1)
    found = np.where(is_zero[:, None], full, found)
    low, high = found.T
    width = np.where(high > low, 0.0, np.where(low == 0, 1.0, np.abs(low) / 10))
    # The chart reads the rounded axis, so the rows must be cut from that one.
    return np.stack([low - width, high + width], axis=1).astype(np.float32).astype(np.float64)


def _cells(frame: Frame, axes: Floats) -> Codes:
    """The cells of each of the frame's series, `[series, ROWS]`."""
    edges = axes[:, :1] + (axes[:, 1:] - axes[:, :1]) * np.linspace(0, 1, INNER + 1)
    low, high = (frame.statistics[:, STATISTICS.index(name)] for name in ("min", "max"))
    below = np.nan_to_num(counts_below(frame.histograms, frame.rows.astype(np.int64), edges, low=low, high=high))
    total = _totals(frame.histograms)[frame.rows].astype(np.float64)[:, None]
    counts = np.diff(below, axis=1, prepend=0.0, append=total)
    shares = np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)
    is_without = frame.without_histogram[frame.rows]
    shares[is_without] = _strengths(frame.statistics[frame.rows[is_without]], edges[is_without])
    codes = share_codes(shares)
    statistics = _step_statistics(frame.statistics)[frame.rows]
    has_no_finite = (statistics[:, STEP_STATISTICS.index("sampled")] == 0) & (
        statistics[:, STEP_STATISTICS.index("nonfinite")] > 0
    )
    return np.where(has_no_finite[:, None], NOT_FINITE, codes)


def _strengths(statistics: npt.NDArray[np.float32], edges: Floats) -> Floats:
    """How strong each row is that has no histogram, `[rows, ROWS]`; `edges` are those of the inner rows."""
    low, high, mean, std = (
        statistics[:, STATISTICS.index(name), None].astype(np.float64) for name in ("min", "max", "mean", "std")
    )
    below, above = np.full((len(edges), 1), -np.inf), np.full((len(edges), 1), np.inf)
    lower, upper = np.concatenate([below, edges], axis=1), np.concatenate([edges, above], axis=1)
    is_there = (upper >= low) & (lower <= high)
    is_there[:, :1], is_there[:, -1:] = low < edges[:, :1], high > edges[:, -1:]
    found = np.where(is_there, _EXTREMES, 0.0)
    for times, strength in reversed(_AROUND_MEAN):
        is_near = (upper >= mean - times * std) & (lower <= mean + times * std) & (found > 0)
        found = np.where(is_near, strength, found)
    return found


def _totals(histograms: Histograms) -> npt.NDArray[np.int64]:
    """How many elements each row has."""
    reached = np.concatenate(([0], np.cumsum(histograms.counts, dtype=np.int64)))
    found: npt.NDArray[np.int64] = np.diff(reached[histograms.offsets.astype(np.int64)])
    return found
