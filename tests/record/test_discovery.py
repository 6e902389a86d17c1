from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.record.examples import SERIES, frame, other_session, segment, write, write_small_run
from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record.discovery import RunInfo, list_runs
from torchgraph_explorer.record.format.envelope import file_header
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import EVALUATIONS
from torchgraph_explorer.server.open_runs import Runs


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """Two runs, one of them nested and the later one; and what is no run."""
    write(tmp_path / "sweep" / "lr=0.1", SERIES, frame(0), session=other_session("b", created=7_000.0, model="late"))
    write_small_run(tmp_path / "first")
    (tmp_path / "checkpoints" / "plugins").mkdir(parents=True)
    (tmp_path / "notes.txt").write_text("no run", encoding="utf-8")
    return tmp_path


def test_runs_are_listed_with_what_their_beginnings_say(logdir: Path) -> None:
    files = [segment(logdir / "sweep" / "lr=0.1").stat(), segment(logdir / "first").stat()]
    names, begun = ("sweep/lr=0.1", "first"), (7_000.0, 1_000.5)
    assert list_runs(logdir) == [
        RunInfo(name, str(logdir / name), (model,), first, file.st_mtime, file.st_size, None)
        for name, model, first, file in zip(names, ("late", "net"), begun, files, strict=True)
    ]


def test_a_logdir_that_is_a_run_is_called_dot(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    write_small_run(tmp_path / "inside")
    assert [(run.name, run.path) for run in list_runs(str(tmp_path))] == [
        (".", str(tmp_path)),
        ("inside", str(tmp_path / "inside")),
    ]


def test_a_run_of_several_models_and_sessions_names_each_model_once(tmp_path: Path) -> None:
    for name, model in (("a", "generator"), ("b", "critic"), ("c", "generator")):
        write(tmp_path, session=other_session(name, model=model))
    assert [run.models for run in list_runs(tmp_path)] == [("generator", "critic")]


ORDERS = {
    "watched later": [{"name": "a", "created": 20.0, "model": "late"}, {"name": "b", "created": 10.0, "model": "net"}],
    "evaluations": [{"name": f"a{EVALUATIONS}", "model": "late"}, {"name": "a", "model": "net"}],
}


@pytest.mark.parametrize("sessions", ORDERS.values(), ids=ORDERS)
def test_models_are_in_the_order_of_their_watch_also_if_another_wrote_first(
    sessions: list[dict[str, Any]], tmp_path: Path
) -> None:
    for facts in sessions:
        write(tmp_path, SERIES, frame(0), session=other_session(**facts))
    assert [run.models for run in list_runs(tmp_path)] == [("net", "late")]
    assert open_run(tmp_path).models == ("net", "late")


def test_there_may_be_no_runs(tmp_path: Path) -> None:
    assert list_runs(tmp_path) == []


def test_runs_of_a_folder_that_is_not_there_are_refused_as_by_open_run(tmp_path: Path) -> None:
    tmp_path.joinpath("runs").mkdir()
    for act in (list_runs, open_run):
        with pytest.raises(NotFoundError, match=r"rnus does not exist\. Did you mean .*runs\? Pass the folder of"):
            act(tmp_path / "rnus")


def test_a_link_to_nothing_is_not_proposed_in_place_of_itself(tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to("gone")
    for act in (list_runs, open_run):
        with pytest.raises(NotFoundError, match=r"run does not exist\. Pass the folder of"):
            act(tmp_path / "run")


def test_runs_of_a_file_are_refused(tmp_path: Path) -> None:
    tmp_path.joinpath("a.txt").touch()
    with pytest.raises(RecordError, match=r"a\.txt is a file, not a folder\. Pass the folder of runs"):
        list_runs(tmp_path / "a.txt")


def test_a_server_waits_for_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "runs")
    assert runs.list() == []
    write_small_run(tmp_path / "runs" / "first")
    assert [run.name for run in runs.list()] == ["first"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"", None, id="nothing written yet"),
        pytest.param(b"hello, this is no record", "holds no record that can be read", id="foreign"),
        pytest.param(file_header(7), "record version 7, this release reads 2", id="newer"),
    ],
)
def test_a_run_that_cannot_be_opened_is_listed_with_the_reason(
    content: bytes, error: str | None, tmp_path: Path
) -> None:
    segment(tmp_path / "odd").parent.mkdir(parents=True)
    segment(tmp_path / "odd").write_bytes(content)
    (run,) = list_runs(tmp_path)
    assert (run.name, run.models, run.first_write) == ("odd", (), 0.0)
    assert (run.error is None) if error is None else (error in str(run.error))


