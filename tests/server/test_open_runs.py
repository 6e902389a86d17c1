"""Runs that grow, go away, or are replaced while they are served; and what asking costs."""

from __future__ import annotations

import shutil
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.record.examples import GRAPH, SERIES, SESSION, frame, other_session, write, write_small_run
from tests.server.asking import ask, unpack
from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Series
from torchgraph_explorer.server import open_runs
from torchgraph_explorer.server.answers import ClientState, updates_answer
from torchgraph_explorer.server.histories import WantedHistory, history_answer
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.response import App
from torchgraph_explorer.server.routes import app


def updates(served: App, *, epoch: int = -1, frames: int = 0) -> Any:
    return ask(served, "/api/updates", {"run": "a", "model": "net", "epoch": epoch, "frames": frames, "series": 0}).json


def test_new_frames_are_told_as_they_are_written(tmp_path: Path) -> None:
    writer, served = RecordWriter(tmp_path / "a"), app(Runs(tmp_path))
    for record in (SESSION, GRAPH, SERIES, frame(0)):
        writer.write(record)
    first = updates(served)
    writer.write(frame(10))
    second = updates(served, epoch=first["epoch"], frames=1)
    assert (first["frames"]["step"], second["frames"]["step"], second["reset"]) == ([0], [10], False)
    writer.close()


def test_a_step_that_is_written_again_makes_clients_begin_anew(tmp_path: Path) -> None:
    served = app(Runs(tmp_path))
    write(tmp_path / "a", SERIES, frame(0), frame(10))
    first = updates(served)
    write(tmp_path / "a", SERIES, frame(10, seed=1), session=other_session("later"))
    second = updates(served, epoch=first["epoch"], frames=2)
    assert (second["reset"], second["frames"]["step"]) == (True, [0, 10])


def test_a_run_that_is_gone_is_no_run_and_one_in_its_place_another(tmp_path: Path) -> None:
    served = app(Runs(tmp_path))
    write(tmp_path / "a", SERIES, frame(0), frame(10))
    first = updates(served)
    shutil.rmtree(tmp_path / "a")
    assert updates(served)["error"].startswith("There is no run 'a'")
    write(tmp_path / "a", SERIES, frame(5), frame(6))
    second = updates(served, epoch=first["epoch"], frames=2)
    assert (second["reset"], second["frames"]["step"]) == (True, [5, 6])


def test_a_run_without_its_files_is_no_run_while_its_folder_stays(tmp_path: Path) -> None:
    served = app(Runs(tmp_path))
    write_small_run(tmp_path / "a")
    updates(served)
    shutil.rmtree(tmp_path / "a" / "plugins")
    assert updates(served)["error"].startswith("There is no run 'a'")


def test_a_server_that_was_started_again_has_other_epochs(tmp_path: Path) -> None:
    write_small_run(tmp_path / "a")
    first = updates(app(Runs(tmp_path)))
    assert updates(app(Runs(tmp_path)), epoch=first["epoch"], frames=3)["reset"]


def test_of_many_runs_only_the_latest_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs, "MOST_OPEN", 2)
    served = Runs(tmp_path)
    for name in "abc":
        write_small_run(tmp_path / name)
    kept = {name: served.open(name) for name in "abc"}
    assert served.open("c") is kept["c"]
    assert served.open("a") is not kept["a"]


