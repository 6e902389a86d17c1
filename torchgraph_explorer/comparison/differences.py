"""Where two records differ: in bits, by more than rounding, and by more than they fluctuate from step to step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.comparison.matching import MatchedFrames, MatchedSeries
from torchgraph_explorer.histogram import distances
from torchgraph_explorer.moments import COLUMN, NON_FINITE
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.bulk import BulkRows
from torchgraph_explorer.schema import EXTENT, Extent

Floats: TypeAlias = "npt.NDArray[np.float32]"
Flags: TypeAlias = "npt.NDArray[np.bool_]"

ROUNDING = MappingProxyType({"float64": 1e-6, "float16": 1e-3, "bfloat16": 1.6e-2, "float8_e4m3fn": 0.13})
"""Statistics that differ by less, relative to the tensor's magnitude, differ by rounding: by dtype, as in
`torch.testing.assert_close`. The statistics themselves have the precision of float32."""

FLOAT32_ROUNDING = 1e-5
"""The same for all other dtypes."""

FLUCTUATION = 5.0
"""Two series differ by more than they fluctuate if a statistic differs by so many times its usual change from one
logged step to the next, at two logged steps in a row."""

LEAST_CHANGES = 4
"""The fewest changes from one logged step to the next that tell what is usual."""

DISTANCE_FRAMES = 16
"""Frames at which the distance of all histograms is computed."""

_CHUNK = 1_000_000
"""Steps times series that are read at once; 100 bytes each."""

_NOISE = 5.0
"""Samples of other elements of the same tensor have means that differ by less than so many standard errors."""

_FOLLOWED = ("mean", "absolute_mean", "std")
"""The statistics whose fluctuation is looked at."""

_GRADIENTS = frozenset({"grad", "grad_norm"})


@dataclass(frozen=True, slots=True)
class Differences:
    """How the matched series of two models differ at matched frames. All are `[frames, series]`.

    Attributes:
        known: Both have the series at the frame.
        bits: They differ in bits; of series without fingerprints, in a statistic.
        rounding: They differ by more than rounding.
        fluctuation: They differ by more than they fluctuate.
        gaps: The largest difference of a statistic, relative to the tensor's magnitude; infinite where one has other
            numbers of NaN or infinity.
    """

    known: Flags
    bits: Flags
    rounding: Flags
    fluctuation: Flags
    gaps: Floats


def differences(
    models: tuple[ModelRecord, ModelRecord], series: MatchedSeries, frames: MatchedFrames, *, rounding: Floats
) -> Differences:
    """Compare `models` at `frames`; `rounding` is how much each of `series` may differ by rounding."""
    shape = len(frames), len(series.a)
    known, bits, beyond = (np.zeros(shape, np.bool_) for _ in range(3))
    gaps = np.full(shape, np.nan, np.float32)
    followed = np.full((2, len(_FOLLOWED), *shape), np.nan, np.float32)
    columns = [COLUMN[name] for name in _FOLLOWED]
    is_gradient = np.array([one.kind in _GRADIENTS for one in models[0].series], np.bool_)[series.a]
    scales = models[0].gradient_scales[frames.a], models[1].gradient_scales[frames.b]
    are_scaled_alike = (scales[0] == scales[1]) | (np.isnan(scales[0]) & np.isnan(scales[1]))
    for part in _parts(shape, models):
        a = _columns(models[0].rows(frames.a[part]), series.a)
        b = _columns(models[1].rows(frames.b[part]), series.b)
        known[part] = ~(np.isnan(a.statistics[COLUMN["count"]]) | np.isnan(b.statistics[COLUMN["count"]]))
        gaps[part] = _gaps(a.statistics, b.statistics)
        comparable = _are_comparable(a, b) & (are_scaled_alike[part, None] | ~is_gradient)
        beyond[part] = known[part] & (gaps[part] > rounding + np.where(comparable, 0, _noise(a.statistics)))
        differ = a.fingerprints != b.fingerprints
        beyond[part] &= ~comparable | differ
        # What rounding does shows in every sample: this is a change of a few elements, of unknown size.
        beyond[part] |= known[part] & comparable & differ & _is_sampled(a.statistics) & (gaps[part] == 0)
        beyond[part] |= known[part] & (a.statistics[COLUMN["count"]] != b.statistics[COLUMN["count"]])
        unlike = np.where(_is_sampled(a.statistics) | ~are_scaled_alike[part, None], beyond[part], gaps[part] != 0)
        bits[part] = known[part] & np.where(comparable, differ, unlike)
        followed[0][:, part], followed[1][:, part] = a.statistics[columns], b.statistics[columns]
    fluctuation = _beyond_fluctuation(followed, rounding) & beyond
    return Differences(known, bits, beyond, fluctuation, np.where(known, gaps, np.nan).astype(np.float32))


def frame_distances(
    models: tuple[ModelRecord, ModelRecord], series: MatchedSeries, frames: MatchedFrames
) -> npt.NDArray[np.float64]:
    """The distance of the histograms of matched series at some frames, `[frames, series]`; NaN where one lacks it."""
    found = np.full((len(frames), len(series.a)), np.nan)
    for at, (a, b) in enumerate(zip(frames.a.tolist(), frames.b.tolist(), strict=True)):
        one, other = models[0].frame(a), models[1].frame(b)
        place_a, place_b = _places(one.series, series.a), _places(other.series, series.b)
        both = np.flatnonzero((place_a >= 0) & (place_b >= 0))
        rows_a, rows_b = one.rows[place_a[both]].astype(np.intp), other.rows[place_b[both]].astype(np.intp)
        have = ~(one.without_histogram[rows_a] | other.without_histogram[rows_b])
        both, rows_a, rows_b = both[have], rows_a[have], rows_b[have]
        found[at, both] = distances(one.histograms.of(rows_a), other.histograms.of(rows_b))
    return found


def _parts(shape: tuple[int, int], models: tuple[ModelRecord, ModelRecord]) -> Iterator[slice]:
    """The frames in parts that are read at once: all series are read, also those without a counterpart."""
    size = max(1, _CHUNK // max(1, *(len(model.series) for model in models)))
    return (slice(at, min(at + size, shape[0])) for at in range(0, shape[0], size))


def _columns(rows: BulkRows, series: npt.NDArray[np.int64]) -> BulkRows:
    return BulkRows(rows.statistics[:, :, series], rows.fingerprints[:, series])


def _places(present: npt.NDArray[np.uint32], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The index of each of `wanted` in `present`; -1 where it is not there."""
    order = np.argsort(present)
    if not len(order):
        return np.full(len(wanted), -1)
    at = order[np.minimum(np.searchsorted(present, wanted, sorter=order), len(order) - 1)]
    return np.where(present[at] == wanted, at, -1)


