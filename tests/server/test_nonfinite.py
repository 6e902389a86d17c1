"""`api/nonfinite`: what a page asks to mark steps with NaN and infinity."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, clean, other_session, write
from tests.record.long_runs import write_long_run
from tests.server.asking import ask
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.server import nonfinite
from torchgraph_explorer.server.nonfinite import stretches
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app

NET = {"run": "a", "model": "net"}
EVERYTHING = {"epoch": -1, "frames": 0}


def answer(logdir: Path, served: Any = None, **query: Any) -> dict[str, Any]:
    said: dict[str, Any] = ask(served or app(Runs(logdir)), "/api/nonfinite", {**NET, **EVERYTHING, **query}).json
    return said


def test_it_says_at_which_steps_and_where_it_began(tmp_path: Path) -> None:
    frames = [clean(0), clean(10, nan=2), clean(20, nan=1), clean(30), clean(40, positive_infinity=1)]
    write(tmp_path / "a", GRAPH, SERIES, *frames)
    said = answer(tmp_path)
    assert (said["from"], said["frames"], said["is_complete"]) == (0, 5, True)
    assert said["bad"] == [[10, 20, 2], [40, 40, 1]]
    tensor = said["first"]["tensor"]
    assert said["first"]["step"] == 10
    assert (tensor["module"], tensor["path"], tensor["nan"], tensor["infinite"]) == ("", "middle", 2, 0)


def test_a_clean_model_has_none_and_names_those_that_have(tmp_path: Path) -> None:
    write(tmp_path / "a", GRAPH, SERIES, clean(0), clean(1))
    write(tmp_path / "a", GRAPH, SERIES, clean(0, nan=1), session=other_session("e", model="net (eval)"))
    said = answer(tmp_path)
    assert (said["bad"], said["first"], said["others"]) == ([], None, ["net (eval)"])
    assert answer(tmp_path, model="net (eval)")["others"] == []


def test_a_growing_run_tells_only_what_is_new(tmp_path: Path) -> None:
    writer, served = RecordWriter(tmp_path / "a"), app(Runs(tmp_path))
    for record in (SESSION, GRAPH, SERIES, clean(0), clean(1, nan=1)):
        writer.write(record)
    held = answer(tmp_path, served)
    writer.write(clean(2, nan=1))
    writer.write(clean(3))
    news = answer(tmp_path, served, epoch=held["epoch"], frames=held["frames"])
    writer.close()
    assert (held["frames"], held["bad"]) == (2, [[1, 1, 1]])
    assert (news["from"], news["frames"], news["bad"]) == (2, 4, [[2, 2, 1]])
    assert news["first"] == held["first"]
    assert answer(tmp_path, served, epoch=held["epoch"] + 1, frames=2)["from"] == 0


def test_no_answer_takes_long_and_together_they_tell_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite, "SECONDS", 0.0)
    monkeypatch.setattr(nonfinite, "FRAMES_AT_ONCE", 100)
    write_long_run(tmp_path / "a", 250, bad_step=210)
    served = app(Runs(tmp_path))
    assert not answer(tmp_path, served, model="long")["is_complete"]
    monkeypatch.setattr(nonfinite, "SECONDS", 60.0)
    said = answer(tmp_path, served, model="long")
    assert (said["is_complete"], said["bad"]) == (True, [[210, 210, 1]])


@pytest.mark.slow
def test_ten_thousand_steps_cost_a_fraction_of_a_second_a_request(tmp_path: Path) -> None:
    write_long_run(tmp_path / "a", 10_000, series=40, bad_step=7_000)
    served = app(Runs(tmp_path))
    ask(served, "/api/updates", {**NET, "model": "long", "epoch": -1, "frames": 0, "series": 0})  # opens it
    spent: list[float] = []
    said: dict[str, Any] = {"is_complete": False, "frames": 0, "epoch": -1}
    while not said["is_complete"]:
        begun = time.process_time()
        said = answer(tmp_path, served, model="long", epoch=said["epoch"], frames=said["frames"])
        spent.append(time.process_time() - begun)
    assert said["first"]["step"] == 7_000
    assert np.median(spent) < 0.5


@pytest.mark.parametrize(
    ("bad", "first", "expected"),
    [
        pytest.param("....", 0, [], id="none"),
        pytest.param("xx.x", 0, [[0, 10, 2], [30, 30, 1]], id="two"),
        pytest.param("xxxx", 2, [[20, 30, 2]], id="the rest of one"),
        pytest.param("", 0, [], id="no frames"),
    ],
)
def test_bad_frames_in_a_row_are_one_stretch(bad: str, first: int, expected: list[list[int]]) -> None:
    steps = np.arange(len(bad)) * 10
    assert stretches(steps, np.array([one == "x" for one in bad], dtype=np.bool_), first) == expected
