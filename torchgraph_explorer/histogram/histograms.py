"""Histograms of many rows: selecting, joining and adding them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram.buckets import LAST_BUCKET

Ints: TypeAlias = "npt.NDArray[np.int64]"
Floats: TypeAlias = "npt.NDArray[np.float64]"

_LARGEST_COUNT = float(np.iinfo(np.uint32).max)
_DENSE = 4
"""Cells of a table of all sums, for each entry, up to which filling one is faster than sorting the entries."""


@dataclass(frozen=True, slots=True)
class Histograms:
    """Histograms of many rows, only the non-empty buckets.

    Attributes:
        offsets: Row `r` has the entries `offsets[r]:offsets[r + 1]` of the two fields below; `[rows + 1]` uint32.
        buckets: Bucket numbers, ascending within a row, int16.
        counts: Elements in each of those buckets, at least 1, uint32.

    Example:
        >>> model = open_run("runs").model()
        >>> [series] = model.find("", role="input", kind="value")
        >>> histograms = model.history(series).histograms
        >>> int(histograms.counts.sum()) > 0
        True
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


def concatenate(parts: Sequence[Histograms]) -> Histograms:
    """The rows of all `parts`, in order; at least one part."""
    sizes = np.concatenate([np.diff(part.offsets.astype(np.int64)) for part in parts])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]).astype(np.uint32)
    buckets = np.concatenate([part.buckets for part in parts])
    return Histograms(offsets, buckets, np.concatenate([part.counts for part in parts]))


def add(histograms: Histograms, sizes: Ints, *, weights: Floats) -> Histograms:
    """The sums of `sizes` neighbouring rows each, after the counts of each row are multiplied by its weight.

    Counts are rounded, but no bucket becomes empty.
    """
    offsets = histograms.offsets.astype(np.int64)
    weighted = histograms.counts * np.repeat(weights, np.diff(offsets))
    offsets, buckets, sums = sum_entries(offsets, histograms.buckets, weighted, sizes=sizes)
    counts = np.clip(np.rint(sums), 1, _LARGEST_COUNT).astype(np.uint32)
    return Histograms(offsets.astype(np.uint32), buckets, counts)


def sum_entries(
    offsets: Ints, buckets: npt.NDArray[np.int16], counts: npt.NDArray[np.number], *, sizes: Ints
) -> tuple[Ints, npt.NDArray[np.int16], Floats]:
    """The sums of `sizes` neighbouring rows each: offsets, buckets and counts, exact up to 2**53.

    The arguments are as the fields of `Histograms`, with counts of any number type, all positive.
    """
    group = np.repeat(np.repeat(np.arange(len(sizes)), sizes), np.diff(offsets))
    lowest = int(buckets.min(initial=LAST_BUCKET))
    width = max(int(buckets.max(initial=-LAST_BUCKET)) - lowest + 1, 1)
    cells = group * width + (buckets.astype(np.int64) - lowest)
    if len(sizes) * width <= _DENSE * len(cells):
        table = np.bincount(cells, weights=counts, minlength=len(sizes) * width).astype(np.float64, copy=False)
        filled = np.flatnonzero(table)
        sums = table[filled]
    else:
        filled, at = np.unique(cells, return_inverse=True)
        sums = np.bincount(at.reshape(-1), weights=counts, minlength=len(filled)).astype(np.float64, copy=False)
    ends: Ints = np.searchsorted(filled, np.arange(len(sizes) + 1) * width)
    return ends, (filled % width + lowest).astype(np.int16), sums


def scaled_to_fit(offsets: Ints, buckets: npt.NDArray[np.int16], counts: Ints) -> Histograms:
    """Histograms with counts of any size; a row whose largest count exceeds uint32 is divided by a power of two.

    Counts are rounded up, so no bucket becomes empty.
    """
    largest = np.zeros(len(offsets) - 1, dtype=np.int64)
    sizes = np.diff(offsets)
    largest[sizes > 0] = np.maximum.reduceat(counts, offsets[:-1][sizes > 0]) if len(counts) else 0
    octaves = np.maximum(0, np.ceil(np.log2(np.maximum(largest, 1) / _LARGEST_COUNT)))
    divisors = np.int64(1) << octaves.astype(np.int64)
    fitted = -(-counts // np.repeat(divisors, sizes))
    return Histograms(offsets.astype(np.uint32), buckets, fitted.astype(np.uint32))
