"""What is missing in a run, and what is another run's, is said and not shown."""

from __future__ import annotations

import os
import re
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, frame, other_session, quietly, records, segment, write
from tests.tensors.test_record import LOOP_GRAPH, kept
from torchgraph_explorer.record import beginnings, remote, writer
from torchgraph_explorer.record.discovery import list_runs
from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.format.envelope import FILE_HEADER_SIZE
from torchgraph_explorer.record.ranks.groups import launches
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Finished, Record, Session, TensorGraph

STEPS = range(40)
SMALL = 6_000
"""Bytes of a segment with a few frames."""


@pytest.fixture(autouse=True)
def _long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """All was written more than a minute ago."""
    monkeypatch.setattr(writer, "time", lambda: 1_000.0)


def written(run: Path, *, session: Session = SESSION, is_closed: bool = True) -> list[bytes]:
    """A run of several segments; what is in each."""
    end = (Finished(3_000.0),) if is_closed else ()
    write(run, GRAPH, SERIES, *map(frame, STEPS), *end, session=session, segment_bytes=SMALL)
    return contents(run)


def written_file(run: Path, number: int) -> Path:
    """One of the files of such a run."""
    written(run)
    return segment(run, number)


def contents(run: Path) -> list[bytes]:
    return [file.read_bytes() for file in files(run)]


def with_kept(run: Path, *, name: str = SESSION.id, is_closed: bool = True) -> Path:
    """A run of one session with three kept steps; the folder of those."""
    sink = RecordWriter(run)
    before: list[Record] = [other_session(name), GRAPH, SERIES, *map(frame, range(3))]
    for record in before:
        sink.write(record)
    for step in range(3):
        sink.keep(kept(step), 1 << 30)
    if is_closed:
        sink.write(Finished(3_000.0))
    sink.close()
    return plugin_folder(run, TENSORS)


def files(run: Path) -> list[Path]:
    return sorted(plugin_folder(run).glob("*.tgraph"))


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_a_record_that_lacks_nothing_is_not_called_damaged(is_closed: bool, tmp_path: Path) -> None:
    parts = written(tmp_path, is_closed=is_closed)
    run = open_run(tmp_path)
    assert len(parts) > 3
    assert (run.warnings, run.model().steps.tolist()) == ((), list(STEPS))


@pytest.mark.slow
def test_a_training_killed_at_any_record_is_not_called_damaged(tmp_path: Path) -> None:
    parts = written(tmp_path / "whole", is_closed=False)
    for number, data in enumerate(parts):
        for cut in records(data)[2:]:
            run = tmp_path / f"{number}-{cut}"
            place = plugin_folder(run)
            place.mkdir(parents=True)
            for at, each in enumerate((*parts[:number], data[:cut])):
                (place / f"{at:06d}.tgraph").write_bytes(each)
            assert open_run(run).warnings == ()


@pytest.mark.slow
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_a_segment_that_is_cut_off_between_two_records_is_told(is_closed: bool, tmp_path: Path) -> None:
    parts = written(tmp_path, is_closed=is_closed)
    for number, data in enumerate(parts[:-1] if not is_closed else parts):
        ends = records(data)
        for cut in ends[2 : -1 if number == 0 and is_closed else None]:
            files(tmp_path)[number].write_bytes(data[:cut])
            [sentence] = quietly(tmp_path).warnings
            assert sentence.startswith(f"segment {number:06d}.tgraph: ")
            assert "bytes that were written are missing" in sentence
        files(tmp_path)[number].write_bytes(data)
    assert open_run(tmp_path).warnings == ()


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_a_segment_that_is_deleted_is_told(is_closed: bool, tmp_path: Path) -> None:
    """But for the last one of a training that was killed: there may have been none."""
    parts = written(tmp_path, is_closed=is_closed)
    for number, data in enumerate(parts[: None if is_closed else -1]):
        segment(tmp_path, number).unlink()
        run = quietly(tmp_path)
        assert run.warnings == (f"segment {number:06d}.tgraph is missing: what the session wrote there is lost",)
        assert 0 < len(run.model()) < len(STEPS)
        segment(tmp_path, number).write_bytes(data)


def test_several_segments_that_are_deleted_are_counted(tmp_path: Path) -> None:
    parts = written(tmp_path)
    for number in range(1, len(parts)):
        segment(tmp_path, number).unlink()
    last = len(parts) - 1
    lost = "what the session wrote there is lost"
    assert quietly(tmp_path).warnings == (
        f"segment {last:06d}.tgraph is missing, and so are {last - 1} before it: {lost}",
    )


