"""`model.changes` and `model.related`, on series that are known to move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import logged, write
from torchgraph_explorer import open_run
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.histogram import Histograms, bucket_of
from torchgraph_explorer.run import Model
from torchgraph_explorer.schema import STATISTICS, Frame, Series

pytestmark = pytest.mark.slow

STEPS = 80
NOISY = 40
SERIES = tuple(Series(number, f"m{number}", 0, "output", "output", "value") for number in range(NOISY))
Floats = npt.NDArray[np.float64]


def frame(step: int, samples: Floats) -> Frame:
    """Of series with these elements, `[series, elements]`."""
    finite = np.where(np.isfinite(samples), samples, np.nan)
    columns = dict.fromkeys(STATISTICS, np.zeros(len(samples)))
    columns |= {"count": np.full(len(samples), float(samples.shape[1])), "nan": np.isnan(samples).sum(1)}
    columns |= {"sampled": columns["count"] - columns["nan"], "zeros": (samples == 0).sum(1)}
    columns |= {"min": np.nanmin(finite, 1), "max": np.nanmax(finite, 1), "mean": np.nanmean(finite, 1)}
    columns |= {"absolute_mean": np.nanmean(np.abs(finite), 1), "std": np.nanstd(finite, 1)}
    columns["l2_norm"] = np.sqrt(np.nansum(finite**2, 1))
    parts = [np.unique(bucket_of(row[np.isfinite(row)].astype(np.float32)), return_counts=True) for row in samples]
    offsets = np.cumsum([0, *(len(buckets) for buckets, _ in parts)]).astype(np.uint32)
    found = [np.concatenate(one) for one in zip(*parts, strict=True)]
    histograms = Histograms(offsets, found[0].astype(np.int16), found[1].astype(np.uint32))
    ids = np.arange(len(samples), dtype=np.uint32)
    statistics = np.stack([columns[name] for name in STATISTICS], axis=1).astype(np.float32)
    return Frame(step, 2_000.0 + step, None, None, ids, ids, statistics, histograms)


def recorded(
    folder: Path, scale_of: Callable[[int], Floats], alter: Callable[[int, Floats], None] | None = None
) -> Model:
    """Each series is noise times its scale at the step."""
    rng = np.random.default_rng(0)
    frames = []
    for step in range(STEPS):
        samples = rng.standard_normal((NOISY, 64)) * scale_of(step)[:, None]
        if alter is not None:
            alter(step, samples)
        frames.append(frame(step, samples))
    write(folder, SERIES, *frames, logged(list(range(STEPS)), loss=[float(scale_of(step)[0]) for step in range(STEPS)]))
    return open_run(folder).model()


def steady(_step: int) -> Floats:
    return np.ones(NOISY)


def grown(step: int) -> Floats:
    return np.where(np.arange(NOISY) == 7, 8.0 if step >= 60 else 1.0, 1.0)


def make_nan(step: int, samples: Floats) -> None:
    if step >= 60:
        samples[7, :3] = np.nan


def make_zero(step: int, samples: Floats) -> None:
    if step == 60:
        samples[7, :50] = 0.0


def make_two_heaps(step: int, samples: Floats) -> None:
    """The same mean and standard deviation in another shape."""
    if step == 60:
        samples[7] = np.where(np.arange(64) % 2, 1.0, -1.0)


CASES = {
    "size": (grown, None, {"size", "std", "largest", "distribution"}),
    "NaN": (steady, make_nan, {"nonfinite"}),
    "zeros": (steady, make_zero, {"zeros"}),
    "shape": (steady, make_two_heaps, {"distribution", "largest"}),
}


@pytest.mark.parametrize(("scale_of", "alter", "measures"), CASES.values(), ids=CASES)
def test_what_changed_comes_first_at_the_step(
    tmp_path: Path, scale_of: Callable[[int], Floats], alter: Callable[[int, Floats], None] | None, measures: set[str]
) -> None:
    found = recorded(tmp_path, scale_of, alter).changes(60)
    assert (found.step, found.since) == (60, 59)
    first = found.ranked[0]
    assert (first.series.module, first.measure in measures) == ("m7", True)
    assert first.score > found.usual


def test_where_nothing_changed_no_score_is_far_beyond_the_usual_one(tmp_path: Path) -> None:
    model = recorded(tmp_path, steady)
    for step in (50, 60, 70):
        found = model.changes(step)
        assert found.ranked[0].score < 2.5 * found.usual


def test_a_jump_is_not_told_again_at_the_next_step(tmp_path: Path) -> None:
    model = recorded(tmp_path, grown)
    found = {one.series.module: one.score for one in model.changes(61).ranked}
    assert found["m7"] < 2.5 * model.changes(61).usual


def test_two_steps_are_compared_across_what_lies_between(tmp_path: Path) -> None:
    found = recorded(tmp_path, grown).changes(70, since=50)
    assert (found.since, found.ranked[0].series.module) == (50, "m7")


@pytest.mark.parametrize(
    ("step", "since", "message"),
    [
        pytest.param(0, None, "Step 0 has no recorded step before it to compare with", id="first"),
        pytest.param(999, None, "has no recorded step 999", id="not recorded"),
        pytest.param(10, 20, "Step 10 has no recorded step before it", id="later one"),
    ],
)
def test_a_step_without_a_past_is_refused(tmp_path: Path, step: int, since: int | None, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        recorded(tmp_path, steady).changes(step, since)


def test_the_second_step_has_too_short_a_past_to_rank_anything(tmp_path: Path) -> None:
    found = recorded(tmp_path, steady).changes(1)
    assert (found.step, found.since, found.ranked) == (1, 0, ())


WALK = np.exp(np.random.default_rng(3).standard_normal(STEPS + 4).cumsum() / 2)


def name_of(what: Series | str) -> str:
    return what if isinstance(what, str) else what.module


def following(step: int) -> Floats:
    """Series 0, and the loss, follow a random walk; series 5 is 3 steps ahead of it, and series 9 moves against it."""
    scales = np.ones(NOISY)
    scales[0], scales[5], scales[9] = WALK[step], WALK[step + 3], 1 / WALK[step]
    return scales


def test_what_moves_with_a_scalar_or_before_it_is_found_with_its_lag(tmp_path: Path) -> None:
    found = recorded(tmp_path, following).related("loss")
    known = {name_of(one.what): (one.ahead, np.sign(one.correlation), one.is_beyond_chance) for one in found.ranked[:3]}
    assert known == {"m0": (0, 1, True), "m5": (3, 1, True), "m9": (0, -1, True)}
    assert sum(one.is_beyond_chance for one in found.ranked) <= 5
    assert 0.2 < found.chance < 0.7


def test_a_series_is_not_related_to_itself(tmp_path: Path) -> None:
    model = recorded(tmp_path, following)
    found = model.related(model.series[0])
    assert found.target == "m0, output, value"
    assert name_of(found.ranked[0].what) in {"m5", "m9"}
    assert all(name_of(one.what) != "m0" for one in found.ranked)


def test_noise_is_related_to_noise_no_more_often_than_by_chance(tmp_path: Path) -> None:
    model = recorded(tmp_path, steady)
    alarms = [any(one.is_beyond_chance for one in model.related(series).ranked) for series in model.series]
    assert sum(alarms) <= 6  # of 40; 2 are expected


def test_what_never_changes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="loss never changed at the recorded steps"):
        recorded(tmp_path, steady).related("loss")