def test_one_damaged_copy_of_the_session_does_not_hide_it(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    data = bytearray(segment(tmp_path).read_bytes())
    data[60] ^= 1
    segment(tmp_path).write_bytes(bytes(data))
    assert [run.models for run in list_runs(tmp_path)] == [("net",)]


def test_every_listed_run_can_be_opened_by_its_path(logdir: Path) -> None:
    assert [open_run(run.path).models for run in list_runs(logdir)] == [run.models for run in list_runs(logdir)]


def test_a_logdir_with_one_run_is_opened_as_that_run(tmp_path: Path) -> None:
    write_small_run(tmp_path / "deep" / "run")
    run = open_run(str(tmp_path))
    assert (run.name, run.path, run.models) == ("deep/run", str(tmp_path / "deep" / "run"), ("net",))


def test_a_logdir_with_several_runs_asks_which_and_names_the_latest_first(logdir: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"holds 2 runs: sweep/lr=0.1, first. Name one of them, such as .*lr=0\.1\."
    ):
        open_run(logdir)


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        pytest.param("gone", NotFoundError, "gone does not exist. Pass the folder of a run", id="nothing"),
        pytest.param("notes.txt", RecordError, "is not a run: it is a file, not a folder with plugins", id="a file"),
        pytest.param("checkpoints", RecordError, "it has no plugins/torchgraph/.*tgraph. Pass the", id="a folder"),
        pytest.param("first/plugins", RecordError, r"a part of one. Open the run: open_run\('.*first'\)", id="inside"),
        pytest.param(
            "first/plugins/torchgraph/000000.tgraph", RecordError, r"open_run\('.*first'\)", id="a segment file"
        ),
    ],
)
def test_what_is_no_run_is_told_with_what_to_open(
    place: str, error: type[Exception], message: str, logdir: Path
) -> None:
    with pytest.raises(error, match=message):
        open_run(logdir / place)


def test_a_run_folder_that_is_still_empty_is_told(tmp_path: Path) -> None:
    segment(tmp_path).parent.mkdir(parents=True)
    with pytest.raises(RecordError, match=r"holds no record yet. Open it again when its training has begun"):
        open_run(tmp_path)


def test_other_files_beside_the_segments_are_left_alone(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    for name in ("notes.md", "x.tgraph", "000001.tgraph.part"):
        (segment(tmp_path).parent / name).write_text("not ours", encoding="utf-8")
    run = open_run(tmp_path)
    assert (len(run.model()), run.warnings) == (3, ())


def test_a_folder_that_may_not_be_read_hides_no_other_run(logdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = Path.iterdir

    def refusing(folder: Path) -> object:
        if folder == logdir / "first" / "plugins" / "torchgraph":
            raise PermissionError(13, "Permission denied")
        return everything(folder)

    monkeypatch.setattr(Path, "iterdir", refusing)
    errors = {run.name: run.error for run in list_runs(logdir)}
    assert errors.pop("sweep/lr=0.1") is None
    assert "torchgraph cannot be read: Permission denied" in str(errors.pop("first"))
    assert errors == {}


@pytest.mark.parametrize("closed", ["", "run"])
def test_a_logdir_whose_one_run_may_not_be_entered_says_so(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small_run(tmp_path / "run")
    everything = os.scandir

    def refusing(folder: str) -> object:
        if Path(folder).is_relative_to(tmp_path / closed):
            raise PermissionError(13, "Permission denied")
        return everything(folder)

    denied = rf"{re.escape(str(tmp_path / closed))}.* cannot be read: Permission denied"
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        with pytest.raises(RecordError, match=denied):
            open_run(tmp_path)
