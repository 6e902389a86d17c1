"""`torchgraph diff`: what it prints, and with which status it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.comparison.records import Elements, Key, net, recorded
from torchgraph_explorer.cli import main

pytestmark = pytest.mark.slow

STEPS = range(0, 60, 10)


def differing(step: int, key: Key, elements: Elements) -> Elements:
    return elements * 2 if step >= 30 and (key[0], key[2], key[4]) == ("second", "output", "value") else elements


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    recorded(tmp_path / "a", STEPS, scalars={"loss": [1.0] * 6})
    recorded(tmp_path / "b", STEPS, differing, scalars={"loss": [1.0] * 5 + [2.0]})
    return [str(tmp_path / "a"), str(tmp_path / "b")]


def test_it_says_what_differs(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *runs]) == 0
    assert capsys.readouterr().out == (
        f"a: {runs[0]}\nb: {runs[1]}\n\n"
        "Compared 6 steps that both runs logged, from 0 to 50.\n"
        "First divergence: The runs agree up to step 20 and differ at step 30, the next step that both logged. "
        "The first difference is in module second, output: its inputs and parameters agree, what it computes differs. "
        "1 of 25 series differ at that step.\n\n"
        "Series that differ most:\n"
        "  second output value: distance 0.333, statistics 50.00% apart, since step 30\n\n"
        "Scalars:\n"
        "  loss: last values 1 and 2, largest difference 50.00% apart, since step 50\n"
    )


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        pytest.param(
            range(0, 60, 20), "Compared 3 steps that both runs logged, from 0 to 40.\n", id="each of the shorter one"
        ),
        pytest.param(
            range(0, 70, 7),
            "Compared the one step that both runs logged, 0. Run a logged 6 steps, run b 10: with the same log_freq, "
            "more of them can be compared.\n",
            id="few of them",
        ),
    ],
)
def test_it_says_where_few_steps_can_be_compared(
    second: range, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(tmp_path / "a", STEPS)
    recorded(tmp_path / "b", list(second))
    main(["diff", str(tmp_path / "a"), str(tmp_path / "b")])
    assert expected in capsys.readouterr().out


def test_it_prints_json_with_the_same(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *runs, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["alignment"], found["first_divergence"]["module"]) == (1, "exact", "second")
    assert found["findings"] == {"only_a": [], "only_b": []}
    assert len(found["series"]) == found["series_compared"] == 25


@pytest.mark.parametrize(
    ("second", "options", "expected"),
    [
        pytest.param(1, [], 0, id="only say it"),
        pytest.param(1, ["--fail-on-difference"], 1, id="a difference"),
        pytest.param(0, ["--fail-on-difference"], 0, id="none"),
        pytest.param(0, ["--model", "nothing"], 2, id="a model that is not there"),
        pytest.param(0, ["--rename", "no rule"], 2, id="no rule"),
    ],
)
def test_it_ends_with_the_status_that_was_asked_for(
    second: int, options: list[str], expected: int, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", runs[0], runs[second], *options]) == expected
    assert ("No difference in 25 series." in capsys.readouterr().out) == (expected == 0 and second == 0)


def test_names_of_modules_can_be_mapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ab":
        recorded(tmp_path / name, STEPS, graph=net(f"{name}.conv"))
    runs = [str(tmp_path / name) for name in "ab"]
    assert main(["diff", *runs, "--fail-on-difference"]) == 1
    assert "Modules only in a:\n  a.conv" in capsys.readouterr().out
    assert main(["diff", *runs, "--fail-on-difference", "--rename", "a.* = b.*"]) == 0


def test_a_name_in_a_record_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path / "a", STEPS, graph=net("fine"))
    recorded(tmp_path / "b", STEPS, graph=net("\x1b[31mred"))
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "\x1b" not in capsys.readouterr().out
