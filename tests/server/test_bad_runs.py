"""A bad run is one bad row: the others are shown as ever, and it says what is wrong with it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import FOUND, GRAPH, SERIES, SESSION, frame, other_session, segment, write, write_small_run
from tests.record.reading import read_everything, say
from tests.server.asking import ask
from torchgraph_explorer.finding import Finding, RuleFindings
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.discovery import RunInfo
from torchgraph_explorer.record.format.envelope import enveloped, file_header
from torchgraph_explorer.record.format.messages import session_message
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app
from torchgraph_tensorboard.logdir_runs import find_runs
from torchgraph_tensorboard.logdirs import Logdir

NAN, INFINITY = float("nan"), float("inf")


def begin(run: Path, **changes: Any) -> None:
    """A run that has a session alone."""
    segment(run).parent.mkdir(parents=True)
    message = session_message(SESSION)
    for name, value in changes.items():
        setattr(message, name, value)
    head = pb.Head(segment=pb.Segment(version=1, session=message)).SerializeToString()
    segment(run).write_bytes(file_header() + 2 * enveloped(head))


def names(run: Path) -> None:
    odd = "\x1b[31m\0\n\u202e<script>'\"&\U0010ffff"
    series = tuple(replace(one, module=odd, path=odd) for one in SERIES)
    write(run, GRAPH, series, frame(0), session=other_session(odd, model=odd, class_name=odd, clock=odd, host=odd))


def one_id(run: Path) -> None:
    write(run, GRAPH, SERIES, frame(0))
    write(run, GRAPH, SERIES[::-1], frame(1), session=replace(SESSION, created=9.0, rank=1, world_size=2))
    write(run, SERIES, frame(1), session=replace(SESSION, model="other"))


def of_nothing(run: Path) -> None:
    """Frames and series of graphs, modules and series that there are not."""
    stray = tuple(replace(one, module="gone", call=77) for one in SERIES)
    write(run, stray, frame(0, graph=5, series=(0, 99)), frame(2**53, graph=0))


def clocks(run: Path) -> None:
    odd = (NAN, INFINITY, -INFINITY, -1.0, 1e300, None)
    write(run, GRAPH, SERIES, *(replace(frame(at), clock=clock) for at, clock in enumerate(odd)))


def times(run: Path) -> None:
    odd = (NAN, INFINITY, -1.0, 1e300, 5.0)
    write(run, GRAPH, SERIES, *(replace(frame(at), time=time) for at, time in enumerate(odd)))


def extremes(run: Path) -> None:
    """Statistics of which each is what no tensor has, with all the others."""
    rng = np.random.default_rng(0)
    odd = np.array([NAN, INFINITY, -INFINITY, 3.4e38, -3.4e38, 1e-45, 0.0, -1.0], np.float32)
    frames = [replace(frame(at), statistics=rng.choice(odd, frame(at).statistics.shape)) for at in range(12)]
    later = replace(FOUND, rules=(RuleFindings("later", (Finding(kind="late", text="Later.", step=99),)),))
    write(run, GRAPH, SERIES, *frames, later)


BAD = {
    "begun at NaN": lambda run: begin(run, created=NAN),
    "begun at infinity": lambda run: begin(run, created=INFINITY),
    "begun before all": lambda run: begin(run, created=-1.0),
    "begun after all": lambda run: begin(run, created=1e300),
    "begun late": lambda run: begin(run, created=1e15),
    "leaving out NaN": lambda run: begin(run, reject_outlier_proportion=NAN),
    "of odd names": names,
    "two sessions of one id": one_id,
    "of what there is not": of_nothing,
    "of odd clocks": clocks,
    "of odd times": times,
    "of extreme statistics": extremes,
}
REFUSED = [*list(BAD)[:4], "leaving out NaN"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BAD)
def test_a_bad_run_is_one_row(name: str, tmp_path: Path) -> None:
    write_small_run(tmp_path / "good")
    BAD[name](tmp_path / "bad")
    read_everything(tmp_path, "bad", random.Random(0), export=True)
    read_everything(tmp_path, "good", random.Random(0), export=False)
    rows = {run["run"]: run for run in ask(app(Runs(tmp_path)), "/api/runs").json["runs"]}
    assert rows["good"]["error"] is None
    assert (rows["bad"]["error"] is not None) == (name in REFUSED)
    assert sorted(run.name for run in find_runs([Logdir(str(tmp_path))])) == ["bad", "good"]


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_that_cannot_be_read_says_why(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    BAD[name](tmp_path / "bad")
    answer = ask(
        app(Runs(tmp_path)), "/api/updates", {"run": "bad", "model": "net", "epoch": -1, "frames": 0, "series": 0}
    )
    assert (answer.status, "which is no" in answer.json["error"]) == (422, True)
    say("info", str(tmp_path / "bad"))


def test_a_time_that_is_none_in_a_list_of_runs_hurts_nobody() -> None:
    class Odd:
        logdir = "odd"

        def list(self) -> list[RunInfo]:
            return [RunInfo("a", "a", (), NAN, INFINITY, 0, None), RunInfo("b", "b", ("net",), 1.0, 2.0, 0, None)]

        def open(self, name: str) -> Any:
            raise AssertionError(name)

    rows = ask(app(Odd()), "/api/runs").json["runs"]
    assert [(row["first_write"], row["last_write"]) for row in rows] == [(0.0, 0.0), (1.0, 2.0)]
