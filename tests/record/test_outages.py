"""A store that takes nothing for a while, and a folder that is deleted: what is lost is said, and recording goes on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.kept import KeptArray, together
from tests.record.examples import GRAPH, SERIES, SESSION, facts, frame, other_session, quietly, segment
from tests.stores import delete_folder
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.record import outbox, remote, segments
from torchgraph_explorer.record.folder import TENSORS, plugin_folder
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Finished, KeptStep

FULL = OSError(errno.ENOSPC, "No space left on device")
MOST_KEPT = 1 << 30


class Clock:
    """Time that passes when it is told to."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(outbox, "monotonic", clock)
    monkeypatch.setattr(remote, "monotonic", clock)
    return clock


class StoreError(Exception):
    """Of a store; as those of botocore, it is no OSError."""


class Outage:
    """While it is on, a store takes nothing; a disk takes half a record."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.tries = 0

    def refuse(self) -> None:
        if self.fault is not None:
            self.tries += 1
            raise self.fault


def full_disk(outage: Outage, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(file: FileIO, data: bytes) -> None:
        if outage.fault is not None:
            file.write(data[: len(data) // 2])
            outage.refuse()
        whole(file, data)

    whole = segments._write
    monkeypatch.setattr(segments, "_write", write)


def dead_network(outage: Outage, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe_file(*of: Any, **how: Any) -> None:
        outage.refuse()
        whole(*of, **how)

    whole = MemoryFileSystem.pipe_file
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", pipe_file)
    monkeypatch.setattr(remote, "FLUSH_SECONDS", 0.0)


STORES: dict[str, Callable[[Outage, pytest.MonkeyPatch], None]] = {"folder": full_disk, "url": dead_network}


@pytest.fixture(params=STORES)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Outage]]:
    """Where to write, and what makes that fail."""
    outage = Outage()
    STORES[request.param](outage, monkeypatch)
    yield str(tmp_path / "run") if request.param == "folder" else "memory://outages/run", outage
    fsspec.filesystem("memory").store.clear()


def begun(place: str) -> RecordWriter:
    writer = RecordWriter(place)
    for record in (SESSION, GRAPH, SERIES, frame(0)):
        writer.write(record)
    return writer


def kept(step: int) -> KeptStep:
    """A step with some 500 bytes of kept tensors."""
    values = np.full(250, step + 1, np.uint8)
    array = KeptArray(SERIES[1].key, "uint8", values.shape, None, (), values, None)
    return KeptStep(step, 9.0, None, together(array))


def said(warned: pytest.WarningsRecorder) -> list[str]:
    return [str(one.message) for one in warned if issubclass(one.category, TorchgraphWarning)]


def steps(place: str) -> list[int]:
    return open_run(place).model().steps.tolist()


@pytest.mark.slow
def test_what_waited_is_written_when_there_is_space_again(
    store: tuple[str, Outage],
    clock: Clock,
    recwarn: pytest.WarningsRecorder,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place, outage = store
    writer = begun(place)
    outage.fault = FULL
    for step in range(1, 40):
        clock.now += 5
        writer.write(frame(step))
    [sentence] = said(recwarn)
    assert "cannot be written to (OSError: [Errno 28] No space left on device)" in sentence
    assert outage.tries < 12, "the pauses grow"
    outage.fault = None
    clock.now += outbox.LONGEST_PAUSE
    writer.when_idle()
    assert "can be written to again; the record lacks nothing" in capsys.readouterr().err
    writer.write(frame(40))
    writer.close()
    run = open_run(place)
    assert run.warnings == ()
    assert [facts(run.model().frame(at)) for at in range(41)] == [facts(frame(step)) for step in range(41)]


def test_beyond_what_may_wait_steps_are_dropped_and_told(
    store: tuple[str, Outage], clock: Clock, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_WAITING", 6_000)
    place, outage = store
    writer = begun(place)
    outage.fault = StoreError("away")
    for step in range(1, 30):
        writer.write(frame(step))
    outage.fault = None
    clock.now += outbox.LONGEST_PAUSE
    for record in (frame(30), Finished(9.0)):
        writer.write(record)
    writer.close()
    model = open_run(place).model()
    dropped = sorted(set(range(31)) - set(model.steps.tolist()))
    assert dropped == list(range(dropped[0], 30))
    assert 2 < dropped[0] < 20
    assert model.finished is not None
    [note], [away, back] = model.finished.notes, said(recwarn)
    assert f"{len(dropped)} logged steps ({dropped[0]} to 29) are missing" in note
    assert "cannot be written to (StoreError: away)" in away
    assert back == f"{note} It can be written to again, and recording goes on."


def test_so_are_steps_of_kept_tensors(
    store: tuple[str, Outage], clock: Clock, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_WAITING", 6_000)
    place, outage = store
    writer = begun(place)
    sizes = [writer.keep(kept(0), MOST_KEPT)]
    outage.fault = FULL
    sizes += [writer.keep(kept(step), MOST_KEPT) for step in range(1, 30)]
    outage.fault = None
    clock.now += outbox.LONGEST_PAUSE
    sizes.append(writer.keep(kept(30), MOST_KEPT))
    writer.close()
    model = open_run(place).model()
    found = model.kept.steps.tolist()
    assert [model.tensor(SERIES[1], step).values[-1] for step in found] == [step + 1 for step in found]
    assert found == [*range(found[-2] + 1), 30]
    assert 2 < found[-2] < 20
    assert sizes[found[-2]] == sizes[29], "what is dropped takes no space"
    missing = f"{29 - found[-2]} logged steps ({found[-2] + 1} to 29) are missing"
    assert f"{missing}, since {place} (kept tensors)" in said(recwarn)[-1]


def test_what_is_not_written_in_the_end_is_said(store: tuple[str, Outage], recwarn: pytest.WarningsRecorder) -> None:
    place, outage = store
    writer = begun(place)
    outage.fault = FULL
    for record in (frame(1), frame(2), Finished(9.0)):
        writer.write(record)
    writer.close()
    [_, sentence] = said(recwarn)
    assert "The record lacks 2 logged steps (1 to 2)" in sentence
    assert steps(place) == [0]


def test_a_disk_that_fails_as_the_file_is_closed_is_said_and_the_kept_tensors_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """As a network's disk does that did not take what was written."""
    writer, closed = begun(str(tmp_path)), list[int]()
    writer.keep(kept(0), MOST_KEPT)
    assert writer._outbox is not None
    assert writer._tensors is not None
    close_store, close_tensors = writer._outbox._store.close, writer._tensors.close

    def fail() -> None:
        close_store()
        raise FULL

    def close() -> None:
        close_tensors()
        closed.append(1)

    monkeypatch.setattr(writer._outbox._store, "close", fail)
    monkeypatch.setattr(writer._tensors, "close", close)
    writer.close()
    assert closed == [1]
    assert "The record lacks its end" in said(recwarn)[-1]