def test_what_is_lost_in_the_middle_of_the_last_segment_is_told(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, *map(frame, range(3)), Finished(3_000.0))
    data = segment(tmp_path).read_bytes()
    at = records(data)
    segment(tmp_path).write_bytes(data[: at[7]] + data[at[8] :])
    [sentence] = quietly(tmp_path).warnings
    assert sentence.startswith(f"segment 000000.tgraph: {at[8] - at[7]:,} of the {len(data):,} bytes")


def test_records_that_are_lost_are_told_though_the_file_is_no_shorter(tmp_path: Path) -> None:
    """Something else fills the place: copies of other records, which are as sound as they were."""
    files_left = written(tmp_path)
    for number, data in enumerate(files_left):
        first, *others = [*records(data)[2:], len(data)]
        lost = data[:first] + data[others[0] :]
        segment(tmp_path, number).write_bytes(lost + 3 * data[others[0] : others[1]])
        warnings = quietly(tmp_path).warnings
        assert re.match(
            rf"segment {number:06d}.tgraph: its records end at byte [\d,]+, and were left at byte [\d,]+; some are "
            rf"lost, or in it twice$",
            warnings[-1],
        )
        segment(tmp_path, number).write_bytes(data)


def test_kept_steps_that_are_lost_are_told_though_the_file_is_no_shorter(tmp_path: Path) -> None:
    file = with_kept(tmp_path) / "000000.tgraph"
    data = file.read_bytes()
    *_, first, second, third = records(data)
    file.write_bytes(data[:first] + 3 * data[third:])
    run = quietly(tmp_path)
    told = "it has the record of step 2 twice, and another one may be lost in its place"
    with pytest.warns(UserWarning, match=f"segment tensors/000000.tgraph: {told}"):
        assert run.model().kept.steps.tolist() == [2]
    assert third - second == second - first, "else it is told by the size"


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_frame_that_lies_in_the_place_of_another_one_is_told(ranks: int, tmp_path: Path) -> None:
    for rank in range(ranks):
        session = other_session(f"rank {rank}", **({"rank": rank, "world_size": 2} if ranks > 1 else {}))
        same = [replace(frame(step), statistics=frame(1).statistics, histograms=frame(1).histograms) for step in (1, 2)]
        write(tmp_path, GRAPH, SERIES, frame(0), *same, Finished(3_000.0), session=session)
    data = segment(tmp_path).read_bytes()
    *_, second, third, cells, _ = records(data)
    segment(tmp_path).write_bytes(data[:second] + data[third:cells] + data[third:])
    run = quietly(tmp_path)
    told = "segment 000000.tgraph: it has the record of step 2 twice, and another one may be lost in its place"
    assert run.warnings == (told,)
    assert run.model().steps.tolist() == ([0, 2] if ranks == 1 else [0, 1, 2])


@pytest.mark.parametrize("left", [1, 2, 3], ids=["of the segment one", "of no segment", "of none and a step"])
def test_kept_tensors_in_a_file_without_its_beginning_are_told(left: int, tmp_path: Path) -> None:
    file = with_kept(tmp_path, is_closed=False) / "000000.tgraph"
    data = file.read_bytes()
    file.write_bytes(data[:16] + data[records(data)[left] :])
    run = quietly(tmp_path)
    if left == 1:
        assert (run.model().kept.steps.tolist(), run.warnings) == ([0, 1, 2], ())
        return
    told = "its first records are damaged, so the session of the others is not known; they were skipped"
    with pytest.warns(UserWarning, match=f"segment tensors/000000.tgraph: {told}"):
        assert run.model().kept.steps.tolist() == []


def test_nothing_is_told_before_every_machine_can_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    segment(tmp_path, 1).unlink()
    monkeypatch.setattr(time, "time", lambda: 1_059.0)
    run = open_run(tmp_path)
    assert run.warnings == ()
    monkeypatch.setattr(time, "time", lambda: 1_061.0)
    with pytest.warns(UserWarning, match=r"000001.tgraph is missing"):
        run.refresh()
    written(tmp_path / "again")
    shutil.copy(segment(tmp_path / "again", 1), segment(tmp_path, 1))
    run.refresh()
    assert run.warnings == ()