def test_a_run_that_opens_slowly_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        write_small_run(tmp_path / name)
    served, going_on, opened = Runs(tmp_path), threading.Event(), []

    def slow(folder: Any, *, name: str, path: str) -> RunRecord:
        if name == "a":
            going_on.wait(5)
        opened.append(name)
        return RunRecord(folder, name=name, path=path)

    monkeypatch.setattr(open_runs, "RunRecord", slow)
    threads = [threading.Thread(target=served.open, args=("a",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    served.open("b")
    going_on.set()
    for thread in threads:
        thread.join()
    assert opened == ["b", "a"]


def test_runs_at_a_url_are_served_and_looked_at_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs, "REMOTE_SECONDS", 1000.0)
    write("memory://served/a", SERIES, frame(0))
    served = app(Runs("memory://served"))
    assert updates(served)["frames"]["step"] == [0]
    write("memory://served/a", SERIES, frame(1), session=other_session("later"))
    assert updates(served)["frames"]["step"] == [0]
    monkeypatch.setattr(open_runs, "REMOTE_SECONDS", 0.0)
    assert updates(served)["frames"]["step"] == [0, 1]


def test_a_look_that_fails_costs_no_second_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs, "REMOTE_SECONDS", 1000.0)
    write("memory://away/a", SERIES, frame(0))
    served = Runs("memory://away")
    opened = served.open("a")
    monkeypatch.setattr(open_runs, "REMOTE_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "ls", lambda *_, **__: 1 / 0)
        for _ in range(2):
            with pytest.raises(RecordError, match="division by zero"):
                served.open("a")
    assert served.open("a") is opened


def test_runs_at_a_url_are_listed_a_tenth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, listed = [100.0], []

    def slow(_logdir: str) -> list[Any]:
        clock[0] += 0.5
        listed.append(clock[0])
        return [f"run {len(listed)}"]

    monkeypatch.setattr(open_runs, "runs_below", slow)
    monkeypatch.setattr(open_runs, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    runs = Runs("memory://many")
    for _ in range(200):
        runs.list()
        clock[0] += 0.25
    assert 8 <= len(listed) <= 10
    assert min(later - earlier for earlier, later in pairwise(listed)) >= 0.5 / open_runs.LISTING_SHARE
    assert [str(one) for one in runs.list()] == [f"run {len(listed)}"]


def test_a_run_that_is_deleted_at_a_url_is_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_runs, "REMOTE_SECONDS", 0.0)
    write_small_run("memory://deleted/a")
    served = Runs("memory://deleted")
    served.open("a")
    fsspec.filesystem("memory").rm("/deleted/a", recursive=True)
    with pytest.raises(NotFoundError, match="There is no run 'a'"):
        served.open("a")


@pytest.mark.parametrize("name", ["..", "a/../a", "./a", "", "a\0", "nothing"])
def test_at_a_url_only_names_that_are_listed_lead_to_a_run(name: str) -> None:
    write_small_run("memory://guarded/a")
    with pytest.raises(NotFoundError, match="There is no run"):
        Runs("memory://guarded").open(name)


def test_frames_that_come_while_a_history_is_read_are_left_for_the_next(tmp_path: Path) -> None:
    write(tmp_path / "a", SERIES, frame(0), frame(10))
    opened = Runs(tmp_path).open("a")
    model = opened.run.model()

    class Counted(type(model)):  # type: ignore[misc]
        steps = model.steps[:1]

    model.__class__ = Counted
    meta, arrays = unpack(history_answer(opened, model, WantedHistory([0], first_frame=0)))
    assert (meta["frames"], arrays["0.frame"].tolist(), len(arrays["0.offsets"])) == (1, [0], 2)
    assert len(arrays["0.buckets"]) == len(arrays["0.counts"]) == arrays["0.offsets"][-1]


@pytest.mark.slow
def test_a_poll_with_nothing_new_costs_less_than_two_milliseconds(tmp_path: Path) -> None:
    many = tuple(Series(number, f"layer{number}", 0, "output", "output", "value") for number in range(2_000))
    write(tmp_path / "a", GRAPH, many, *(frame(step, series=(0, 1)) for step in range(2_000)))
    served = Runs(tmp_path)
    opened = served.open("a")
    client = ClientState(opened.epoch(opened.run.model()), 2_000, 2_000)
    before = time.process_time()
    for _ in range(50):
        opened = served.open("a")
        model = opened.run.model("net")
        assert updates_answer(opened.run, model, epoch=opened.epoch(model), client=client)["frames"]["step"] == []
    assert (time.process_time() - before) / 50 < 0.002
