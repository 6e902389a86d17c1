"""Files that are called as segments are, and links to runs: what is no file is left alone, and no link leads astray."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from tests.record.examples import SERIES, frame, other_session, quietly, segment, write, write_small_run
from tests.record.fuzzing import kept
from tests.server.asking import ask
from torchgraph_explorer.errors import RecordError, TorchgraphWarning
from torchgraph_explorer.record import folder
from torchgraph_explorer.record.discovery import list_runs
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app


def listen(place: Path) -> None:
    """A socket is named by at most some hundred letters."""
    here = Path.cwd()
    os.chdir(place.parent)
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(place.name)
    finally:
        os.chdir(here)


def link_to_a_pipe(place: Path) -> None:
    os.mkfifo(place.with_suffix(".pipe"))
    place.symlink_to(f"{place.stem}.pipe")


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": listen,
    "a link to nothing": lambda place: place.symlink_to("nowhere"),
    "a link to itself": lambda place: place.symlink_to(place.name),
    "a link to a pipe": link_to_a_pipe,
    "a link to a device": lambda place: place.symlink_to("/dev/zero"),
    "a link to a folder": lambda place: place.symlink_to("."),
    "a file of a long number": lambda place: place.with_name(f"{'9' * 20}.tgraph").write_bytes(b"x"),
    "a file of other figures": lambda place: place.with_name("\u0660\u0660\u0660\u0660\u0660\u0667.tgraph").write_bytes(
        b"x"
    ),
}


TOLD = {
    "a folder": "it is a folder, no file",
    "a link to nothing": "it is a link to 'nowhere', which is not there",
    "a link to itself": "it is a link to '000007.tgraph', which is not there",
    "a link to a folder": "it is a folder, no file",
    "a file of a long number": None,
    "a file of other figures": None,
}


@pytest.mark.filterwarnings("ignore:segment 000007")
@pytest.mark.parametrize("name", ODD)
def test_what_is_no_segment_file_is_left_alone_and_told(name: str, tmp_path: Path) -> None:
    write_small_run(tmp_path / "run")
    ODD[name](segment(tmp_path / "run", 7))
    what = TOLD.get(name, "it is not a file, but a pipe, a socket or a device")
    told = () if what is None else (f"segment 000007.tgraph: {what}, and was skipped",)
    done = threading.Event()

    def read() -> None:
        assert [(info.models, info.error) for info in list_runs(tmp_path)] == [(("net",), None)]
        run = open_run(tmp_path / "run")
        assert (len(run.model()), run.warnings) == (3, told)
        write(tmp_path / "run", session=other_session("later"))
        assert run.refresh()
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(20), "it hangs, or has failed"


def test_a_run_without_a_file_is_a_row_that_says_so(tmp_path: Path) -> None:
    segment(tmp_path / "run").mkdir(parents=True)
    [info] = list_runs(tmp_path)
    assert str(info.error).endswith("holds no record that can be read: 000000.tgraph: it is a folder, no file.")
    asked = {"run": "run", "model": "net", "epoch": -1, "frames": 0, "series": 0}
    answer = ask(app(Runs(tmp_path)), "/api/updates", asked)
    assert (answer.status, "it is a folder, no file" in answer.json["error"]) == (422, True)
    with pytest.raises(RecordError, match=r"000000\.tgraph: it is a folder, no file, and was skipped"):
        open_run(tmp_path)


def test_a_link_to_kept_tensors_that_are_not_there_is_told(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    tensors = segment(tmp_path).parent / "tensors"
    tensors.mkdir()
    (tensors / "000000.tgraph").symlink_to("elsewhere")
    with pytest.warns(TorchgraphWarning, match="tensors/000000.tgraph: it is a link to 'elsewhere', which is not"):
        assert len(open_run(tmp_path).model().kept.steps) == 0


def test_kept_tensors_that_are_cut_off_are_told(tmp_path: Path) -> None:
    kept(tmp_path)
    file = segment(tmp_path).parent / "tensors/000000.tgraph"
    file.write_bytes(file.read_bytes()[:-9])
    os.utime(file, (0, 0))
    with pytest.warns(TorchgraphWarning, match=r"tensors/000000.tgraph: record at byte \d+ is incomplete; its writer"):
        assert open_run(tmp_path).model().kept.steps.tolist() == [0]


def test_a_file_that_becomes_a_pipe_is_told_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_small_run(tmp_path)
    listed = folder.segment_files(segment(tmp_path).parent)
    segment(tmp_path).unlink()
    os.mkfifo(segment(tmp_path))
    monkeypatch.setattr(folder, "segment_files", lambda *_: listed)
    with pytest.raises(RecordError, match="is no longer a file"):
        open_run(tmp_path)


def test_a_sparse_file_of_zeros_is_not_gone_through(tmp_path: Path) -> None:
    write_small_run(tmp_path / "run")
    with segment(tmp_path / "run", 3).open("wb") as file:
        file.truncate(1 << 42)
    began = time.process_time()
    assert [info.models for info in list_runs(tmp_path)] == [("net",)]
    with pytest.warns(UserWarning, match="000003.tgraph: it has 4,398,046,511,104 bytes, more than a"):
        assert len(open_run(tmp_path / "run").model()) == 3
    assert time.process_time() - began < 5


def test_a_run_of_empty_files_is_one_about_to_begin_and_later_none(tmp_path: Path) -> None:
    segment(tmp_path / "killed").parent.mkdir(parents=True)
    segment(tmp_path / "killed").touch()
    assert [info.error for info in list_runs(tmp_path)] == [None]
    os.utime(segment(tmp_path / "killed"), (0, 0))
    assert "its files are empty. Their writer was interrupted" in str(list_runs(tmp_path)[0].error)


def test_links_to_runs_and_to_folders_of_runs_are_followed(tmp_path: Path) -> None:
    write_small_run(tmp_path / "elsewhere" / "deep" / "run")
    logdir = tmp_path / "logdir"
    write_small_run(logdir / "own")
    targets: dict[str, str | Path] = {
        "again": "own",
        "far": tmp_path / "elsewhere" / "deep" / "run",
        "group": tmp_path / "elsewhere",
        "nowhere": "missing",
    }
    for name, target in targets.items():
        (logdir / name).symlink_to(target)
    (tmp_path / "link").symlink_to(logdir)
    for place in (logdir, tmp_path / "link"):
        found = {info.name: info for info in list_runs(place)}
        assert sorted(found) == ["again", "far", "group/deep/run", "own"]
        assert {len(open_run(info.path).model()) for info in found.values()} == {3}


@pytest.mark.skipif(not Path("/proc/self/root").exists(), reason="only Linux shows its state as folders")
def test_folders_of_the_kernel_are_not_looked_into(tmp_path: Path) -> None:
    write_small_run(tmp_path / "runs" / "a")
    (tmp_path / "state").symlink_to("/proc")
    (tmp_path / "devices").symlink_to("/sys")
    with mock.patch.object(folder, "_folders_in", wraps=folder._folders_in) as look:
        assert [run.name for run in list_runs(tmp_path)] == ["runs/a"]
    assert [one.args[0] for one in look.call_args_list if one.args[0].endswith(("state", "devices"))] == []
    assert look.call_count < 10


def test_links_that_lead_in_a_circle_are_followed_once(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(".")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "to a").symlink_to(tmp_path / "a")
    (tmp_path / "loop").symlink_to("loop")
    assert sorted(info.name for info in list_runs(tmp_path)) == ["a", "b/to a"]


@pytest.mark.parametrize("above", ["/", "..", "../.."])
def test_a_link_to_a_folder_above_the_logdir_is_not_followed(above: str, tmp_path: Path) -> None:
    logdir = tmp_path / "deep" / "logdir"
    write_small_run(tmp_path / "deep" / "other")
    write_small_run(logdir / "own")
    (logdir / "up").symlink_to(above)
    (tmp_path / "link").symlink_to(logdir)
    began = time.process_time()
    for place in (logdir, tmp_path / "link"):
        assert [info.name for info in list_runs(place)] == ["own"]
    assert time.process_time() - began < 2
    assert folder.leads_in_a_circle(logdir, "up")


@pytest.mark.slow
def test_a_link_to_very_many_folders_without_a_run_is_given_up(tmp_path: Path) -> None:
    for number in range(2500):
        (tmp_path / "disk" / f"{number // 50}" / f"{number}").mkdir(parents=True)
    write_small_run(tmp_path / "logdir" / "own")
    (tmp_path / "logdir" / "linked").symlink_to(tmp_path / "disk")
    seen = [path for path, _ in folder._folders(tmp_path / "logdir") if "linked" in path]
    assert len(seen) == 2000
    assert [info.name for info in list_runs(tmp_path / "logdir")] == ["own"]


@pytest.mark.slow
def test_of_a_link_to_very_many_runs_all_are_found(tmp_path: Path) -> None:
    (tmp_path / "logdir").mkdir()
    (tmp_path / "logdir" / "linked").symlink_to(tmp_path / "disk")
    for number in range(2500):
        (tmp_path / "disk" / f"{number}").mkdir(parents=True)
        if number % 20 == 0:
            folder.plugin_folder(tmp_path / "disk" / f"{number}").mkdir(parents=True)
            (folder.plugin_folder(tmp_path / "disk" / f"{number}") / "000000.tgraph").touch()
    assert len(list_runs(tmp_path / "logdir")) == 125


@pytest.mark.slow
def test_many_links_at_each_other_do_not_multiply(tmp_path: Path) -> None:
    names = [f"group{number}" for number in range(12)]
    for name in names:
        (tmp_path / name).mkdir()
        for other in names:
            (tmp_path / name / f"to {other}").symlink_to(tmp_path / other)
    write_small_run(tmp_path / "group0" / "run")
    began = time.process_time()
    assert "group0/run" in {info.name for info in list_runs(tmp_path)}
    assert time.process_time() - began < 5


@pytest.mark.filterwarnings("ignore:segment 00000")
def test_a_writer_goes_on_beside_odd_files(tmp_path: Path) -> None:
    for number, make in enumerate(ODD.values()):
        segment(tmp_path, number).parent.mkdir(parents=True, exist_ok=True)
        make(segment(tmp_path, number))
    writer = RecordWriter(tmp_path)
    writer.write(other_session("one"))
    writer.close()
    assert open_run(tmp_path).models == ("net",)


def test_a_file_with_the_last_number_hides_no_later_record(tmp_path: Path) -> None:
    last = segment(tmp_path, 999_999_999)
    last.parent.mkdir(parents=True)
    last.touch()
    for name in ("first", "second"):
        write(tmp_path, SERIES, frame(0), session=other_session(name, model=name))
    assert quietly(tmp_path).models == ("first", "second")
