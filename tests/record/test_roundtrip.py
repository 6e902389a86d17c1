from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import (
    GRAPH,
    SERIES,
    SESSION,
    facts,
    frame,
    histogram_facts,
    segment,
    write,
    write_small_run,
)
from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps import layout
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import STATISTICS, Finished, Frame


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    write_small_run(tmp_path)
    return tmp_path


def test_a_session_is_read_as_it_was_written(small_run: Path) -> None:
    model = open_run(small_run).model()
    assert (model.name, model.session, model.sessions) == ("net", SESSION, (SESSION,))
    assert model.finished == Finished(3_000.0, ("Nothing was lost.",))


def test_optional_facts_of_a_session_stay_away_or_zero(tmp_path: Path) -> None:
    session = replace(SESSION, sample_n=0, clock=None, versions={})
    write(tmp_path, session=session)
    assert open_run(tmp_path).model().session == session


def test_a_graph_is_read_as_it_was_written(small_run: Path) -> None:
    model = open_run(small_run).model()
    assert model.graphs == (GRAPH,)
    assert model.graph_revision(0) == 0


def test_series_are_read_as_they_were_written(small_run: Path) -> None:
    assert open_run(small_run).model().series == SERIES


@pytest.mark.parametrize("number", range(3))
def test_frames_are_read_as_they_were_written(number: int, small_run: Path) -> None:
    assert facts(open_run(small_run).model().frame(number)) == facts(frame(number * 10))


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(frame(0, series=()), id="without series"),
        pytest.param(frame(0, graph=None), id="of no known graph"),
        pytest.param(replace(frame(0), clock=None), id="without a clock"),
        pytest.param(replace(frame(0), clock=0.0), id="at the clock's zero"),
        pytest.param(frame(0, series=(3, 0, 2)), id="series in another order"),
        pytest.param(frame(2**53), id="of a late step"),
    ],
)
def test_odd_frames_are_read_as_they_were_written(odd: Frame, tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, odd)
    assert facts(open_run(tmp_path).model().frame(0)) == facts(odd)


def test_frames_have_their_axes(small_run: Path) -> None:
    model = open_run(small_run).model()
    assert model.steps.tolist() == [0, 10, 20]
    assert model.times.tolist() == [2_000.0, 2_010.0, 2_020.0]
    assert model.clock.tolist() == [0.0, 2.5, 5.0]
    assert model.graph_ids.tolist() == [0, 0, 0]


def test_a_frame_without_clock_or_graph_has_nan_and_minus_one(tmp_path: Path) -> None:
    write(tmp_path, SERIES, replace(frame(0, graph=None), clock=None))
    model = open_run(tmp_path).model()
    assert np.isnan(model.clock).tolist() == [True]
    assert model.graph_ids.tolist() == [-1]


def test_a_frame_can_be_had_by_its_step_or_from_the_end(small_run: Path) -> None:
    model = open_run(small_run).model()
    assert facts(model.frame_at(10)) == facts(model.frame(1)) == facts(model.frame(-2))


@pytest.mark.parametrize("number", range(len(SERIES)))
def test_a_history_is_the_series_row_of_every_frame(number: int, small_run: Path) -> None:
    model = open_run(small_run).model()
    history = model.history(number)
    frames = [frame(0), frame(10), frame(20)]
    rows = [int(one.rows[number]) for one in frames]
    assert history.series == SERIES[number]
    assert (history.frames.tolist(), history.steps.tolist()) == ([0, 1, 2], [0, 10, 20])
    assert history.times.tolist() == model.times.tolist()
    np.testing.assert_array_equal(
        history.statistics, [one.statistics[row] for one, row in zip(frames, rows, strict=True)]
    )
    for at, (one, row) in enumerate(zip(frames, rows, strict=True)):
        assert histogram_facts(history.histograms.row(at)) == histogram_facts(one.histograms.row(row))


def test_a_history_leaves_out_frames_without_the_series(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0), frame(1, series=(3, 0)), frame(2, series=(2,)), frame(3))
    history = open_run(tmp_path).model().history(SERIES[3])
    assert history.frames.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(history.statistics[1], frame(1, series=(3, 0)).statistics[0])


