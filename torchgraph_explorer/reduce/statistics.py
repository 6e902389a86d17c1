"""Turns samples into statistics and histograms, many rows at a time. Off the training thread, in numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.buckets import LAST_BUCKET, SHIFT, Histograms
from torchgraph_explorer.records import STATISTICS
from torchgraph_explorer.reduce.batch import Chunk

Floats = npt.NDArray[np.float32]
Wide = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

LARGEST = float(np.finfo(np.float32).max)
TABLE_ROWS = 256
"""Rows whose histograms are counted in one table, to bound its memory."""

_COLUMN = {name: i for i, name in enumerate(STATISTICS)}
_UNKNOWN = ("min", "max", "mean", "absolute_mean", "std", "l2_norm")


def reduce_chunk(chunk: Chunk) -> tuple[Floats, Histograms]:
    """The statistics `[rows, len(STATISTICS)]` and histograms of the rows of `chunk`."""
    lengths = np.array(chunk.lengths, dtype=np.int64)
    counts = np.array(chunk.counts, dtype=np.int64)
    values = chunk.values[: int(lengths.sum())]
    bad = _non_finite(chunk, values, lengths)
    finite = np.isfinite(values)
    if not finite.all():
        lengths = _sum(finite, lengths).astype(np.int64)
        values = values[finite]
    statistics = _statistics(values, lengths, counts - bad.sum(axis=1))
    statistics[:, _COLUMN["count"]] = counts
    statistics[:, [_COLUMN[name] for name in ("nan", "positive_infinity", "negative_infinity")]] = bad
    return statistics, _histograms(values, lengths)


def join(parts: Sequence[tuple[Floats, Histograms]]) -> tuple[Floats, Histograms]:
    """The rows of all `parts`, in order."""
    if not parts:
        return np.empty((0, len(STATISTICS)), np.float32), _empty()
    sizes = [np.diff(histograms.offsets) for _, histograms in parts]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))]).astype(np.uint32)
    joined = Histograms(
        offsets,
        np.concatenate([histograms.buckets for _, histograms in parts]),
        np.concatenate([histograms.counts for _, histograms in parts]),
    )
    return np.concatenate([statistics for statistics, _ in parts]), joined


def _empty() -> Histograms:
    return Histograms(np.zeros(1, np.uint32), np.empty(0, np.int16), np.empty(0, np.uint32))


def _non_finite(chunk: Chunk, values: Floats, lengths: Counts) -> Counts:
    """NaN, infinite and minus infinite elements of each row, `[rows, 3]`."""
    known = np.array([counts or (0, 0, 0) for counts in chunk.non_finite], dtype=np.int64).reshape(-1, 3)
    if np.isfinite(values).all():
        return known
    found = [_sum(mask, lengths) for mask in (np.isnan(values), np.isposinf(values), np.isneginf(values))]
    to_count = np.array([counts is None for counts in chunk.non_finite])
    return np.where(to_count[:, None], np.stack(found, axis=1), known).astype(np.int64)


def _sum(values: npt.NDArray[np.generic], lengths: Counts) -> Wide:
    return _by_row(np.add, values, lengths, empty=0.0, dtype=np.float64)


def _by_row(
    operation: np.ufunc,
    values: npt.NDArray[np.generic],
    lengths: Counts,
    *,
    empty: float,
    dtype: type[np.generic] | None = None,
) -> Wide:
    """`operation` over each row's values; `empty` for a row without any."""
    result = np.full(len(lengths), empty, dtype=np.float64)
    filled = lengths > 0
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        result[filled] = operation.reduceat(values, starts, dtype=dtype)
    return result


def _statistics(values: Floats, lengths: Counts, finite_counts: Counts) -> Floats:
    table = np.full((len(lengths), len(STATISTICS)), np.nan, dtype=np.float64)
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _sum(wide, lengths) / lengths
        spread = np.square(wide - np.repeat(mean, lengths))
        table[:, _COLUMN["mean"]] = mean
        table[:, _COLUMN["absolute_mean"]] = _sum(np.abs(wide), lengths) / lengths
        table[:, _COLUMN["std"]] = np.sqrt(_sum(spread, lengths) / lengths)
        np.square(wide, out=wide)
        table[:, _COLUMN["l2_norm"]] = np.sqrt(_sum(wide, lengths) / lengths * finite_counts)
    table[:, _COLUMN["min"]] = _by_row(np.minimum, values, lengths, empty=np.nan)
    table[:, _COLUMN["max"]] = _by_row(np.maximum, values, lengths, empty=np.nan)
    table[:, _COLUMN["zeros"]] = _sum(values == 0, lengths)
    table[:, _COLUMN["sampled"]] = lengths
    return np.clip(table, -LARGEST, LARGEST).astype(np.float32)


def _histograms(values: Floats, lengths: Counts) -> Histograms:
    ends = np.cumsum(lengths)
    parts = []
    for first in range(0, len(lengths), TABLE_ROWS):
        some = lengths[first : first + TABLE_ROWS]
        start = int(ends[first] - lengths[first])
        parts.append(_count(values[start : start + int(some.sum())], some))
    if not parts:
        return _empty()
    return join([(np.empty((0, len(STATISTICS)), np.float32), part) for part in parts])[1]


def _count(values: Floats, lengths: Counts) -> Histograms:
    """Count each row's values into the buckets of `buckets.py`."""
    width = 1 << (32 - SHIFT)
    codes = (values.view(np.uint32) >> np.uint32(SHIFT)).astype(np.int64)
    codes += np.repeat(np.arange(len(lengths)) * width, lengths)
    table = np.bincount(codes, minlength=len(lengths) * width).reshape(len(lengths), 2, width // 2)
    positive, negative = table[:, 0, : LAST_BUCKET + 1], table[:, 1, : LAST_BUCKET + 1]
    ordered = np.concatenate([negative[:, :0:-1], positive], axis=1)
    ordered[:, LAST_BUCKET] += negative[:, 0]
    rows, columns = np.nonzero(ordered)
    offsets = np.searchsorted(rows, np.arange(len(lengths) + 1)).astype(np.uint32)
    return Histograms(offsets, (columns - LAST_BUCKET).astype(np.int16), ordered[rows, columns].astype(np.uint32))
