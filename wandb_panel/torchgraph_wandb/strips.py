"""Histograms over the steps as heat strips: few rows, few levels, for every series at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.buckets import Histograms, bucket_of, lower_edge, quantiles, upper_edge
from torchgraph_explorer.records import STATISTICS, Frame
from torchgraph_wandb.letters import LEVELS, packed_levels, packed_numbers

ROWS = 24
"""Rows of a strip. The outermost two hold what lies beyond the axis."""

INNER = ROWS - 2

MARKED = LEVELS - 1
"""Level of the topmost row at a step with NaN or infinity. What lies above the axis stays below it."""

TOLD = ("mean", "std", "min", "max", "l2_norm", "zero_share", "nonfinite")
"""What is told of each step, in this order."""

Floats = npt.NDArray[np.float64]

_SPAN = 2 * 1024 + 1
"""Numbers of buckets are from -1019 to 1019; rows of histograms are set apart by this."""


@dataclass(frozen=True, slots=True)
class Strips:
    """Every series over the steps.

    Attributes:
        axes: Where the inner rows of each series begin and end, `[series, 2]`; NaN without any finite value.
        levels: `[series, steps, ROWS]`, from 0 to 7, the lowest row first.
        told: `[series, steps, len(TOLD)]`; NaN at a step without the series.
    """

    axes: Floats
    levels: npt.NDArray[np.uint8]
    told: npt.NDArray[np.float32]

    def packed(self, series: int) -> str:
        """One series as letters: its axis, its levels from the top row down, and what is told of each step."""
        heat = packed_levels(self.levels[series, :, ::-1].T)
        return packed_numbers(self.axes[series]) + heat + packed_numbers(self.told[series])


def strips(frames: Sequence[Frame], series: int, *, reject: float) -> Strips:
    """Strips of the series 0 to `series - 1`, a column for each of `frames`.

    `reject` is the share of extreme elements, frame by frame, that the axes leave out.
    """
    told = np.full((series, len(frames), len(TOLD)), np.nan, dtype=np.float32)
    ends = np.full((series, len(frames), 2), np.nan)
    for column, frame in enumerate(frames):
        told[frame.series, column] = _told(frame.statistics)[frame.rows]
        ends[frame.series, column] = _ends(frame, reject)[frame.rows]
    axes = _axes(ends)
    levels = np.zeros((series, len(frames), ROWS), dtype=np.uint8)
    for column, frame in enumerate(frames):
        levels[frame.series, column] = _levels(frame, axes[frame.series])
    levels[..., -1] = np.where(told[..., TOLD.index("nonfinite")] > 0, MARKED, np.minimum(levels[..., -1], MARKED - 1))
    return Strips(axes, levels, told)


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


def _levels(frame: Frame, axes: Floats) -> npt.NDArray[np.uint8]:
    """The column of each of the frame's series, `[series, ROWS]`."""
    edges = axes[:, :1] + (axes[:, 1:] - axes[:, :1]) * np.linspace(0, 1, INNER + 1)
    below = np.nan_to_num(_below(frame, edges))
    total = _totals(frame.histograms)[frame.rows].astype(np.float64)[:, None]
    counts = np.diff(below, axis=1, prepend=0.0, append=total)
    most = counts.max(axis=1, keepdims=True)
    share = np.divide(counts, most, out=np.zeros_like(counts), where=most > 0)
    found: npt.NDArray[np.uint8] = np.ceil((LEVELS - 1) * np.clip(share, 0, 1) ** 0.6 - 1e-6).astype(np.uint8)
    return found


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