@pytest.mark.parametrize(("first", "expected"), [(0, [0, 1, 2]), (2, [2]), (3, []), (99, []), (-5, [0, 1, 2])])
def test_a_history_can_begin_later(first: int, expected: list[int], small_run: Path) -> None:
    assert open_run(small_run).model().history(0, first).frames.tolist() == expected


def test_a_history_knows_its_columns_and_quantiles(small_run: Path) -> None:
    history = open_run(small_run).model().history(0)
    np.testing.assert_array_equal(history.column("std"), history.statistics[:, STATISTICS.index("std")])
    assert history.quantiles((0.25, 0.75)).shape == (3, 2)
    with pytest.raises(NotFoundError, match=r"No statistic is called 'sd'. Choose one of count, sampled, nan"):
        history.column("sd")


def test_columns_that_other_releases_have_or_lack_are_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("kurtosis", *STATISTICS[1:])
    monkeypatch.setattr(layout, "STATISTICS", names)
    write(tmp_path, SERIES, frame(0))
    monkeypatch.undo()
    read, written = open_run(tmp_path).model().frame(0).statistics, frame(0).statistics
    assert np.isnan(read[:, 0]).all()
    np.testing.assert_array_equal(read[:, 1:], written[:, 1:])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param({}, [0, 1, 2, 3], id="everything"),
        pytest.param({"module": "fc"}, [1, 2], id="a module"),
        pytest.param({"module": ""}, [0, 3], id="the model itself"),
        pytest.param({"call": None}, [2], id="parameters"),
        pytest.param({"call": 0}, [0, 3], id="a call"),
        pytest.param({"role": "attached", "kind": "value"}, [3], id="a role and kind"),
        pytest.param({"path": "weight"}, [2], id="a path"),
        pytest.param({"path": "bias"}, [], id="nothing"),
    ],
)
def test_series_are_found_by_what_they_are(wanted: dict[str, object], expected: list[int], small_run: Path) -> None:
    found = open_run(small_run).model().find(**wanted)  # type: ignore[arg-type]
    assert [one.id for one in found] == expected


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        pytest.param(lambda model: model.frame(3), "Model 'net' has no frame 3. It has frames 0 to 2.", id="a frame"),
        pytest.param(lambda model: model.history(4), "has no series 4. It has series 0 to 3.", id="a series"),
        pytest.param(
            lambda model: model.history("loss"), "'loss' is not a series. Pass one that", id="a scalar's name"
        ),
        pytest.param(lambda model: model.graph_revision(1), "has no graph 1. It has graphs 0 to 0.", id="a graph"),
        pytest.param(
            lambda model: model.frame_at(12),
            "has no frame of step 12. It has 3 from 0 to 20; nearest: 10 and 20.",
            id="a step",
        ),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    ask: Callable[[ModelRecord], object], message: str, small_run: Path
) -> None:
    with pytest.raises(NotFoundError, match=message):
        ask(open_run(small_run).model())


def test_a_run_tells_its_size_and_times(small_run: Path) -> None:
    run = open_run(small_run)
    assert (run.name, run.path, run.warnings) == (small_run.name, str(small_run), ())
    assert run.bytes == segment(small_run).stat().st_size
    assert (run.first_write, run.last_write) == (1_000.5, 3_000.0)


def test_a_large_session_is_written_in_several_segments(tmp_path: Path) -> None:
    frames = [frame(step) for step in range(40)]
    write(tmp_path, GRAPH, SERIES, *frames, segment_bytes=4_000)
    sizes = [path.stat().st_size for path in segment(tmp_path).parent.iterdir()]
    model = open_run(tmp_path).model()
    assert len(sizes) > 3
    assert max(sizes) <= 4_000
    assert model.sessions == (SESSION,)
    assert [facts(model.frame(at)) for at in range(40)] == [facts(one) for one in frames]
    assert len(model.history(2)) == 40
