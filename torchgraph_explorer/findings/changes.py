"""Which series changed at a step: ranks them by how far they are from their own past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.findings.measures import MEASURES, Floats, measures_of
from torchgraph_explorer.histogram import Histograms, concatenate
from torchgraph_explorer.histogram.distance import distances
from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import COSTS, Frame, Series

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

PAST = 32
"""How many recorded steps before a step count as its past."""

LEAST_PAST = 4
"""A series with a shorter past is not ranked, unless it became NaN or infinite."""

USUAL_STEPS = 8
"""How many earlier steps are ranked as well, to find out which scores are usual."""

PAST_DISTANCES = 6
"""How many earlier steps have their histograms compared."""

_FLOOR = {"size": 0.02, "std": 0.02, "largest": 0.05, "mean": 0.02, "zeros": 0.005, "nonfinite": 1e-9}
"""The spread of a measure's past is taken to be at least this. Otherwise rounding would count as a change where nothing
else moves."""

_DISTANCE_FLOOR = 0.02

_LEAST_ELEMENTS = 32
"""Histograms of fewer elements are not compared: single elements move them by whole buckets."""

_TIMES_LARGEST = 2.0
"""A distance counts only if it is so many times the largest one of the past."""

_NORMAL = 1.4826
"""The standard deviation of a normal distribution, divided by its median absolute deviation."""

BEYOND = 1e6
"""The score of a series that became NaN or infinite."""


@dataclass(frozen=True, slots=True)
class Change:
    """How a series changed at a step.

    Attributes:
        series: The series.
        score: How unlike its own past it is, in robust standard deviations: the largest of all its measures, and of its
            histogram's distance.
        measure: Which of them that is: one of `MEASURES`, or `distribution`.
        before: The measure's median in the past; for `distribution`, the usual distance between steps.
        now: The measure at the step; for `distribution`, the distance from the step before.
        distance: How far its histogram is from that of the step before, from 0 to 1; NaN if there is none.
    """

    series: Series
    score: float
    measure: str
    before: float
    now: float
    distance: float


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed at a step.

    Attributes:
        step: The step.
        since: The last step of the past that it was compared with.
        ranked: Every series that can be ranked, the least like its past first; of those with the same numbers, one.
        usual: The highest score of any series at a usual step: the median over earlier ones. Many series have some
            outlier at every step by chance, so scores below this say nothing. NaN if there are too few earlier steps.
    """

    step: int
    since: int
    ranked: tuple[Change, ...]
    usual: float


def find_changes(model: ModelRecord, step: int, since: int | None = None) -> Changes:
    """Rank the series of `model` by how unlike their own past they are at `step`; see `Model.changes`."""
    frame = _frame_at(model, step)
    last = frame - 1 if since is None else _frame_at(model, since)
    if last < 0 or last >= frame:
        raise NotFoundError(f"Step {step} has no recorded step before it to compare with. Choose a later step.")
    first = max(0, last + 1 - PAST - USUAL_STEPS)
    numbers = np.append(np.arange(first, last + 1), frame)
    values = measures_of(model.statistics(numbers))
    values[:, :, [one.id for one in model.series if one.kind in COSTS]] = np.nan
    level, before = _scores(values[:, -1 - PAST :] if len(numbers) > PAST + 1 else values, is_next=since is None)
    best = np.nan_to_num(level, nan=-1.0).argmax(axis=0)
    apart, distance, usual_distance = _distances(model, last, frame)
    score = np.fmax(level.max(axis=0, initial=-1.0, where=~np.isnan(level)), apart)
    series = model.series
    ranked = []
    for at in once_each(model.frame(frame), np.lexsort((is_no_output(series), -score))):
        if not score[at] >= 0:
            continue
        is_shape = apart[at] > np.nan_to_num(level[best[at], at], nan=-1.0)
        name = "distribution" if is_shape else MEASURES[best[at]]
        was, now = (usual_distance[at], distance[at]) if is_shape else (before[best[at], at], values[best[at], -1, at])
        ranked.append(Change(series[at], float(score[at]), name, float(was), float(now), float(distance[at])))
    return Changes(step, int(model.steps[last]), tuple(ranked), _usual(values))


def is_no_output(series: Sequence[Series]) -> Flags:
    """For each series, whether it is not of an output. Of series with the same numbers, that of an output is named."""
    return np.array([one.role != "output" for one in series], dtype=np.bool_)


def once_each(frame: Frame, order: Ints) -> list[int]:
    """The series in `order`, without those that share their numbers with an earlier one, as outputs and inputs do."""
    row_of = dict(zip(frame.series.tolist(), frame.rows.tolist(), strict=True))
    firsts: dict[int, int] = {}
    return [one for one in order.tolist() if firsts.setdefault(row_of.get(one, -1 - one), one) == one]


