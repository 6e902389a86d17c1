"""The statistics of all series at once: those of the single histories, without what is damaged."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import GRAPH, SERIES, flip, frame, other_session, quietly, records, segment, write
from tests.record.long_runs import write_long_run
from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.run import Run
from torchgraph_explorer.schema import STATISTICS


def assert_as_histories(model: ModelRecord) -> None:
    found = model.statistics(np.arange(len(model)))
    assert found.shape == (len(STATISTICS), len(model), len(model.series))
    for number in range(len(model.series)):
        history = model.history(number)
        absent = np.setdiff1d(np.arange(len(model)), history.frames)
        assert np.isnan(found[:, absent, number]).all()
        np.testing.assert_array_equal(found[:, history.frames, number].T, history.statistics)


@pytest.mark.slow
def test_many_steps_are_those_of_the_histories(tmp_path: Path) -> None:
    write_long_run(tmp_path, 300, series=7, bad_step=9)
    assert_as_histories(quietly(tmp_path).model())


def test_a_series_that_a_step_lacks_is_nan(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0), frame(1, series=(0, 2)), frame(2))
    assert_as_histories(quietly(tmp_path).model())


def test_the_rows_of_several_ranks_are_merged(tmp_path: Path) -> None:
    for rank in range(2):
        write(tmp_path, GRAPH, SERIES, frame(0), frame(1), session=other_session(f"{rank}", rank=rank, world_size=2))
    assert_as_histories(quietly(tmp_path).model())


@pytest.mark.slow
@pytest.mark.parametrize("bit", [0, 6], ids=["a low bit", "a high bit of the exponent"])
def test_a_damaged_row_is_left_out_and_told(bit: int, tmp_path: Path) -> None:
    write_long_run(tmp_path, 3, series=4)
    file = segment(tmp_path)
    last_frame = records(file.read_bytes())[-2]
    sound = quietly(tmp_path).model().statistics([2])
    for byte in range(last_frame, file.stat().st_size, 4):
        flip(file, byte + 3, bit)
        run = quietly(tmp_path)
        if len(run.model()) == 3:
            found = statistics_of(run)
            kept = ~np.isnan(found).all(axis=0)
            np.testing.assert_array_equal(found[:, kept], sound[:, kept])
            assert kept.all() or "the frame of step 2 is damaged in part" in str(run.warnings)
        flip(file, byte + 3, bit)


def statistics_of(run: Run) -> npt.NDArray[np.float32]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        return run.model().statistics([2])


def test_a_frame_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_long_run(tmp_path, 3)
    with pytest.raises(NotFoundError, match=r"has no frame 3. It has frames 0 to 2\."):
        quietly(tmp_path).model().statistics([0, 3])
