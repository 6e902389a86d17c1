"""Whatever happens to the bytes: the same data, or a warning that some is left out, or a RecordError."""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, flip, frame, histogram_facts, quietly, segment, write_small_run
from torchgraph_explorer.errors import RecordError, TorchgraphWarning
from torchgraph_explorer.record.model_record import ModelRecord

as_written = cache(frame)


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    write_small_run(tmp_path)
    return tmp_path


def assert_harmless(path: Path) -> None:
    """What can still be read is right, and what cannot was warned of; or the run is refused."""
    try:
        run = quietly(path)
    except RecordError:
        return
    for name in run.models:
        model = run.model(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TorchgraphWarning)
            whole = [assert_right(model, at) for at in range(len(model))]
            for number in range(len(model.series)):
                assert_right_history(model, number)
        assert model.series in {SERIES, ()}
        assert model.graphs in {(GRAPH,), ()}
        assert all(whole) or run.warnings
        missed = len(model) < 3 or not model.series or not model.graphs or model.finished is None
        assert not missed or run.warnings


def assert_right(model: ModelRecord, number: int) -> bool:
    """The frame is as it was written; False if some of it is left out."""
    read, written = model.frame(number), as_written(int(model.steps[number]))
    kept = np.isin(written.series, read.series)
    assert (read.time, read.clock) == (written.time, written.clock)
    for series, row in zip(read.series, read.rows, strict=True):
        original = written.rows[written.series == series][0]
        assert read.statistics[row].tobytes() == written.statistics[original].tobytes()
        assert histogram_facts(read.histograms.row(row)) == histogram_facts(written.histograms.row(original))
    return bool(kept.all()) or not model.series


def assert_right_history(model: ModelRecord, series: int) -> None:
    history = model.history(series)
    for at, step in enumerate(history.steps.tolist()):
        written = as_written(step)
        row = written.rows[series]
        assert history.statistics[at].tobytes() == written.statistics[row].tobytes()
        assert histogram_facts(history.histograms.row(at)) == histogram_facts(written.histograms.row(row))


@pytest.mark.slow
def test_flipped_bits_are_harmless(small_run: Path) -> None:
    file, rng = segment(small_run), np.random.default_rng(0)
    for byte in range(0, file.stat().st_size - 4, 4):  # one of any four, for the time it takes
        place = byte + int(rng.integers(4)), int(rng.integers(8))
        flip(file, *place)
        assert_harmless(small_run)
        flip(file, *place)


@pytest.mark.slow
def test_lost_and_overwritten_stretches_are_harmless(small_run: Path) -> None:
    file, rng = segment(small_run), np.random.default_rng(1)
    data = file.read_bytes()
    for _ in range(600):
        start, stop = np.sort(rng.integers(0, len(data), 2))
        noise = rng.integers(0, 256, stop - start).astype(np.uint8).tobytes()
        file.write_bytes(data[:start] + (noise if rng.random() < 0.5 else b"") + data[stop:])
        os.utime(file, (0, 0))
        assert_harmless(small_run)