def _frame_at(model: ModelRecord, step: int) -> int:
    steps = model.steps
    at = int(np.searchsorted(steps, step))
    if at == len(steps) or steps[at] != step:
        raise NotFoundError(f"Model {model.name!r} has no recorded step {step}. Choose one of model.steps.")
    return at


def _scores(values: Floats, *, is_next: bool) -> tuple[Floats, Floats]:
    """The score of the last step of each measure and series, `[MEASURES, series]`, and the medians of the past.

    If the step follows directly on its past, it has to differ from two things: the level of the past, and its usual
    change from step to step. So a series that drifts gets no high score, and neither does one that has jumped before.
    """
    past, now = values[:, :-1], values[:, -1]
    floor = np.array([_FLOOR[name] for name in MEASURES])[:, None]
    with np.errstate(all="ignore"):
        count = (~np.isnan(past)).sum(axis=1)
        median = _nanmedian(past)
        score = np.abs(now - median) / np.maximum(_NORMAL * _nanmedian(np.abs(past - median[:, None])), floor)
        if is_next:
            moves = np.diff(past, axis=1)
            usual = _nanmedian(moves)
            spread = np.maximum(_NORMAL * _nanmedian(np.abs(moves - usual[:, None])), floor)
            score = np.fmin(score, np.abs(now - past[:, -1] - usual) / spread)
    score[count < LEAST_PAST] = np.nan
    bad = MEASURES.index("nonfinite")
    began = (now[bad] > 0) & ~(np.nan_to_num(past[bad]) > 0).any(axis=0)
    score[bad] = np.where(began, BEYOND, np.nan)
    return score, median


def _nanmedian(values: Floats) -> Floats:
    """The median over the steps, of the values that are not NaN; NaN without any."""
    if not values.shape[1]:
        return np.full((len(values), values.shape[2]), np.nan)
    ordered = np.sort(values, axis=1)  # NaN last
    count = (~np.isnan(values)).sum(axis=1)
    low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)
    low, high = np.minimum(low, values.shape[1] - 1), np.minimum(high, values.shape[1] - 1)
    both = [np.take_along_axis(ordered, at[:, None], axis=1)[:, 0] for at in (low, high)]
    return np.where(count > 0, (both[0] + both[1]) / 2, np.nan)


def _usual(values: Floats) -> float:
    """The median, over earlier steps, of the highest score of any series."""
    steps = values.shape[1] - 1
    highest = []
    for at in range(steps - 1, max(LEAST_PAST, steps - 1 - USUAL_STEPS), -1):
        score, _ = _scores(values[:, max(0, at - PAST) : at + 1], is_next=True)
        highest.append(float(np.nanmax(np.minimum(score, BEYOND), initial=0.0)))
    return float(np.median(highest)) if highest else float("nan")


def _distances(model: ModelRecord, last: int, frame: int) -> tuple[Floats, Floats, Floats]:
    """For each series: the score of its histogram's distance, the distance, and the usual one. NaN or -1 without."""
    count = len(model.series)
    frames = [model.frame(at) for at in (*range(max(0, last - PAST_DISTANCES), last + 1), frame)]
    moved = np.full((len(frames) - 1, count), np.nan)
    for at, (one, other) in enumerate(pairwise(frames)):
        both = np.intersect1d(_large(one), _large(other))
        moved[at, both] = distances(_histograms(one, both), _histograms(other, both))
    past, now = moved[None, :-1], moved[-1]
    if past.shape[1] < LEAST_PAST:
        return np.full(count, -1.0), now, np.full(count, np.nan)
    with np.errstate(all="ignore"):
        usual = _nanmedian(past)[0]
        spread = np.maximum(_NORMAL * _nanmedian(np.abs(past - usual))[0], _DISTANCE_FLOOR)
        is_larger = now > _TIMES_LARGEST * np.fmax.reduce(past[0], axis=0)
        score = np.where(is_larger, np.nan_to_num((now - usual) / spread, nan=-1.0), -1.0)
    return score, now, usual


def _large(frame: Frame) -> npt.NDArray[np.uint32]:
    """The series of a frame whose histograms have enough elements."""
    is_large = (frame.statistics[:, COLUMN["sampled"]] >= _LEAST_ELEMENTS) & ~frame.without_histogram
    found: npt.NDArray[np.uint32] = frame.series[is_large[frame.rows]]
    return found


def _histograms(frame: Frame, series: npt.NDArray[np.uint32]) -> Histograms:
    order = np.argsort(frame.series)
    rows = frame.rows[order[np.searchsorted(frame.series[order], series)]]
    found = frame.histograms.of(rows.astype(np.intp))
    return found if len(found) else concatenate([found])
