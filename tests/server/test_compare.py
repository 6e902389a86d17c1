"""`api/compare`: how two models of a logdir differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.comparison.records import Elements, Key, recorded
from tests.server.asking import ask
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app

STEPS = range(0, 60, 10)


def differing(step: int, key: Key, elements: Elements) -> Elements:
    return elements * 2 if step >= 30 and (key[0], key[2], key[4]) == ("second", "output", "value") else elements


def asked(logdir: Path, **query: Any) -> Any:
    answer = ask(app(Runs(logdir)), "/api/compare", {"run": "a", "model": "net", **query})
    return answer.status, answer.json


@pytest.mark.slow
def test_it_says_where_two_runs_part_and_which_series_differ(tmp_path: Path) -> None:
    recorded(tmp_path / "a", STEPS)
    recorded(tmp_path / "b", STEPS, differing)
    status, found = asked(tmp_path, other_run="b")
    assert status == 200
    first = found["first_divergence"]
    assert (first["step"], first["last_equal_step"], first["module"], first["kind"]) == (
        30,
        20,
        "second",
        "computation",
    )
    assert found["steps"] == {"compared": 6, "recorded": [6, 6], "first": 0, "last": 50}
    assert found["series"][0]["series"]["module"] == "second"
    assert "findings" not in found


@pytest.mark.slow
def test_a_growing_run_is_compared_again(tmp_path: Path) -> None:
    recorded(tmp_path / "a", STEPS)
    recorded(tmp_path / "b", STEPS[:2])
    served = app(Runs(tmp_path))
    query = {"run": "a", "model": "net", "other_run": "b"}
    assert ask(served, "/api/compare", query).json["first_divergence"] is None
    recorded(tmp_path / "b", STEPS[2:], differing)
    assert ask(served, "/api/compare", query).json["first_divergence"]["step"] == 30


def test_a_query_that_cannot_be_answered_says_why(tmp_path: Path) -> None:
    recorded(tmp_path / "a", STEPS)
    status, found = asked(tmp_path, other_run="a", rename="no rule")
    assert status == 400
    assert "'no rule' is not a rule" in found["error"]
    assert asked(tmp_path, other_run="b")[0] == 404
    assert asked(tmp_path)[0] == 400
