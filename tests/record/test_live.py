"""Reading while somebody writes, and what several sessions make together."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.record.examples import (
    GRAPH,
    SERIES,
    SESSION,
    facts,
    frame,
    other_session,
    quietly,
    records,
    segment,
    write,
    write_small_run,
)
from tests.tensors.test_record import kept
from tests.tensors.test_record import segment as kept_segment
from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record import scan
from torchgraph_explorer.record.model_index import ModelIndex
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Run, open_run
from torchgraph_explorer.schema import Call, Finished


def test_every_record_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(SESSION)
    run = open_run(tmp_path)
    model = run.model()
    assert (len(model), model.series, model.finished) == (0, (), None)
    writer.write(SERIES)
    writer.write(frame(0))
    assert run.refresh()
    assert facts(model.frame(0)) == facts(frame(0, graph=None))
    writer.write(Finished(9.0))
    writer.close()
    assert run.refresh()
    assert model.finished == Finished(9.0)


def test_refresh_says_when_nothing_is_new(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    assert not open_run(tmp_path).refresh()


@pytest.mark.slow
def test_at_every_length_a_growing_file_gives_its_whole_records_and_no_warning(tmp_path: Path) -> None:
    write_small_run(tmp_path / "whole")
    data, growing = segment(tmp_path / "whole").read_bytes(), segment(tmp_path / "growing")
    growing.parent.mkdir(parents=True)
    run: Run | None = None
    for size in range(1_000, len(data) + 1, 7):
        growing.write_bytes(data[:size])
        run = run or open_run(tmp_path / "growing")
        run.refresh()
        assert [facts(run.model().frame(at)) for at in range(len(run.model()))] == [
            facts(frame(step, graph=0)) for step in (0, 10, 20)[: len(run.model())]
        ]
    growing.write_bytes(data)
    assert run is not None
    run.refresh()
    assert (len(run.model()), run.warnings) == (3, ())


def test_zeros_at_the_end_are_waited_for(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    data, file = segment(tmp_path).read_bytes(), segment(tmp_path)
    before = data.rindex(b"\xe5TGREC\r\n")
    file.write_bytes(data[:before] + bytes(len(data) - before))
    run = open_run(tmp_path)
    assert (run.model().finished, run.warnings) == (None, ())
    file.write_bytes(data + bytes(8))
    run.refresh()
    assert run.model().finished is not None


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def zeros_at_the_end(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(len(data) - len(data) // 2)


def a_hole(data: bytes) -> bytes:
    """Over the beginnings of records."""
    *_, first, _ = records(data)
    return data[: first - 200] + bytes(400) + data[first + 200 :]


@pytest.mark.filterwarnings("ignore::torchgraph_explorer.errors.TorchgraphWarning")
@pytest.mark.parametrize("early", [zeros, zeros_at_the_end, a_hole])
@pytest.mark.parametrize("part", ["steps", "kept tensors"])
def test_what_comes_after_the_size_of_the_file_is_read(
    early: Callable[[bytes], bytes], part: str, tmp_path: Path
) -> None:
    """As over a network, or while a program copies the run that has made the file as long as it will be."""
    writer = RecordWriter(tmp_path)
    for record in (SESSION, GRAPH, SERIES, frame(0), frame(1), frame(2)):
        writer.write(record)
    for step in range(3):
        writer.keep(kept(step), 1 << 30)
    writer.close()
    write(tmp_path, SERIES, session=other_session("later", created=5_000.0))
    file = segment(tmp_path) if part == "steps" else kept_segment(tmp_path)
    data = file.read_bytes()
    file.write_bytes(early(data))
    os.utime(file, (0, 0))  # so that the time of what comes is another one
    run = quietly(tmp_path)
    model = run.model()
    assert (len(model), len(model.kept.steps)) < (3, 3)
    file.write_bytes(data)
    run.refresh()
    assert (len(model), len(model.kept.steps)) == (3, 3)
    assert facts(model.frame(1)) == facts(frame(1))


def test_a_graph_that_is_written_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    newer = replace(GRAPH, calls=(*GRAPH.calls, Call("fc", 2, 0, (), ())))
    write(tmp_path, GRAPH, SERIES, frame(0), newer, frame(1))
    model = open_run(tmp_path).model()
    assert model.graphs == (newer,)
    assert model.graph_revision(0) == 1
    assert model.epoch == 0


def test_a_frame_may_speak_of_a_graph_before_it_is_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    for record in (SESSION, SERIES, frame(0)):
        writer.write(record)
    run = open_run(tmp_path)
    model = run.model()
    assert (model.graph_ids.tolist(), model.epoch) == ([-1], 0)
    writer.write(GRAPH)
    writer.close()
    run.refresh()
    assert (model.graph_ids.tolist(), model.epoch, model.frame(0).graph) == ([0], 1, 0)


def test_a_resumed_session_goes_on_in_the_same_series_and_graph(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0), frame(10), Finished(1.0))
    resumed = other_session("later", created=5_000.0)
    renumbered = tuple(replace(one, id=3 - one.id) for one in SERIES)
    wider = replace(GRAPH, id=4, modules=tuple(replace(one, total_params=99) for one in GRAPH.modules))
    write(tmp_path, wider, renumbered, frame(20, graph=4), session=resumed)
    model = open_run(tmp_path).model()
    assert (model.sessions, model.session, model.finished) == ((SESSION, resumed), resumed, None)
    assert model.series == SERIES
    assert model.graphs == (replace(wider, id=0),)
    assert model.graph_ids.tolist() == [0, 0, 0]
    assert model.frame(2).series.tolist() == [3, 2, 1, 0]
    assert model.history(3).frames.tolist() == [0, 1, 2]


def test_a_graph_of_another_structure_is_another_graph(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0))
    other = replace(GRAPH, edges=GRAPH.edges[:1])
    write(tmp_path, other, SERIES, frame(1), session=other_session("later"))
    model = open_run(tmp_path).model()
    assert model.graphs == (GRAPH, replace(other, id=1))
    assert model.graph_ids.tolist() == [0, 1]


def test_the_last_write_of_a_step_wins_and_begins_an_epoch(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0), frame(10), frame(20))
    run = open_run(tmp_path)
    again = frame(10, seed=1, graph=None)
    write(tmp_path, SERIES, again, frame(15), session=other_session("later"))
    run.refresh()
    model = run.model()
    assert (model.steps.tolist(), model.epoch) == ([0, 10, 15, 20], 1)
    assert facts(model.frame(1)) == facts(again)
    assert open_run(tmp_path).model().steps.tolist() == [0, 10, 15, 20]


def test_frames_after_the_last_one_begin_no_epoch(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0))
    run = open_run(tmp_path)
    write(tmp_path, SERIES, frame(1), session=other_session("later"))
    run.refresh()
    assert (len(run.model()), run.model().epoch) == (2, 0)


def test_several_models_share_a_run(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0), session=other_session("g", model="generator"))
    write(tmp_path, SERIES, frame(5), session=other_session("d", model="discriminator"))
    run = open_run(tmp_path)
    assert run.models == ("generator", "discriminator")
    assert run.model("discriminator").steps.tolist() == [5]
    with pytest.raises(NotFoundError, match=r"holds 2 models. Name one of: 'generator', 'discriminator'"):
        run.model()
    with pytest.raises(NotFoundError, match=r"has no model 'critic'. Name one of"):
        run.model("critic")


def test_writers_at_the_same_time_take_different_segments(tmp_path: Path) -> None:
    names = [f"model{number}" for number in range(6)]
    ready = threading.Barrier(len(names))

    def work(name: str) -> None:
        ready.wait()
        write(tmp_path, SERIES, *map(frame, range(5)), session=other_session(name, model=name))

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run = open_run(tmp_path)
    assert sorted(run.models) == names
    assert all(len(run.model(name)) == 5 for name in names)


def test_a_run_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path / "run", SERIES, frame(0), frame(1))
    run = open_run(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    write(tmp_path / "run", SERIES, frame(7), session=other_session("new"))
    assert run.refresh()
    assert (run.model().steps.tolist(), run.model().epoch) == ([7], 1)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        pytest.param(scan, "_head", id="found"),
        pytest.param(RunRecord, "_begin", id="a segment's beginning"),
        pytest.param(ModelIndex, "take", id="a graph"),
    ],
)
def test_a_record_that_cannot_be_read_now_is_read_later(
    place: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SERIES, frame(0))
    run = open_run(tmp_path)
    write(tmp_path, GRAPH, frame(1), session=other_session("later"))
    with monkeypatch.context() as patch:
        patch.setattr(place, name, refuse)
        for _ in range(2):
            with pytest.raises(RecordError, match="not now"):
                run.refresh()
    assert run.refresh()
    assert (run.model().steps.tolist(), len(run.model().graphs)) == ([0, 1], 1)


def refuse(*_: object) -> None:
    raise RecordError("not now")


def test_a_working_directory_that_changes_moves_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = RecordWriter("run")
    for record in (SESSION, SERIES, frame(0)):
        writer.write(record)
    run = open_run("run")
    monkeypatch.chdir("elsewhere")
    writer.close()
    writer.write(frame(1))
    writer.close()
    assert run.refresh()
    assert [facts(run.model().frame(at))[0] for at in range(2)] == [0, 1]


def test_a_run_that_was_removed_holds_nothing(tmp_path: Path) -> None:
    write(tmp_path / "run", SERIES, frame(0))
    run = open_run(tmp_path / "run")
    model = run.model()
    shutil.rmtree(tmp_path / "run")
    assert run.refresh()
    with pytest.raises(NotFoundError, match=r"has no model 'net'. Nothing has been recorded in it yet"):
        model.frame(0)


def test_the_size_can_be_read_while_another_thread_finds_segments() -> None:
    class File:
        @property
        def size(self) -> int:
            run._segments[str(len(run._segments))] = segment
            return 1

    run, segment = RunRecord.__new__(RunRecord), cast("Any", SimpleNamespace(file=File()))
    run._segments = {"0": segment}
    assert run.bytes == 1


def test_notices_can_be_read_while_another_thread_adds_some() -> None:
    class Text(str):
        __slots__ = ()

        def __hash__(self) -> int:
            if (number := len(notices._texts)) in (1, 2):
                notices._texts[f"{number}"] = None
            return super().__hash__()

    notices = Notices()
    notices._texts = {cast("str", Text("damage")): None}
    assert notices.texts[0] == "damage"


@pytest.mark.slow
def test_threads_may_read_while_one_refreshes(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    for record in (SESSION, GRAPH, SERIES):
        writer.write(record)
    run = open_run(tmp_path)
    faults: list[object] = []

    def read() -> None:
        while len(run.model()) < 60:
            run.refresh()
            steps = run.model().history(2).steps.tolist()
            if steps != list(range(len(steps))):
                faults.append(steps)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for step in range(60):
        writer.write(frame(step))
    writer.close()
    for reader in readers:
        reader.join()
    assert faults == []
