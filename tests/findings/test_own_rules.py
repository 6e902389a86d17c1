"""Rules of the user's own, and what is told if something is wrong with them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from examples import my_rules
from tests.findings.records import chain, module, recorded, weight
from tests.server.asking import ask
from tests.server.pages import read_page
from torchgraph_explorer import Finding, OptionError
from torchgraph_explorer.cli import main
from torchgraph_explorer.findings.own_rules import load_rules
from torchgraph_explorer.run import Model
from torchgraph_explorer.server import findings
from torchgraph_explorer.server.open_runs import Runs
from torchgraph_explorer.server.routes import app

EXAMPLE = my_rules.__file__


@pytest.fixture
def growing(tmp_path: Path) -> Model:
    """A model whose weights double at each of 6 steps."""
    key = ("fc1", "param", "weight", "value")
    steps = [{key: np.arange(1.0, 5.0) * 2.0**step} for step in range(6)]
    return recorded(tmp_path / "run", chain(module("fc1", "Linear", weight(2, 2))), steps)


def told(model: Model, *rules: object) -> list[tuple[str, str, str | None, int, int]]:
    found = model.findings(rules=rules)  # type: ignore[arg-type]
    return [(one.kind, one.severity, one.module, one.step, one.last_step) for one in found]


def test_the_example_tells_weights_that_grow(growing: Model) -> None:
    assert told(growing, *my_rules.RULES) == [("weights-growing", "warning", "fc1", 4, 5)]


def test_check_runs_the_rules_of_a_file(growing: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["check", str(tmp_path), "--rules", EXAMPLE, "--fail-on", "warning", "--format", "json"])
    [one] = json.loads(capsys.readouterr().out)["models"][0]["findings"]
    assert (status, one["kind"], one["path"]) == (1, "weights-growing", "weight")
    assert one["evidence"] == {"norm": pytest.approx(32 * 30**0.5), "first_norm": pytest.approx(30**0.5)}


@pytest.mark.usefixtures("growing")
def test_the_server_runs_the_rules_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "WAIT_SECONDS", 60.0)
    for rules, expected in (((), []), (load_rules(EXAMPLE), ["weights-growing"])):
        said = ask(app(Runs(tmp_path / "run", rules=rules)), "/api/findings", {"run": ".", "model": "net"}).json
        assert [one["kind"] for one in said["findings"]] == expected


@pytest.mark.usefixtures("growing")
def test_a_page_has_what_the_rules_of_a_file_say(tmp_path: Path) -> None:
    for more, expected in (([], []), (["--rules", str(EXAMPLE)], ["weights-growing"])):
        assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "page.html"), *more]) == 0
        [model] = read_page((tmp_path / "page.html").read_bytes()).meta["models"]
        assert [one["kind"] for one in model["findings"]["findings"]] == expected


def raising(_model: Model) -> Iterator[Finding]:
    raise KeyError("loss")
    yield


def yielding_text(_model: Model) -> Iterator[object]:
    yield "wrong"


def unknown_severity(_model: Model) -> Iterator[Finding]:
    yield Finding(kind="mine", severity="fatal", step=0, text="Text.")  # type: ignore[arg-type]


def without_findings(_model: Model) -> None:
    """Returns None."""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(raising, r"Your rule 'raising' failed in line \d+: KeyError: 'loss'", id="it raises"),
        pytest.param(
            yielding_text, r"TypeError: it yielded 'wrong', which is no torchgraph_explorer\.Finding", id="text"
        ),
        pytest.param(unknown_severity, r"severity='fatal'; choose one of info, warning, error", id="a severity"),
        pytest.param(lambda: None, r"Your rule '<lambda>' failed: TypeError", id="no argument"),
    ],
)
def test_a_rule_that_fails_is_told_and_the_others_run(growing: Model, rule: object, expected: str) -> None:
    found = growing.findings(rules=[rule, my_rules.weights_growing])  # type: ignore[list-item]
    assert {one.kind for one in found} == {"rule-failed", "weights-growing"}
    [failed] = [one for one in found if one.kind == "rule-failed"]
    assert failed.severity == "warning"
    assert re.search(expected, failed.text)


def test_a_rule_may_find_nothing(growing: Model) -> None:
    assert told(growing, without_findings) == []


@pytest.mark.parametrize(
    "rules",
    [pytest.param([3], id="a number"), pytest.param("rules", id="text"), pytest.param(raising, id="one function")],
)
def test_what_is_no_list_of_functions_is_refused(growing: Model, rules: object) -> None:
    with pytest.raises(OptionError, match=r"^rules= is .*\. Pass a list of functions"):
        growing.findings(rules=rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        pytest.param("mine.py", None, "There is no file", id="missing"),
        pytest.param("mine.py", "def rule(model):\n    yield from ()", "has no list RULES", id="no rules"),
        pytest.param("mine.py", "RULES = []", r"RULES in .*mine\.py is \[\]\. Pass a list", id="an empty list"),
        pytest.param("mine.py", "RULES = [3]", r"RULES in .*mine\.py is \[3\]\.", id="no functions"),
        pytest.param("mine.py", "a = 1\nb = a / 0", r"cannot be loaded in line 2: ZeroDivisionError", id="raises"),
        pytest.param(
            "mine.py", "def", r"cannot be loaded: SyntaxError: invalid syntax \(mine\.py, line 1\)", id="syntax"
        ),
        pytest.param("mine.py", "raise SystemExit(3)", r"cannot be loaded in line 1: SystemExit: 3", id="exits"),
        pytest.param("mine.txt", "RULES = []", "ImportError: its name does not end in .py", id="no Python"),
    ],
)
def test_a_file_without_rules_is_refused(
    name: str, source: str | None, expected: str, growing: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if source is not None:
        (tmp_path / name).write_text(source)
    assert main(["check", str(tmp_path / "run"), "--rules", str(tmp_path / name)]) == 2
    assert re.search(expected, capsys.readouterr().err)


def test_nobody_finds_a_half_of_a_file_that_raises(tmp_path: Path) -> None:
    (tmp_path / "half_a_file.py").write_text("a = 1\nb = a / 0")
    with pytest.raises(OptionError, match="ZeroDivisionError"):
        load_rules(str(tmp_path / "half_a_file.py"))
    assert "half_a_file" not in sys.modules
