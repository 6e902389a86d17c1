"""Elements, and what is to be known of them: the oracle for merged histories, by numpy alone."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tests.record.examples import SERIES
from torchgraph_explorer.histogram import Histograms, bucket_of
from torchgraph_explorer.record.steps.history import History

Values = npt.NDArray[np.float32]


def elements(count: int) -> list[Values]:
    """The elements of frames of unequal size and scale, some with NaN or infinity, some with nothing finite."""
    rng = np.random.default_rng(0)
    frames = [(rng.standard_normal(rng.integers(1, 90)) * 10.0 ** rng.integers(-3, 4)) for _ in range(count)]
    frames[3][0], frames[5][-1], frames[6] = np.nan, np.inf, np.array([np.nan, -np.inf])
    frames[7] = np.zeros(4)
    return [values.astype(np.float32) for values in frames]


def statistics_of(values: Values, norm: float | None = None) -> list[float]:
    """A row of statistics, by numpy alone."""
    finite = values[np.isfinite(values)].astype(np.float64)
    counts = [len(values), len(finite), np.isnan(values).sum(), np.isposinf(values).sum(), np.isneginf(values).sum()]
    if not len(finite):
        return [*map(float, counts), 0.0, *[math.nan] * 6]
    norm = math.sqrt(np.square(finite).sum()) if norm is None else norm
    moments = [finite.mean(), np.abs(finite).mean(), finite.std(), norm]
    return [*map(float, [*counts, (finite == 0).sum(), finite.min(), finite.max(), *moments])]


def histogram_of(values: Values) -> tuple[list[int], list[int]]:
    buckets, counts = np.unique(bucket_of(values[np.isfinite(values)]), return_counts=True)
    return buckets.tolist(), counts.tolist()


def histograms_of(frames: list[Values]) -> Histograms:
    known = {id(values): histogram_of(values) for values in {id(values): values for values in frames}.values()}
    rows = [known[id(values)] for values in frames]
    return Histograms(
        np.cumsum([0, *(len(buckets) for buckets, _ in rows)]).astype(np.uint32),
        np.array([bucket for buckets, _ in rows for bucket in buckets], dtype=np.int16),
        np.array([count for _, counts in rows for count in counts], dtype=np.uint32),
    )


def history_of(frames: list[Values]) -> History:
    """A series of one frame after the other, at the steps 0, 1, …"""
    statistics = np.array([statistics_of(values) for values in frames], dtype=np.float32)
    numbers = np.arange(len(frames))
    return History(
        SERIES[0], numbers.astype(np.uint32), numbers, numbers.astype(np.float64), statistics, histograms_of(frames)
    )
