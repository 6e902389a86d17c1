"""Whether a training has ended without closing its session is told where it can be known, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests import warm
from tests.processes import wait_for
from tests.record.examples import GRAPH, SERIES, SESSION, frame, write
from tests.shared import FORKED
from torchgraph_explorer import writing_process
from torchgraph_explorer.cli.info import _as_text, run_facts
from torchgraph_explorer.record import model_record
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Finished, Session
from torchgraph_explorer.server.answers import updates_answer
from torchgraph_explorer.writing_process import has_ended, host, own_processes

pytestmark = pytest.mark.skipif(not own_processes(), reason="the system does not tell its boot and pid namespace")

HERE = replace(SESSION, host=host(), processes=own_processes(), pid=os.getpid())


@pytest.fixture(scope="module")
def gone() -> Session:
    """A session of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return replace(HERE, pid=process.pid)


def test_a_process_that_has_ended_is_known_to(gone: Session) -> None:
    assert has_ended(gone)
    assert not has_ended(HERE)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"processes": "another boot or namespace"}, id="another boot or namespace"),
        pytest.param({"processes": ""}, id="an earlier release"),
        pytest.param({"host": "another"}, id="another machine"),
        pytest.param({"pid": 0}, id="no process"),
        pytest.param({"pid": -1}, id="every process"),
        pytest.param({"pid": 2**62}, id="no number of a process"),
    ],
)
def test_nothing_is_said_of_processes_that_are_not_ours(changes: dict[str, object], gone: Session) -> None:
    assert not has_ended(replace(gone, **changes))  # type: ignore[arg-type]


def test_nothing_is_said_where_the_system_does_not_tell(gone: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(writing_process.os, "readlink", refuse)  # type: ignore[attr-defined]
    assert (own_processes(), has_ended(gone)) == ("", False)


def test_a_session_whose_process_is_gone_has_stopped(gone: Session, tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0), session=gone)
    run = open_run(tmp_path)
    model = run.model()
    assert model.has_stopped
    assert updates_answer(run, model, epoch=0)["stopped"] is True
    assert "state        ended without closing: its process is gone" in _as_text(run_facts(run))
    write(tmp_path, GRAPH, SERIES, frame(1), session=replace(HERE, id="later", created=5_000.0))
    run.refresh()
    assert not model.has_stopped


def test_a_session_that_was_closed_has_not_stopped(gone: Session, tmp_path: Path) -> None:
    write(tmp_path, GRAPH, SERIES, frame(0), Finished(3_000.0), session=gone)
    assert not open_run(tmp_path).model().has_stopped


def test_ranks_have_stopped_when_all_have(gone: Session, tmp_path: Path) -> None:
    for number, session in enumerate((gone, HERE)):
        write(tmp_path, SERIES, frame(0), session=replace(session, id=f"{number}", rank=number, world_size=2))
    assert not open_run(tmp_path).model().has_stopped


def test_what_writes_has_not_stopped_whatever_is_known_of_processes(gone: Session, tmp_path: Path) -> None:
    """A copy of a running machine has its boot and its namespaces."""
    write(tmp_path, GRAPH, SERIES, replace(frame(0), time=time.time()), session=gone)
    assert not open_run(tmp_path).model().has_stopped
    write(tmp_path / "slow", GRAPH, SERIES, frame(0), session=gone)
    run = open_run(tmp_path / "slow")
    assert run.model().has_stopped
    write(tmp_path / "slow", GRAPH, SERIES, frame(1), session=gone)
    run.refresh()
    assert not run.model().has_stopped


def test_a_record_says_whose_processes_it_counts(tmp_path: Path) -> None:
    write(tmp_path, session=HERE)
    assert open_run(tmp_path).model().session == HERE
    assert model_record.QUIET_SECONDS > 0
    assert "processes" not in updates_answer(open_run(tmp_path), open_run(tmp_path).model(), epoch=0)["session"]


@pytest.mark.slow
@FORKED
def test_a_killed_training_has_stopped_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_record, "QUIET_SECONDS", 0.0)
    code = (
        "import pathlib, sys, time, torch; from torchgraph_explorer import watch\n"
        "model = torch.nn.Linear(2, 2); watcher = watch(model, log_freq=1, logdir=sys.argv[1], run='run', "
        "backend='record', verbose=False)\n"
        "for _ in range(3): model(torch.ones(1, 2)).sum().backward()\n"
        "time.sleep(1.0); pathlib.Path(sys.argv[1], 'ready').touch(); time.sleep(60)\n"
    )
    with warm.started("-c", code, str(tmp_path)):
        assert wait_for((tmp_path / "ready").exists)
        run = open_run(tmp_path / "run")
        assert not run.model().has_stopped
    assert run.model().has_stopped
