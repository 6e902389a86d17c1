"""Merges the rows of several ranks, each of which has a part of a tensor, into rows of whole tensors."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms, add
from torchgraph_explorer.moments import COLUMN, NON_FINITE, group_sum, merge_moments
from torchgraph_explorer.schema import EXTENT

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_COUNT = float(np.iinfo(np.uint32).max)
_SAME = 1e-6
"""Shares of sampled elements that differ by less are the same: counts have the precision of float32."""


def merge_parts(
    statistics: npt.NDArray[np.float32], histograms: Histograms, starts: Ints
) -> tuple[npt.NDArray[np.float32], Histograms]:
    """The statistics and histograms of tensors whose parts are the rows from each of `starts` to the next.

    They are those of the concatenated parts, to the precision of float32. With sampling they are an estimate: each part
    counts by its finite elements, and the sampled share may differ between parts. If the shares are equal, counts are
    added; otherwise the counts of parts with a smaller share are scaled up first.
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
    return merged, add(histograms, sizes, weights=scale)


def merge_fingerprints(fingerprints: npt.NDArray[np.uint64], starts: Ints) -> npt.NDArray[np.uint64]:
    """The fingerprints of tensors whose parts are the rows from each of `starts` to the next.

    They are those of the concatenated parts: hashes add up. 0 unless all parts of a tensor have one of the same extent.
    """
    extents = fingerprints & np.uint64(EXTENT)
    most, least = np.maximum.reduceat(extents, starts), np.minimum.reduceat(extents, starts)
    hashes = np.add.reduceat(fingerprints - extents, starts)
    return np.where(most == least, hashes | most, 0).astype(np.uint64)


def first_of_each_part(groups: npt.NDArray[np.generic], parts: Ints) -> Ints:
    """The indices of the rows to merge, ascending: the first row of each part within its group.

    `groups` ascend. Rows with part -1 are all different parts.
    """
    own = np.where(parts < 0, -1 - np.arange(len(parts)), parts)
    order = np.lexsort((own, groups))  # stable: the first stays first
    is_new = np.append(True, (np.diff(groups[order]) != 0) | (np.diff(own[order]) != 0))[: len(order)]
    return np.sort(order[is_new])


def _elements_stood_for(rows: Floats) -> Floats:
    """Finite elements per sampled element of each row; NaN without sampled elements."""
    finite = rows[:, COLUMN["count"]] - rows[:, NON_FINITE].sum(axis=1)
    return np.where(rows[:, COLUMN["sampled"]] > 0, finite / rows[:, COLUMN["sampled"]], np.nan)


def _least(values: Floats, starts: Ints) -> Floats:
    found: Floats = np.fmin.reduceat(values, starts)
    return found


def _statistics(rows: Floats, starts: Ints, *, scale: Floats) -> Floats:
    """The statistics of the groups of `rows` that begin at `starts`; each sampled element counts `scale` times."""
    sampled, norm, zeros = (rows[:, COLUMN[name]] for name in ("sampled", "l2_norm", "zeros"))
    merged = merge_moments(rows, starts, weights=sampled * scale)
    whole = group_sum(sampled * scale, starts)
    merged[:, COLUMN["l2_norm"]] = np.where(whole > 0, np.sqrt(group_sum(norm**2, starts)), np.nan)
    share = group_sum(zeros * scale, starts) * merged[:, COLUMN["sampled"]] / whole
    merged[:, COLUMN["zeros"]] = np.where(whole > 0, share, 0.0)
    return np.clip(merged, -_LARGEST, _LARGEST)