def test_a_segment_that_was_deleted_while_it_was_written_to_is_told_once(tmp_path: Path) -> None:
    sink = RecordWriter(tmp_path, segment_bytes=SMALL)
    before: list[Record] = [SESSION, GRAPH, SERIES, *map(frame, range(3))]
    for record in before:
        sink.write(record)
    files(tmp_path)[-1].unlink()
    with pytest.warns(UserWarning, match="deleted or moved away"):
        sink.write(frame(3))
    sink.write(Finished(3_000.0))
    sink.close()
    run = open_run(tmp_path)
    assert run.warnings == ()
    assert any("deleted or moved away" in note for note in run.model().finished.notes)  # type: ignore[union-attr]


def other_run(run: Path) -> list[bytes]:
    """A run of the same model, in two sessions."""
    write(run, GRAPH, SERIES, *(frame(step, seed=7) for step in STEPS), session=other_session("other"))
    write(run, GRAPH, SERIES, frame(50), session=other_session("other, resumed", created=6_000.0))
    return contents(run)


def resumed(run: Path) -> list[bytes]:
    """A run that was continued twice."""
    write(run, GRAPH, SERIES, frame(0), frame(1))
    write(run, GRAPH, SERIES, frame(2), session=other_session("later", created=4_000.0))
    write(run, GRAPH, SERIES, frame(3), session=other_session("last", created=5_000.0))
    return contents(run)


@pytest.mark.parametrize("graph", [None, LOOP_GRAPH], ids=["", "with a dependency graph that is new"])
def test_kept_tensors_that_were_deleted_while_more_were_written_are_told(
    graph: TensorGraph | None, tmp_path: Path
) -> None:
    sink = RecordWriter(tmp_path)
    before: list[Record] = [SESSION, GRAPH, SERIES, *map(frame, range(3))]
    for record in before:
        sink.write(record)
    sink.keep(kept(0), 1 << 30)
    shutil.rmtree(plugin_folder(tmp_path, TENSORS))
    told = "The kept tensors in .* were deleted or moved away .* Those from before step 1 are missing in it now"
    with pytest.warns(UserWarning, match=told):
        sink.keep(replace(kept(1), graph=graph), 1 << 30)
    sink.keep(kept(2), 1 << 30)
    sink.write(Finished(3_000.0))
    sink.close()
    model = open_run(tmp_path).model()
    assert model.kept.steps.tolist() == [1, 2]
    assert model.finished is not None
    assert re.match(told, " ".join(model.finished.notes))
    assert (len(model.tensor_graph(1).edges) > 0) == (graph is not None)


def test_sessions_that_continue_a_run_belong_to_it(tmp_path: Path) -> None:
    resumed(tmp_path)
    run = open_run(tmp_path)
    assert (run.warnings, run.model().steps.tolist()) == ((), [0, 1, 2, 3])


def test_a_moved_and_continued_run_belongs_together(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, frame(0))
    shutil.move(tmp_path / "a", tmp_path / "b")
    segment(tmp_path / "b").rename(segment(tmp_path / "b", 4))
    write(tmp_path / "b", GRAPH, SERIES, frame(1), session=other_session("later", created=4_000.0))
    run = open_run(tmp_path / "b")
    assert (run.warnings, run.model().steps.tolist()) == ((), [0, 1])


@pytest.mark.parametrize("number", [0, 2])
def test_a_segment_in_the_place_of_another_one_is_not_shown(number: int, tmp_path: Path) -> None:
    own = written(tmp_path / "run")
    other = written(tmp_path / "other", session=other_session("other"))
    segment(tmp_path / "run", number).write_bytes(other[number])
    run = quietly(tmp_path / "run")
    one, name = ("000001.tgraph", "000000.tgraph") if number == 0 else ("000000.tgraph", "000002.tgraph")
    assert run.warnings == (
        f"segment {name}: it is of another run than {one}, and was skipped",
        f"segment {name} is missing: what the session wrote there is lost",
    )
    assert [one.id for one in run.model().sessions] == [SESSION.id]
    segment(tmp_path / "run", number).write_bytes(own[number])
    run.refresh()
    assert run.model().steps.tolist() == list(STEPS)


def test_a_segment_in_the_place_of_another_one_at_a_url_is_not_shown(bucket: str) -> None:
    """There, no segment says which run it is of."""
    import fsspec

    store, other = fsspec.filesystem("memory"), f"{bucket}-other"
    write(bucket, GRAPH, SERIES, *map(frame, range(3)), Finished(3_000.0))
    write(other, GRAPH, SERIES, frame(9), session=other_session("other"))
    name, foreign = (sorted(store.ls(f"{run}/plugins/torchgraph", detail=False))[1] for run in (bucket, other))
    store.mv(foreign, f"{bucket}/plugins/torchgraph/{Path(foreign).name}")
    store.rm_file(name)
    with pytest.warns(UserWarning, match=r"segment 000001-\w+.tgraph") as told:
        run = open_run(bucket)
    assert "it lies in the place of another file, which 000002-" in str(told[0].message)
    assert len(told) == 2
    assert [one.id for one in run.model().sessions] == [SESSION.id]


