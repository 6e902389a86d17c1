"""Notes on what is not recorded, in the record while it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.examples import SESSION, frame, segment, write
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Finished, Noted, Session

SILENT, FAILED = "no step was recorded in the first 100 updates.", "module 'fc' is no longer recorded."


def test_a_note_is_read_while_the_session_is_open_and_once_it_is_killed(tmp_path: Path) -> None:
    write(tmp_path, Noted(1_500.0, SILENT))
    run = open_run(tmp_path)
    assert (run.model().notes, run.model().finished, run.last_write) == ((SILENT,), None, 1_500.0)
    write(tmp_path, frame(0), Noted(1_600.0, FAILED))
    run.refresh()
    assert (run.model().notes, len(run.model())) == ((SILENT, FAILED), 1)


def test_a_session_that_was_closed_has_its_notes_once(tmp_path: Path) -> None:
    write(tmp_path, Noted(1_500.0, SILENT), Finished(2_000.0, (SILENT, FAILED)))
    model = open_run(tmp_path).model()
    assert model.notes == ()
    assert model.finished is not None
    assert model.finished.notes == (SILENT, FAILED)


def test_the_notes_are_those_of_the_latest_session(tmp_path: Path) -> None:
    write(tmp_path, Noted(1_500.0, SILENT))
    write(tmp_path, session=replace(SESSION, id="later", created=5_000.0))
    assert open_run(tmp_path).model().notes == ()


def rank(number: int) -> Session:
    return replace(SESSION, id=f"rank{number}", rank=number, world_size=2, created=1_000.0 + number / 8)


def test_a_note_that_only_some_ranks_have_names_them(tmp_path: Path) -> None:
    write(tmp_path, Noted(1_500.0, SILENT), Noted(1_501.0, FAILED), session=rank(0))
    write(tmp_path, Noted(1_500.0, SILENT), Finished(2_000.0, (SILENT,)), session=rank(1))
    model = open_run(tmp_path).model()
    assert (model.notes, model.finished) == ((SILENT, f"Rank 0: {FAILED}"), None)


def test_only_so_many_notes_are_read(tmp_path: Path) -> None:
    write(tmp_path, *(Noted(1_500.0, f"Note {number}.") for number in range(100)))
    assert open_run(tmp_path).model().notes == tuple(f"Note {number}." for number in range(64))


@pytest.mark.parametrize(
    "noted",
    [
        pytest.param(pb.Noted(time=-1.0, text="x"), id="no time"),
        pytest.param(pb.Noted(time=1.0, text=20_000 * "x"), id="a long text"),
    ],
)
def test_a_note_that_makes_no_sense_is_skipped(noted: pb.Noted, tmp_path: Path) -> None:
    write(tmp_path)
    with segment(tmp_path).open("ab") as file:
        file.write(enveloped(pb.Head(noted=noted).SerializeToString()))
    with pytest.warns(TorchgraphWarning, match="is damaged and was skipped"):
        assert open_run(tmp_path).model().notes == ()