def test_where_nothing_is_ever_written_that_is_said_once(
    store: tuple[str, Outage], clock: Clock, recwarn: pytest.WarningsRecorder
) -> None:
    place, outage = store
    outage.fault = FULL
    writer = begun(place)
    clock.now += 5
    writer.write(Finished(9.0))
    writer.close()
    [sentence] = said(recwarn)
    assert "What cannot be written before the watcher is closed is lost" in sentence
    assert not list(Path(place).rglob("*.tgraph"))


@pytest.mark.parametrize("is_cut", [True, False], ids=["cut back", "left torn"])
def test_a_torn_record_costs_nothing_of_what_comes_after(
    is_cut: bool, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, outage = begun(str(tmp_path)), Outage()
    full_disk(outage, monkeypatch)
    if not is_cut:
        monkeypatch.setattr(os, "ftruncate", refusing)
    outage.fault = FULL
    with pytest.warns(TorchgraphWarning, match="cannot be written to"):
        writer.write(frame(1))
    outage.fault = None
    clock.now += 5
    writer.write(frame(2))
    writer.close()
    assert len(list(tmp_path.rglob("*.tgraph"))) == 2 - is_cut
    assert quietly(tmp_path).model().steps.tolist() == [0, 1, 2]


def refusing(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


FULL_FOR_A_WHILE = """
import resource, sys, time
from tests.record.examples import GRAPH, SERIES, SESSION, frame
from torchgraph_explorer.record import outbox
from torchgraph_explorer.record.writer import RecordWriter

outbox.FIRST_PAUSE = outbox.LONGEST_PAUSE = 0.0
writer = RecordWriter(sys.argv[1])
for record in (SESSION, GRAPH, SERIES):
    writer.write(record)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for step in range(60):
    full = step % 20 > 5
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000 + 1_000 * step if full else soft, hard))
    writer.write(frame(step))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
writer.close()
"""


@pytest.mark.slow
def test_a_system_that_takes_half_a_record_again_and_again_loses_none(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FULL_FOR_A_WHILE, str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    run = open_run(tmp_path)
    assert run.warnings == ()
    assert [facts(run.model().frame(at)) for at in range(60)] == [facts(frame(step)) for step in range(60)]


def moved(run: Path) -> None:
    run.rename(run.with_name("elsewhere"))


def segments_deleted(run: Path) -> None:
    for file in run.rglob("*.tgraph"):
        file.unlink()


def made_again(run: Path) -> None:
    delete_folder(run)
    run.mkdir()


GONE: dict[str, Callable[[Path], None]] = {
    "run deleted": delete_folder,
    "folder of runs deleted": lambda run: delete_folder(run.parent),
    "segments deleted": segments_deleted,
    "run moved away": moved,
    "run deleted and made again": made_again,
}


@pytest.mark.parametrize("take", GONE.values(), ids=GONE)
def test_a_folder_that_is_gone_is_said_once_and_made_again_with_all_that_is_needed(
    take: Callable[[Path], None], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    run = tmp_path / "runs" / "run"
    writer = begun(str(run))
    for step in (1, 2):
        writer.write(frame(step))
    take(run)
    for record in (frame(3), frame(4), Finished(9.0)):
        writer.write(record)
    writer.close()
    assert said(recwarn) == [
        f"{run} was deleted or moved away while it was written to. The steps before 3 are missing in it now."
    ]
    model = open_run(run).model()
    assert [facts(model.frame(at)) for at in range(2)] == [facts(frame(step)) for step in (3, 4)]
    assert (model.graphs, model.series) == ((GRAPH,), SERIES)
    assert model.finished is not None
    assert "The steps before 3 are missing" in model.finished.notes[0]


@pytest.mark.parametrize("left", [0, 16, 700, -1], ids=["to nothing", "to its header", "in the middle", "by a byte"])
def test_a_file_that_another_program_cuts_off_is_told_once_and_costs_only_what_was_in_it(
    left: int, tmp_path: Path, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchgraph_explorer.record.writer.time", lambda: 1_000.0)  # a reader waits a minute
    writer = begun(str(tmp_path))
    sizes = []
    for number, steps in enumerate((range(1, 3), range(3, 5), range(5, 7))):
        for step in steps:
            writer.write(frame(step))
        sizes.append(segment(tmp_path, number).stat().st_size)
        if number < 2:
            os.truncate(segment(tmp_path, number), left % sizes[-1])
    writer.write(Finished(9.0))
    writer.close()
    [told] = said(recwarn)
    assert told.startswith(f"{segment(tmp_path)} was cut off by another program while it was written to: ")
    assert f"{sizes[0] - left % sizes[0]:,} of its {sizes[0]:,} bytes are missing" in told
    run = quietly(tmp_path)
    model = run.model()
    assert model.steps.tolist()[-2:] == [5, 6]
    assert facts(model.frame(-1)) == facts(frame(6))
    assert (model.graphs, model.series) == ((GRAPH,), SERIES)
    assert model.finished is not None
    assert told in model.finished.notes
    noticed = " ".join(run.warnings)
    assert "000001.tgraph" in noticed
    assert "000000.tgraph" in noticed or "and so is the one before it" in noticed


def test_kept_tensors_that_another_program_cuts_off_are_told_and_go_on(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    writer = begun(str(tmp_path))
    for step in range(3):
        writer.keep(kept(step), 1 << 30)
        if step == 1:
            os.truncate(plugin_folder(tmp_path, TENSORS) / "000000.tgraph", 100)
    writer.write(Finished(9.0))
    writer.close()
    assert "tensors/000000.tgraph was cut off by another program" in "".join(said(recwarn))
    assert quietly(tmp_path).model().kept.steps.tolist() == [2]


def test_a_run_in_whose_place_a_file_is_put_is_said_to_be_lost(
    tmp_path: Path, clock: Clock, recwarn: pytest.WarningsRecorder
) -> None:
    run = tmp_path / "run"
    writer = begun(str(run))
    delete_folder(run)
    run.write_bytes(b"")
    writer.write(frame(1))
    assert len(said(recwarn)) == 2
    run.unlink()
    clock.now += 5
    for record in (frame(2), Finished(9.0)):
        writer.write(record)
    writer.close()
    assert steps(str(run)) == [1, 2]


def test_a_run_that_was_moved_away_is_complete_where_it_is_now(tmp_path: Path) -> None:
    writer = begun(str(tmp_path / "run"))
    moved(tmp_path / "run")
    with pytest.warns(TorchgraphWarning, match="moved away"):
        writer.write(frame(1))
    writer.close()
    assert (steps(str(tmp_path / "elsewhere")), steps(str(tmp_path / "run"))) == ([0], [1])


def test_writers_of_one_run_that_is_deleted_each_go_on(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    writers = [begun(str(tmp_path / "run")), RecordWriter(tmp_path / "run")]
    for record in (other_session("eval", model="net (eval)"), SERIES, frame(0, graph=None)):
        writers[1].write(record)
    for time in (1, 2):
        delete_folder(tmp_path / "run")
        for writer in writers:
            writer.write(frame(time, graph=None))
    for writer in writers:
        writer.close()
    assert len(said(recwarn)) == 2
    run = open_run(tmp_path / "run")
    assert {name: (run.model(name).steps.tolist(), run.model(name).series) for name in run.models} == {
        "net": ([2], SERIES),
        "net (eval)": ([2], SERIES),
    }


def test_no_folder_is_made_again_for_the_end_of_a_record_alone(tmp_path: Path) -> None:
    """As where a training ran in a temporary folder, and is closed at exit."""
    writer = begun(str(tmp_path / "run"))
    delete_folder(tmp_path / "run")
    with pytest.warns(TorchgraphWarning, match=r"was deleted or moved away.* What it held is lost\."):
        writer.write(Finished(9.0))
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_deleted_while_the_disk_is_full_is_made_again(
    tmp_path: Path, clock: Clock, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = Outage()
    full_disk(outage, monkeypatch)
    writer = begun(str(tmp_path / "run"))
    outage.fault = FULL
    writer.write(frame(1))
    delete_folder(tmp_path / "run")
    clock.now += 5
    writer.write(frame(2))
    outage.fault = None
    clock.now += 5
    writer.write(frame(3))
    writer.close()
    assert ["cannot be written" in said(recwarn)[0], "before 1 are missing" in said(recwarn)[1]] == [True, True]
    model = open_run(tmp_path / "run").model()
    assert (model.steps.tolist(), model.graphs, model.series) == ([1, 2, 3], (GRAPH,), SERIES)
