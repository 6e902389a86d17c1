"""Merged histories against the same elements, pooled by numpy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import SERIES, frame, write
from tests.record.pooling import elements, histogram_of, history_of, statistics_of
from torchgraph_explorer.record.steps.merging import Bins, joined, merge, part, single, unit_for
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS


def facts(bins: Bins) -> dict[str, object]:
    """Bins as a value; statistics to the precision in which they are stored."""
    rounded = {name: np.round(getattr(bins, name), 5).tolist() for name in ("statistics", "lowest", "highest")}
    names = ("first", "last", "frames", "bad", "offsets", "buckets", "counts")
    return {**{name: getattr(bins, name).tolist() for name in names}, **{k: repr(v) for k, v in rounded.items()}}


STEPS = np.array([0, 1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 15, 40, 41, 42, 47])
GROUPS = [range(4), range(4, 7), range(7, 10), range(10, 12), range(12, 15), range(15, 16)]
"""The frames at `STEPS` by fours of steps."""


def test_a_bin_has_the_statistics_and_the_histogram_of_all_its_elements() -> None:
    frames = elements(len(STEPS))
    bins = merge(single(history_of(frames)), STEPS, 4)
    for at, group in enumerate(GROUPS):
        pooled = np.concatenate([frames[i] for i in group])
        norms = [np.linalg.norm(frames[i][np.isfinite(frames[i])].astype(np.float64)) for i in group]
        expected = statistics_of(pooled, norm=math.sqrt(np.square(norms).mean()))
        np.testing.assert_allclose(bins.statistics[at], expected, rtol=1e-5)
        entries = slice(bins.offsets[at], bins.offsets[at + 1])
        assert (bins.buckets[entries].tolist(), bins.counts[entries].tolist()) == histogram_of(pooled)


def test_a_bin_says_which_frames_it_holds_and_which_went_wrong_first() -> None:
    bins = merge(single(history_of(elements(len(STEPS)))), STEPS, 4)
    assert bins.first.tolist() == [group[0] for group in GROUPS]
    assert bins.last.tolist() == [group[-1] for group in GROUPS]
    assert bins.frames.tolist() == [len(group) for group in GROUPS]
    assert bins.bad[:2].tolist() == [3, 5]


def test_a_bin_says_between_which_values_each_statistic_was() -> None:
    history = history_of(elements(len(STEPS)))
    bins = merge(single(history), STEPS, 4)
    for at, group in enumerate(GROUPS):
        rows = history.statistics[list(group)]
        np.testing.assert_array_equal(bins.lowest[at], np.nanmin(rows, axis=0))
        np.testing.assert_array_equal(bins.highest[at], np.nanmax(rows, axis=0))


@pytest.mark.parametrize("cut", [1, 2, 5, 6, 13])
def test_merging_in_pieces_and_in_stages_gives_the_same(cut: int) -> None:
    alone = single(history_of(elements(len(STEPS))))
    fine = [merge(part(alone, 0, cut), STEPS, 2), merge(part(alone, cut), STEPS, 2)]
    assert facts(merge(joined(fine), STEPS, 8)) == facts(merge(alone, STEPS, 8))


def test_a_bin_of_nothing_finite_has_no_statistics() -> None:
    nothing = np.full(3, np.nan, dtype=np.float32)
    bins = merge(single(history_of([nothing, nothing])), np.array([0, 1]), 2)
    assert bins.statistics[0, :6].tolist() == [6, 0, 6, 0, 0, 0]
    assert np.isnan(bins.statistics[0, 6:]).all()
    assert len(bins.buckets) == 0


def test_counts_that_are_too_large_are_scaled_down_and_none_vanishes() -> None:
    history = history_of([np.array([1.0, 2.0, 2.0], dtype=np.float32)] * 2)
    huge = replace(history.histograms, counts=np.array([1, 4_000_000_000] * 2, dtype=np.uint32))
    bins = merge(single(replace(history, histograms=huge)), np.array([0, 1]), 2)
    assert bins.counts.tolist() == [2, 8_000_000_000]
    assert bins.histograms().counts.tolist() == [1, 4_000_000_000]


@pytest.mark.parametrize(
    ("count", "most", "unit"),
    [
        pytest.param(64, 64, 1, id="as many frames as bins"),
        pytest.param(65, 64, 2, id="one more"),
        pytest.param(100_000, 1024, 128, id="very many"),
        pytest.param(0, 64, 1, id="none"),
    ],
)
def test_a_unit_is_as_small_as_can_be(count: int, most: int, unit: int) -> None:
    assert unit_for(np.arange(count), most) == unit


def test_steps_that_are_rare_are_not_merged_for_those_that_are_many() -> None:
    steps = np.concatenate([np.arange(1000), np.arange(1, 61) * 1000])
    unit = unit_for(steps, 100)
    assert unit == 32
    assert len(np.unique(steps // unit)) == 91


def test_a_history_can_be_read_in_pieces(tmp_path: Path) -> None:
    write(tmp_path, SERIES, *(frame(step) for step in range(9)))
    model = open_run(tmp_path).model()
    pieces = [single(model.history(1, first, first + 4)) for first in (0, 4, 8)]
    assert facts(joined(pieces)) == facts(single(model.history(1)))
    assert len(STATISTICS) == pieces[0].statistics.shape[1]
