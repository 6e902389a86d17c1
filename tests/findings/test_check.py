"""`torchgraph check`: what it prints, and with which status it ends."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.findings.records import chain, module, recorded, weight
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.cli import main
from torchgraph_explorer.errors import TorchgraphWarning

FIELDS = {
    "id",
    "kind",
    "severity",
    "module",
    "call",
    "path",
    "step",
    "last_step",
    "text",
    "advice",
    "evidence",
    "causes",
    "band",
}


@pytest.fixture
def dropping(tmp_path: Path) -> str:
    """A run with a single warning."""
    graph = chain(module("drop_1", "Dropout", p="0.95"))
    recorded(tmp_path, graph, [{("drop_1", "output", "output", "value"): [1.0, 2.0]}])
    return str(tmp_path)


@pytest.fixture
def exploding(tmp_path: Path) -> str:
    """A run that ends with NaN after its gradient has exploded."""
    graph = chain(module("fc1", "Linear", weight(2, 2)))
    steps = [
        {
            ("fc1", "param", "weight", "value"): np.array([1.0, step / 100, 2.0, np.nan if step == 5 else 3.0]),
            ("fc1", "param", "weight", "grad"): np.array([1.0, 2.0, 3.0, 4.0]) * 30.0**step,
        }
        for step in range(6)
    ]
    recorded(tmp_path, graph, steps)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], 0, id="only say it"),
        pytest.param(["--fail-on", "warning"], 1, id="at a warning"),
        pytest.param(["--fail-on", "error"], 0, id="at an error"),
        pytest.param(["--model", "nothing"], 2, id="a model that is not there"),
    ],
)
def test_a_warning_fails_where_it_should(dropping: str, options: list[str], expected: int) -> None:
    assert main(["check", dropping, *options]) == expected


def test_an_error_fails_at_error(exploding: str) -> None:
    assert main(["check", exploding, "--fail-on", "error"]) == 1


def test_the_text_has_what_follows_below_its_cause(exploding: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", exploding])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "model net"
    assert lines[1] == "  error    exploding-gradient at fc1, steps 2 to 4"
    assert lines[3].startswith("    Try: Lower the learning rate")
    assert lines[4] == "    error    nan at fc1 weight, step 5"
    assert lines[-2:] == ["", "What a kind means, and when it may be wrong: torchgraph explain exploding-gradient"]


def test_the_json_has_the_documented_fields(exploding: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", exploding, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    [model] = told["models"]
    assert (told["schema"], model["model"]) == (1, "net")
    assert all(one.keys() == FIELDS for one in model["findings"])
    assert [(one["id"], one["kind"], one["causes"]) for one in model["findings"]] == [
        (0, "exploding-gradient", []),
        (1, "nan", [0]),
    ]


def test_markdown_shows_names_as_they_are(dropping: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", dropping, "--format", "markdown"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(r"- **dropout-extreme** (warning) at drop\_1, step 0: `drop_1` drops 95% of its inputs")


def test_a_healthy_run_says_so(recorded_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(recorded_run), "--fail-on", "warning"]) == 0
    assert "Nothing found." in capsys.readouterr().out


def test_a_run_without_a_step_is_not_called_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(TorchgraphWarning, match="no step was recorded"):
        watch(nn.Linear(2, 2), backend="record", logdir=tmp_path, run="empty", verbose=False).close()
    for form in ("text", "markdown"):
        main(["check", str(tmp_path / "empty"), "--format", form])
        told = capsys.readouterr().out
        assert "No step was recorded, so nothing could be checked." in told
        assert "Nothing found" not in told


def test_on_a_terminal_lines_are_broken_at_words_and_in_a_pipe_they_are_whole(
    exploding: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["check", exploding])
    whole = capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    main(["check", exploding])
    told = capsys.readouterr().out
    assert max(map(len, whole.splitlines())) > 60 >= max(map(len, told.splitlines()))
    assert told.split() == whole.split()
    assert all(line.startswith("    ") for line in told.splitlines()[2:5])


def judging(modules: int, folder: Path) -> float:
    """Seconds of the processor that the findings of a run of so many modules take."""
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(modules)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watch(model, log_freq=1, backend="record", logdir=folder, run=str(modules), verbose=False):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(2, 2)).sum().backward()
            optimizer.step()
    run = open_run(folder / str(modules)).model()
    began = time.process_time()
    run.findings()
    return time.process_time() - began


@pytest.mark.slow
def test_judging_a_run_takes_time_in_proportion_to_its_modules(tmp_path: Path) -> None:
    judging(10, tmp_path)
    assert judging(2_000, tmp_path) < 16 * judging(250, tmp_path)