def test_what_most_sessions_are_of_is_the_run(tmp_path: Path) -> None:
    resumed(tmp_path / "run")
    segment(tmp_path / "run").write_bytes(other_run(tmp_path / "other")[0])
    run = quietly(tmp_path / "run")
    assert run.warnings == ("segment 000000.tgraph: it is of another run than 000001.tgraph, and was skipped",)
    assert run.model().steps.tolist() == [2, 3]
    assert [one.models for one in list_runs(tmp_path / "run")] == [("net",)]


@pytest.mark.parametrize("left", [0, FILE_HEADER_SIZE], ids=["nothing", "its header"])
def test_an_emptied_segment_is_told(left: int, tmp_path: Path) -> None:
    os.truncate(written_file(tmp_path, 1), left)
    assert quietly(tmp_path).warnings == ("segment 000001.tgraph is empty: what the session wrote there is lost",)


@pytest.mark.parametrize(
    ("moved", "displaced"),
    [
        pytest.param({7: 0}, (7,), id="a copy"),
        pytest.param({2: 1}, (2,), id="a copy in the place of another one"),
        pytest.param({0: 2, 2: 0}, (0, 2), id="changed places"),
    ],
)
def test_segments_that_do_not_lie_in_their_order_are_told(
    moved: dict[int, int], displaced: tuple[int, ...], tmp_path: Path
) -> None:
    parts = resumed(tmp_path)
    for number, part in moved.items():
        segment(tmp_path, number).write_bytes(parts[part])
    tail = "Where two segments have the same step, the wrong one may be shown"
    told = (f"segment {one:06d}.tgraph: it was written as {moved[one]:06d}.tgraph. {tail}" for one in displaced)
    assert quietly(tmp_path).warnings == tuple(told)


@pytest.mark.parametrize("number", [1, 2])
def test_a_segment_of_another_run_is_not_shown(number: int, tmp_path: Path) -> None:
    resumed(tmp_path / "run")
    segment(tmp_path / "run", number).write_bytes(other_run(tmp_path / "other")[1])
    run = quietly(tmp_path / "run")
    assert run.warnings == (f"segment {number:06d}.tgraph: it is of another run than 000000.tgraph, and was skipped",)
    assert [one.id for one in run.model().sessions] == [SESSION.id, "last" if number == 1 else "later"]


def test_the_segment_of_another_runs_rank_is_not_shown(tmp_path: Path) -> None:
    for name in ("run", "other"):
        for number in range(2):
            session = replace(SESSION, id=f"{name} {number}", rank=number, world_size=2)
            write(tmp_path / name, GRAPH, SERIES, frame(0), session=session)
    shutil.copy(segment(tmp_path / "other", 1), segment(tmp_path / "run", 1))
    run = quietly(tmp_path / "run")
    assert launches(run.model().sessions).latest == ("run 0",)
    assert "it is of another run than 000000.tgraph" in run.warnings[0]


def test_kept_tensors_in_the_wrong_folder_do_not_make_a_run_another_one(tmp_path: Path) -> None:
    with_kept(tmp_path / "other", name="other")
    write(tmp_path / "run", GRAPH, SERIES, frame(0))
    segment(tmp_path / "run").rename(segment(tmp_path / "run", 1))
    shutil.copy(plugin_folder(tmp_path / "other", TENSORS) / "000000.tgraph", segment(tmp_path / "run"))
    write(tmp_path / "run", GRAPH, SERIES, frame(1), session=other_session("later", created=4_000.0))
    assert quietly(tmp_path / "run").model().steps.tolist() == [0, 1]


def test_what_cannot_be_read_in_the_folder_does_not_keep_from_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    write(tmp_path, GRAPH, SERIES, frame(0))
    monkeypatch.setattr(beginnings, "segment_files", refuse)
    write(tmp_path, GRAPH, SERIES, frame(1), session=other_session("later", created=4_000.0))
    run = open_run(tmp_path)
    assert (run.warnings, run.model().steps.tolist()) == ((), [0, 1])


