"""Merges neighbouring steps of a history, so that a long run is shown in as many bins as there are pixels.

Nothing is dropped: histograms are added, extremes are those of all steps, NaN and infinity are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms, scaled_to_fit, sum_entries
from torchgraph_explorer.moments import COLUMN, NON_FINITE, group_sum, merge_moments
from torchgraph_explorer.record.steps.history import History

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NEVER = np.iinfo(np.uint32).max
_PER_BIN = ("first", "last", "frames", "bad", "statistics", "lowest", "highest")


@dataclass(frozen=True, slots=True)
class Bins:
    """A series over time in bins of neighbouring frames, ascending. Each holds at least one frame that has the series.

    Attributes:
        first: Index of the first frame in each bin that has the series, `[n]`.
        last: Index of the last one.
        frames: How many frames of the bin have it.
        bad: Index of the first frame with NaN or infinity; without meaning if the bin has neither.
        statistics: Those of all elements of the bin together, `[n, len(STATISTICS)]`. But `l2_norm` is the root mean
            square of the frames' norms, so that it does not grow with the bin.
        lowest: The smallest value of each statistic at a frame, `[n, len(STATISTICS)]`; NaN if it was never a number.
        highest: The largest value.
        offsets: Bin `i` has the entries `offsets[i]:offsets[i + 1]` of the two fields below; `[n + 1]`.
        buckets: As in `Histograms`.
        counts: As in `Histograms`, but int64.
    """

    first: Ints
    last: Ints
    frames: Ints
    bad: Ints
    statistics: Floats
    lowest: Floats
    highest: Floats
    offsets: Ints
    buckets: npt.NDArray[np.int16]
    counts: Ints

    def __len__(self) -> int:
        return len(self.first)

    def histograms(self) -> Histograms:
        """The bins' histograms, see `scaled_to_fit`."""
        return scaled_to_fit(self.offsets, self.buckets, self.counts)


def single(history: History) -> Bins:
    """Each frame in a bin of its own."""
    frames, histograms = history.frames.astype(np.int64), history.histograms
    statistics = history.statistics.astype(np.float64)
    return Bins(
        first=frames,
        last=frames,
        frames=np.ones_like(frames),
        bad=np.where((statistics[:, NON_FINITE] > 0).any(axis=1), frames, _NEVER),
        statistics=statistics,
        lowest=statistics,
        highest=statistics,
        offsets=histograms.offsets.astype(np.int64),
        buckets=histograms.buckets,
        counts=histograms.counts.astype(np.int64),
    )


def joined(parts: Sequence[Bins]) -> Bins:
    """The bins of all `parts`, where each part begins after the one before ends."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    fields = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in (*_PER_BIN, "buckets", "counts")
    }
    return Bins(offsets=np.cumsum(sizes), **fields)


def part(bins: Bins, start: int, stop: int | None = None) -> Bins:
    """The bins from `start` up to `stop`."""
    offsets = bins.offsets[start : len(bins) + 1 if stop is None else stop + 1]
    entries = slice(offsets[0], offsets[-1])
    fields = {name: getattr(bins, name)[start:stop] for name in _PER_BIN}
    return Bins(offsets=offsets - offsets[0], buckets=bins.buckets[entries], counts=bins.counts[entries], **fields)


def merge(bins: Bins, steps: Ints, unit: int) -> Bins:
    """Merge those `bins` that begin in the same `unit` steps, counted from step 0.

    `steps` are those of the model's frames. Bins that were merged before with a divisor of `unit` give the same result
    as the single frames.
    """
    groups = steps[bins.first] // unit
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    if len(starts) == len(bins):
        return bins
    sizes = np.diff(starts, append=len(bins))
    offsets, buckets, sums = sum_entries(bins.offsets, bins.buckets, bins.counts, sizes=sizes)
    return Bins(
        first=bins.first[starts],
        last=bins.last[starts + sizes - 1],
        frames=np.add.reduceat(bins.frames, starts),
        bad=np.minimum.reduceat(bins.bad, starts),
        statistics=_merged_statistics(bins, starts),
        lowest=np.fmin.reduceat(bins.lowest, starts),
        highest=np.fmax.reduceat(bins.highest, starts),
        offsets=offsets,
        buckets=buckets,
        counts=sums.astype(np.int64),
    )


def unit_for(steps: Ints, most: int) -> int:
    """The smallest power of two such that the frames at `steps` fall into at most `most` units of so many steps.

    1 when there are no more frames than that.
    """
    unit = 1
    while len(steps) > most and np.count_nonzero(np.diff(steps // unit)) + 1 > most:
        unit *= 2
    return unit


def _merged_statistics(bins: Bins, starts: Ints) -> Floats:
    """The statistics of the elements of several bins together."""
    rows = bins.statistics
    merged = merge_moments(rows, starts, weights=rows[:, COLUMN["sampled"]])
    with np.errstate(invalid="ignore", over="ignore"):
        squares = group_sum(bins.frames * rows[:, COLUMN["l2_norm"]] ** 2, starts)
        norm = np.sqrt(squares / np.add.reduceat(bins.frames, starts))
    merged[:, COLUMN["l2_norm"]] = np.where(merged[:, COLUMN["sampled"]] > 0, norm, np.nan)
    return merged
