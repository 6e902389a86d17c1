"""Histories of long runs, as `api/history` serves them to a page that has so many pixels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import SERIES, SESSION
from tests.record.pooling import elements, histograms_of, statistics_of
from tests.server.asking import ask, unpack
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.merging import merge, single
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Frame
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app

pytestmark = pytest.mark.slow

FRAMES, MOST, UNIT = 1000, 64, 16
OF_NET = {"run": "long", "model": "net", "series": "1", "most": MOST}


ELEMENTS = elements(64)


def frame(step: int) -> Frame:
    """A frame of one series."""
    values = ELEMENTS[step * step % len(ELEMENTS)]
    statistics = np.array([statistics_of(values)], dtype=np.float32)
    series, rows = np.array([1], dtype=np.uint32), np.array([0], dtype=np.uint32)
    return Frame(step, 2_000.0 + step, None, None, series, rows, statistics, histograms_of([values]))


class Training:
    """A run that is written while it is served, and how often its rows were read."""

    def __init__(self, logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = logdir / "long"
        self.served: App = app(Runs(logdir))
        self.read = 0
        self._writer = RecordWriter(self.path)
        self._writer.write(SESSION)
        self._writer.write(SERIES)
        self._steps = 0
        whole = ModelRecord.history

        def counted(model: ModelRecord, *place: Any) -> Any:
            found = whole(model, *place)
            self.read += len(found)
            return found

        monkeypatch.setattr(ModelRecord, "history", counted)

    def go_on(self, frames: int) -> None:
        for step in range(self._steps, self._steps + frames):
            self._writer.write(frame(step))
        self._steps += frames

    def close(self) -> None:
        self._writer.close()

    def ask(self, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return unpack(ask(self.served, "/api/history", {**OF_NET, "from": 0, **query}).body)


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Training]:
    long = Training(tmp_path, monkeypatch)
    long.go_on(FRAMES)
    yield long
    long.close()


def expected(training: Training, unit: int) -> dict[str, Any]:
    """What the answer's arrays should be, merged all at once."""
    model = open_run(training.path).model()
    bins = merge(single(model.history(1)), model.steps, unit)
    return {
        "frame": bins.first,
        "last": bins.last,
        "merged": bins.frames,
        "statistics": bins.statistics.astype(np.float32),
        "counts": bins.counts,
    }


def assert_told(arrays: dict[str, Any], wanted: dict[str, Any], start: int = 0) -> None:
    for name in ("frame", "last", "merged"):
        np.testing.assert_array_equal(arrays[f"1.{name}"], wanted[name][start:])
    np.testing.assert_allclose(arrays["1.statistics"], wanted["statistics"][start:], rtol=1e-5)
    assert arrays["1.counts"].sum() == wanted["counts"][len(wanted["counts"]) - len(arrays["1.counts"]) :].sum()


def test_more_frames_than_pixels_are_merged(training: Training) -> None:
    meta, arrays = training.ask()
    assert (meta["unit"], meta["from"], meta["frames"]) == (UNIT, 0, FRAMES)
    assert_told(arrays, expected(training, UNIT))


def test_as_many_frames_as_pixels_are_told_one_by_one(training: Training) -> None:
    meta, arrays = training.ask(most=FRAMES)
    assert meta["unit"] == 1
    assert arrays["1.frame"].tolist() == list(range(FRAMES))
    assert "1.merged" not in arrays


def test_a_page_that_asks_again_is_told_only_what_is_new(training: Training) -> None:
    training.ask()
    training.read = 0
    training.go_on(10)
    meta, arrays = training.ask(**{"from": FRAMES, "unit": UNIT})
    assert (meta["unit"], meta["from"], meta["frames"]) == (UNIT, FRAMES // UNIT * UNIT, FRAMES + 10)
    assert_told(arrays, expected(training, UNIT), start=FRAMES // UNIT)


def test_what_was_merged_once_is_not_read_again(training: Training) -> None:
    training.ask()
    assert training.read == FRAMES
    training.go_on(10)
    training.ask()
    training.ask(series="1,1", **{"from": FRAMES, "unit": UNIT})
    assert training.read == FRAMES + 10


def test_a_page_that_is_up_to_date_is_told_nothing(training: Training) -> None:
    meta, arrays = training.ask(**{"from": FRAMES, "unit": UNIT})
    assert (meta["from"], len(arrays["1.frame"])) == (FRAMES, 0)


def test_bins_that_have_become_too_many_are_told_anew_and_coarser(training: Training) -> None:
    training.ask()
    training.go_on(100)
    meta, arrays = training.ask(**{"from": FRAMES, "unit": UNIT})
    assert (meta["unit"], meta["from"]) == (2 * UNIT, 0)
    assert_told(arrays, expected(training, 2 * UNIT))


def test_a_wider_page_is_told_more_and_a_narrower_one_not(training: Training) -> None:
    for most, unit in ((64, 16), (256, 4), (64, 16)):
        meta, arrays = training.ask(most=most)
        assert meta["unit"] == unit
        assert_told(arrays, expected(training, unit))


def test_a_single_frame_is_told_as_it_was_recorded(training: Training) -> None:
    query = {**OF_NET, "from": 333, "to": 334}
    del query["most"]
    meta, arrays = unpack(ask(training.served, "/api/history", query).body)
    alone = open_run(training.path).model().history(1, 333, 334)
    assert (meta["unit"], meta["frames"], arrays["1.frame"].tolist()) == (1, 334, [333])
    np.testing.assert_array_equal(arrays["1.statistics"], alone.statistics)
    np.testing.assert_array_equal(arrays["1.counts"], alone.histograms.counts)


def test_a_page_of_no_width_is_told_what_is_allowed(training: Training) -> None:
    answer = ask(training.served, "/api/history", {**OF_NET, "from": 0, "most": 3})
    assert (answer.status, answer.json["error"]) == (400, "most='3' is not a whole number of at least 64.")
