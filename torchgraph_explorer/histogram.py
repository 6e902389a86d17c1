"""The fixed buckets in which every histogram of every tensor is counted.

A bucket is the sign, the exponent and the two leading mantissa bits of a float32: four buckets an octave. The buckets
are numbered in the order of the values they hold, from -1019 to 1019. Bucket `b > 0` holds `[edge(b), edge(b + 1))`,
where `edge(b)` is the float32 whose bit pattern is `b << 21`; bucket `-b` is its mirror image; bucket 0 holds what is
smaller than 2**-128 in magnitude, zero included. NaN and infinity are in no bucket. Since the edges are the same for
everybody, histograms add up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SHIFT = 21
LAST_BUCKET = 1019
"""The bucket of the largest finite float32; `-LAST_BUCKET` is the smallest one."""

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""The quantiles that the views draw."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """Histograms of many rows, only the non-empty buckets.

    Attributes:
        offsets: Row `r` has the entries `offsets[r]:offsets[r + 1]` of the two fields below; `[rows + 1]` uint32.
        buckets: Bucket numbers, ascending within a row, int16.
        counts: Elements in each of those buckets, at least 1, uint32.
    """

    offsets: npt.NDArray[np.uint32]
    buckets: npt.NDArray[np.int16]
    counts: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, rows: npt.NDArray[np.intp]) -> Histograms:
        """The histograms of some rows, in their order."""
        first = self.offsets[rows].astype(np.int64)
        sizes = self.offsets[rows + 1].astype(np.int64) - first
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        entries = np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Histograms(offsets.astype(np.uint32), self.buckets[entries], self.counts[entries])

    def row(self, row: int) -> Histograms:
        """The histogram of one row, alone."""
        start, stop = int(self.offsets[row]), int(self.offsets[row + 1])
        offsets = np.array([0, stop - start], dtype=np.uint32)
        return Histograms(offsets, self.buckets[start:stop], self.counts[start:stop])


def bucket_of(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    """The bucket of each of `values`, which are finite float32 of any shape."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    magnitude = ((bits & np.uint32(0x7FFFFFFF)) >> np.uint32(SHIFT)).astype(np.int16)
    return np.where(bits >> np.uint32(31), -magnitude, magnitude).astype(np.int16)


def lower_edge(buckets: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The smallest value of each bucket (for bucket 0, minus its reach)."""
    return -upper_edge(-np.asarray(buckets, dtype=np.int64))


def upper_edge(buckets: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Where each bucket ends, towards larger values. The last bucket ends at 2**128."""
    buckets = np.asarray(buckets, dtype=np.int64)
    outer = np.where(buckets >= 0, buckets + 1, -buckets)
    edge = _magnitude(outer)
    return np.where(buckets >= 0, edge, -edge)


def _magnitude(number: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The float whose exponent and leading mantissa bits are `number`, also just past the largest float32."""
    exponent, quarter = number >> 2, number & 3
    normal = np.ldexp(1.0 + quarter / 4.0, (exponent - 127).astype(np.int32))
    subnormal = np.ldexp(quarter / 4.0, -126)
    edges: npt.NDArray[np.float64] = np.where(exponent > 0, normal, subnormal)
    return edges


def quantiles(
    histograms: Histograms, share: npt.ArrayLike, *, low: npt.ArrayLike, high: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """The values below which each `share` of a row's elements lies, `[rows, shares]`; NaN for an empty row.

    Elements are taken as spread evenly within their bucket, and `low` and `high`, the rows' smallest and largest
    element, bound the result. So the error is at most one bucket: a quarter of an octave.
    """
    share = np.atleast_1d(np.asarray(share, dtype=np.float64))
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