def _are_comparable(a: BulkRows, b: BulkRows) -> Flags:
    """Both have a fingerprint, and of the same elements."""
    extents = a.fingerprints & np.uint64(EXTENT), b.fingerprints & np.uint64(EXTENT)
    same: Flags = (extents[0] == extents[1]) & (extents[0] != Extent.NONE)
    return same


def _is_sampled(statistics: Floats) -> Flags:
    with np.errstate(all="ignore"):  # a record may count more than float32 can
        finite = statistics[COLUMN["count"]] - statistics[NON_FINITE].sum(axis=0)
    sampled: Flags = statistics[COLUMN["sampled"]] < finite
    return sampled


def _gaps(a: Floats, b: Floats) -> Floats:
    with np.errstate(all="ignore"):
        pairs = {name: (a[column], b[column]) for name, column in COLUMN.items()}
        level = _largest(*pairs["absolute_mean"])
        ends = np.fmax(_largest(*pairs["min"]), _largest(*pairs["max"]))
        scales = {"mean": level, "absolute_mean": level, "std": np.fmax(level, _largest(*pairs["std"]))}
        scales |= {"min": ends, "max": ends, "l2_norm": _largest(*pairs["l2_norm"])}
        gap = np.zeros(a.shape[1:], np.float32)
        for name, scale in scales.items():
            one, other = pairs[name]
            gap = np.fmax(gap, np.where(one == other, 0, np.abs(one.astype(np.float64) - other) / scale))
            gap[np.isnan(one) != np.isnan(other)] = np.inf
        count, others = pairs["count"]  # another shape, such as that of a last batch, is no NaN
        gap = np.fmax(
            gap, np.where(count == others, 0, np.abs(count.astype(np.float64) - others) / np.fmax(count, others))
        )
        gap[(a[NON_FINITE] != b[NON_FINITE]).any(axis=0)] = np.inf
        return gap.astype(np.float32)


def _largest(one: Floats, other: Floats) -> Floats:
    return np.fmax(np.abs(one), np.abs(other))


def _noise(statistics: Floats) -> Floats:
    """How much the statistics of two samples of one tensor may differ, relative to its magnitude."""
    with np.errstate(all="ignore"):
        share = statistics[COLUMN["std"]] / statistics[COLUMN["absolute_mean"]]
        noise = _NOISE * share * np.sqrt(2 / statistics[COLUMN["sampled"]])
    return np.where(_is_sampled(statistics), np.where(np.isfinite(noise), np.maximum(noise, 0.5), 1.0), 0).astype(
        np.float32
    )


def _beyond_fluctuation(followed: npt.NDArray[np.float32], rounding: Floats) -> Flags:
    """Where one of the statistics of `[2, statistics, frames, series]` differs by more than it fluctuates."""
    frames = followed.shape[2]
    found = np.zeros(followed.shape[2:], np.bool_)
    if frames <= LEAST_CHANGES:
        return found
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of series without two neighbouring frames
        level = np.nanmedian(np.abs(followed[:, 1]), axis=(0, 1))
        for a, b in zip(followed[0], followed[1], strict=True):
            usual = np.fmax(_usual_change(a), _usual_change(b))
            found |= np.abs(a - b) > FLUCTUATION * np.fmax(usual, rounding * level)
        found |= np.isnan(followed[0]).any(axis=0) != np.isnan(followed[1]).any(axis=0)
    last = found[-1:]
    stays: Flags = found & np.concatenate([found[1:], last])
    return stays


def _usual_change(values: Floats) -> Floats:
    """The median change of each series of `[frames, series]` from one frame to the next."""
    changes = np.abs(np.diff(values, axis=0))
    usual = np.nanmedian(changes, axis=0)
    enough = (~np.isnan(changes)).sum(axis=0) >= LEAST_CHANGES
    return np.where(enough, usual, np.inf).astype(np.float32)
