from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.record.examples import GRAPH, SERIES, SESSION, facts, frame, other_session, write, write_small_run
from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record import remote
from torchgraph_explorer.record.discovery import list_runs
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import open_run

FIRST, LATER = "6fa553108735", "1d9283d848ea"
"""What the names of the sessions' segments end with."""


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty store."""
    name = f"bucket-{abs(hash(request.node.name))}"
    yield f"memory://{name}"
    fsspec.filesystem("memory").store.clear()


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record is put as soon as it is written."""
    monkeypatch.setattr(remote, "FLUSH_SECONDS", 0.0)


def names(bucket: str) -> list[str]:
    return sorted(Path(path).name for path in fsspec.filesystem("memory").find(bucket.removeprefix("memory:/")))


def test_a_run_at_a_url_is_read_as_it_was_written(bucket: str) -> None:
    write_small_run(f"{bucket}/run")
    run = open_run(f"{bucket}/run")
    assert (run.name, run.path) == ("run", f"{bucket}/run")
    assert run.model().graphs == (GRAPH,)
    assert [facts(run.model().frame(at)) for at in range(3)] == [facts(frame(step)) for step in (0, 10, 20)]
    assert run.model().history(2).frames.tolist() == [0, 1, 2]


def test_records_are_collected_into_few_segments(bucket: str) -> None:
    write(bucket, SERIES, *map(frame, range(20)))
    assert names(bucket) == [f"{number:06d}-{FIRST}.tgraph" for number in range(2)]


@pytest.mark.usefixtures("_at_once")
def test_a_run_at_a_url_can_be_followed(bucket: str) -> None:
    writer = RecordWriter(bucket)
    for record in (SESSION, SERIES, frame(0, graph=None)):
        writer.write(record)
    run = open_run(bucket)
    assert not run.refresh()
    writer.write(frame(1, graph=None))
    writer.close()
    assert run.refresh()
    assert facts(run.model().frame(1)) == facts(frame(1, graph=None))


def test_a_large_buffer_is_put_before_its_time(bucket: str) -> None:
    write(bucket, SERIES, *map(frame, range(20)), segment_bytes=3_000)
    assert len(names(bucket)) > 3
    assert len(open_run(bucket).model()) == 20


def test_sessions_share_a_run_at_a_url(bucket: str) -> None:
    write(bucket, SERIES, frame(0))
    write(bucket, SERIES, frame(5), session=other_session("later"))
    assert names(bucket)[2:] == [f"{number:06d}-{LATER}.tgraph" for number in (2, 3)]
    assert open_run(bucket).model().steps.tolist() == [0, 5]


@pytest.mark.usefixtures("_at_once")
def test_sessions_whose_ids_begin_alike_do_not_write_over_each_other(bucket: str) -> None:
    """As the phases of one watch, which begin at the same time and so with the same number."""
    ids = {"net": "0123456789abcdef", "net (eval)": "0123456789abcdef-eval"}
    writers = [RecordWriter(bucket) for _ in ids]
    for step in range(3):
        for writer, (model, name) in zip(writers, ids.items(), strict=True):
            if step == 0:
                writer.write(other_session(name, model=model))
                writer.write(SERIES)
            writer.write(frame(step, graph=None))
    for written in map(open_run(bucket).model, ids):
        assert (written.series, written.steps.tolist()) == (SERIES, [0, 1, 2])


@pytest.mark.usefixtures("_at_once")
def test_of_the_many_segments_of_a_session_one_is_read_for_the_list(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(bucket, SERIES, *map(frame, range(20)))
    write(bucket, *map(frame, range(20)), session=other_session("later", model="other"))
    fsspec.filesystem("memory").pipe_file(f"{bucket}/plugins/torchgraph/000000-{FIRST}.tgraph", b"\0" * 500)
    read, whole = list[str](), MemoryFileSystem.cat_file

    def cat_file(files: MemoryFileSystem, path: str, **at: int) -> bytes:
        read.append(Path(path).name)
        return bytes(whole(files, path, **at))

    monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)
    assert [(run.models, run.error) for run in list_runs(bucket)] == [(("net", "other"), None)]
    assert sorted(set(read)) == [f"000000-{FIRST}.tgraph", f"000001-{FIRST}.tgraph", f"000022-{LATER}.tgraph"]


def test_runs_at_a_url_are_listed(bucket: str) -> None:
    write(f"{bucket}/logs/a/b", SERIES)
    write(f"{bucket}/logs/c", session=replace(SESSION, created=9_000.0, model="other"))
    runs = list_runs(f"{bucket}/logs")
    assert [(run.name, run.path, run.models, run.error) for run in runs] == [
        ("c", f"{bucket}/logs/c", ("other",), None),
        ("a/b", f"{bucket}/logs/a/b", ("net",), None),
    ]
    assert all(run.bytes > 0 and run.last_write > 0 for run in runs)
    with pytest.raises(NotFoundError, match=rf"holds 2 runs: a/b, c. Name one of them, such as {bucket}/logs/c\."):
        open_run(f"{bucket}/logs")


class StoreError(Exception):
    """Of a store; as those of botocore, it is no OSError."""


def test_a_store_that_refuses_is_told_whatever_its_errors_are(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object, **__: object) -> None:
        raise StoreError("no credentials")

    write_small_run(bucket)
    monkeypatch.setattr(MemoryFileSystem, "ls", refusing)
    monkeypatch.setattr(MemoryFileSystem, "find", refusing)
    for act in (open_run, list_runs):
        with pytest.raises(RecordError, match=r"cannot be read: no credentials. Check the address and your access"):
            act(bucket)
    monkeypatch.setattr("fsspec.core.url_to_fs", refusing)
    with pytest.raises(RecordError, match=r"cannot be read: no credentials. Check the address and your access"):
        open_run(bucket)


def test_segments_that_are_deleted_are_gone_here_too(bucket: str) -> None:
    write_small_run(bucket)
    run = open_run(bucket)
    fsspec.filesystem("memory").rm(bucket, recursive=True)
    assert run.refresh()
    assert run.models == ()


def test_a_run_that_was_replaced_is_read_anew(bucket: str) -> None:
    write(bucket, SERIES, frame(0), frame(1))
    run = open_run(bucket)
    fsspec.filesystem("memory").rm(bucket, recursive=True)
    write(bucket, SERIES, frame(7))
    assert run.refresh()
    assert (run.model().steps.tolist(), run.model().epoch) == ([7], 1)


def test_a_segment_that_another_tool_uploads_as_it_grows_is_followed(bucket: str, tmp_path: Path) -> None:
    write_small_run(tmp_path)
    data = (tmp_path / "plugins" / "torchgraph" / "000000.tgraph").read_bytes()
    store = fsspec.filesystem("memory")
    place = f"{bucket.removeprefix('memory:/')}/plugins/torchgraph/000000.tgraph"
    store.pipe_file(place, data[:-700])
    run = open_run(bucket)
    before = len(run.model())
    store.pipe_file(place, data)
    assert run.refresh()
    assert before < len(run.model()) == 3


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("memory://nothing/here", "is not a run: there is no plugins/torchgraph", id="empty"),
        pytest.param("gopher://host/run", "Install what is missing or use a local folder", id="unknown protocol"),
    ],
)
def test_a_url_without_a_run_is_told(url: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        open_run(url)


@pytest.mark.slow
def test_local_runs_need_no_fsspec(tmp_path: Path) -> None:
    write_small_run(tmp_path)
    script = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from torchgraph_explorer.run import open_run\n"
        "assert len(open_run(sys.argv[1]).model()) == 3"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=60)