def test_a_writer_that_was_killed_before_it_began_is_no_other_run(tmp_path: Path) -> None:
    segment(tmp_path).parent.mkdir(parents=True)
    segment(tmp_path).touch()
    write(tmp_path, GRAPH, SERIES, frame(0))
    write(tmp_path, GRAPH, SERIES, frame(1), session=other_session("later", created=4_000.0))
    run = open_run(tmp_path)
    assert (run.warnings, run.model().steps.tolist()) == ((), [0, 1])


def test_ranks_that_begin_at_once_are_one_run(tmp_path: Path) -> None:
    sinks = [RecordWriter(tmp_path) for _ in range(3)]
    for number, sink in enumerate(sinks):
        sink.write(replace(SESSION, id=f"{number}", rank=number, world_size=3))
    for sink in sinks:
        sink.close()
    assert open_run(tmp_path).warnings == ()
    assert len(open_run(tmp_path).model().sessions) == 3


def with_header(data: bytes) -> bytes:
    return data[16:]


def without_header(data: bytes) -> bytes:
    return data[records(data)[2] :]


@pytest.mark.parametrize("tail", [with_header, without_header])
def test_another_runs_records_at_the_end_of_a_file_are_not_shown(
    tail: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    write(tmp_path / "run", GRAPH, SERIES, frame(0))
    own = segment(tmp_path / "run").read_bytes()
    write(tmp_path / "other", GRAPH, SERIES, frame(9), session=other_session("other"))
    segment(tmp_path / "run").write_bytes(own + tail(segment(tmp_path / "other").read_bytes()))
    run = quietly(tmp_path / "run")
    told = f"segment 000000.tgraph: from byte {len(own)} on, it has records of another session, which were skipped"
    assert (run.warnings, run.model().steps.tolist(), len(run.model().sessions)) == ((told,), [0], 1)


def test_records_that_do_not_say_whose_they_are_are_judged_by_where_they_lie(tmp_path: Path) -> None:
    """As earlier releases wrote them."""
    write(tmp_path / "run", GRAPH, SERIES, frame(0), session=other_session("own"))
    own = segment(tmp_path / "run").read_bytes()
    old = Path(__file__).parent.parent / "contracts" / "runs" / "v1" / "plugins" / "torchgraph"
    other = next(iter(old.glob("*.tgraph"))).read_bytes()
    segment(tmp_path / "run").write_bytes(own + other[16:])
    assert quietly(tmp_path / "run").model().steps.tolist() == [0]


@pytest.mark.parametrize("is_longer", [True, False], ids=["longer", "as long"])
def test_a_segment_that_is_written_over_in_its_place_is_read_again(is_longer: bool, tmp_path: Path) -> None:
    write(tmp_path / "run", GRAPH, SERIES, frame(0), frame(1))
    steps = (5, 6, 7) if is_longer else (5, 6)
    write(tmp_path / "other", GRAPH, SERIES, *map(frame, steps))
    run = open_run(tmp_path / "run")
    with segment(tmp_path / "run").open("r+b") as file:
        file.write(segment(tmp_path / "other").read_bytes())
    os.utime(segment(tmp_path / "run"), (1, 1))
    assert run.refresh()
    assert (run.model().steps.tolist(), run.warnings) == (list(steps), ())


def test_kept_tensors_of_another_run_are_not_shown(tmp_path: Path) -> None:
    own, other = with_kept(tmp_path / "run"), with_kept(tmp_path / "other", name="other")
    run = open_run(tmp_path / "run")
    assert (run.model().kept.steps.tolist(), run.warnings) == ([0, 1, 2], ())
    shutil.copy(other / "000000.tgraph", own / "000000.tgraph")
    os.utime(own / "000000.tgraph", (1, 1))
    with pytest.warns(UserWarning, match=r"segment tensors/000000.tgraph") as told:
        assert run.model().kept.steps.tolist() == []
    assert [str(one.message) for one in told] == [
        "segment tensors/000000.tgraph: it is of a session that has no record in this run, and was skipped. It is "
        "another run's, or that record is lost",
        "segment tensors/000000.tgraph is missing: what the session wrote there is lost",
    ]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_kept_tensors_that_are_missing_are_told(is_deleted: bool, tmp_path: Path) -> None:
    file = with_kept(tmp_path) / "000000.tgraph"
    data = file.read_bytes()
    file.unlink() if is_deleted else file.write_bytes(data[: records(data)[-1]])
    run = quietly(tmp_path)
    told = "is missing: what" if is_deleted else r": .* bytes that were written are missing, and the records in them"
    with pytest.warns(UserWarning, match=f"segment tensors/000000.tgraph ?{told}"):
        assert run.model().kept.steps.tolist() == ([] if is_deleted else [0, 1])


def test_kept_tensors_of_a_session_that_came_since_are_of_the_run(tmp_path: Path) -> None:
    with_kept(tmp_path)
    run = open_run(tmp_path)
    sink = RecordWriter(tmp_path)
    sink.write(other_session("later", created=5_000.0))
    sink.keep(kept(7), 1 << 30)
    sink.close()
    assert (run.model().kept.steps.tolist(), run.warnings) == ([0, 1, 2, 7], ())


def test_another_runs_kept_tensors_at_the_end_of_a_file_are_not_shown(tmp_path: Path) -> None:
    own, other = with_kept(tmp_path / "run", is_closed=False), with_kept(tmp_path / "other", name="other")
    data, foreign = ((folder / "000000.tgraph").read_bytes() for folder in (own, other))
    (own / "000000.tgraph").write_bytes(data + foreign[16:])
    run = quietly(tmp_path / "run")
    with pytest.warns(UserWarning, match=f"segment tensors/000000.tgraph: from byte {len(data)} on, it has records of"):
        assert run.model().kept_at(1).reasons == ()
    assert run.model().kept.steps.tolist() == [0, 1, 2]


def test_a_segment_of_steps_among_the_kept_tensors_is_told(tmp_path: Path) -> None:
    folder = with_kept(tmp_path)
    shutil.copy(segment(tmp_path), folder / "000001.tgraph")
    run = open_run(tmp_path)
    with pytest.warns(UserWarning, match=r"tensors/000001.tgraph: it holds steps, and no kept tensors; it belongs in"):
        assert run.model().kept.steps.tolist() == [0, 1, 2]


def test_a_segment_of_kept_tensors_among_the_steps_is_told(tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0))
    sink = RecordWriter(tmp_path)
    sink.write(other_session("later"))
    sink.keep(kept(1), 1 << 30)
    sink.close()
    shutil.move(plugin_folder(tmp_path, TENSORS) / "000000.tgraph", segment(tmp_path, 2))
    assert quietly(tmp_path).warnings == (
        "segment 000002.tgraph: it holds kept tensors, which belong in the folder tensors, and was skipped",
    )


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import fsspec

    monkeypatch.setattr(remote, "FLUSH_SECONDS", 0.0)
    yield "memory://losses"
    fsspec.filesystem("memory").store.clear()


def test_what_is_missing_at_a_url_is_told(bucket: str) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    write(bucket, GRAPH, SERIES, *map(frame, range(3)), Finished(3_000.0))
    names = sorted(store.ls(f"{bucket}/plugins/torchgraph", detail=False))
    assert open_run(bucket).warnings == ()
    data = store.cat_file(names[3])
    store.rm_file(names[3])
    with pytest.warns(UserWarning, match=f"segment {Path(names[3]).name} is missing: what the session wrote"):
        run = open_run(bucket)
    store.pipe_file(names[3], data[: records(data)[2]])
    with pytest.warns(UserWarning, match=rf"segment {Path(names[3]).name}: .* bytes that were written are missing"):
        run.refresh()
    store.pipe_file(names[3], data)
    run.refresh()
    assert (run.warnings, run.model().steps.tolist()) == ((), [0, 1, 2])


def test_an_end_that_says_more_than_there_is_is_told(tmp_path: Path) -> None:
    """The numbers are not trusted: nothing is made as long as they say."""
    write(tmp_path, GRAPH, SERIES, frame(0), Finished(3_000.0))
    data = bytearray(segment(tmp_path).read_bytes())
    from zlib import crc32

    from torchgraph_explorer.record import record_pb2 as pb
    from torchgraph_explorer.record.format.envelope import enveloped

    at = records(bytes(data))[-1]
    (size,) = struct.unpack_from("<I", data, at + 8)
    head = pb.Head.FromString(bytes(data[at + 24 : at + 24 + size]))
    head.finished.end.CopyFrom(pb.Extent(number=2**32 - 1, part=2**32 - 1, size=2**64 - 1))
    head.session = crc32(SESSION.id.encode())
    segment(tmp_path).write_bytes(bytes(data[:at]) + enveloped(head.SerializeToString()))
    [sentence] = quietly(tmp_path).warnings
    assert sentence.startswith("segment 4294967295.tgraph is missing, and so are 4,294,967,294 before it")
