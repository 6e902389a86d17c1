"""What the server has of a training that was killed, through the real client."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.processes import SECONDS, wait_for
from tests.wandb_panel.conftest import started_training
from tests.wandb_panel.emulator import chart_of
from tests.wandb_panel.loopback import Backend, StoredRun

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one process that has wandb

CHART, TABLE = "torchgraph/Net", "torchgraph/Net_table"


def shown_steps(backend: Backend, run: StoredRun) -> list[int]:
    rows = json.loads(backend.run_file(run, TABLE))["data"]
    line = next(packed for part, packed in rows if part == "summary")
    return [int(step) for step in line.split("\t")[2].split("|")]


def has_chart(backend: Backend, *, steps: int) -> bool:
    """Whether the server has a chart that shows so many steps. The file that a summary names may come after it."""
    run = backend.runs.get("unlogged")
    return run is not None and backend.has_file(run, TABLE) and len(shown_steps(backend, run)) >= steps


def test_a_training_that_is_killed_soon_after_it_began_has_a_chart(backend: Backend, tmp_path: Path) -> None:
    with started_training("unlogged", backend, tmp_path, steps=1000, seconds=0.2) as training:
        assert wait_for(lambda: has_chart(backend, steps=5))
        os.kill(training, signal.SIGKILL)
        assert wait_for(lambda: has_chart(backend, steps=5)), "wandb's own process hands over the rest"
    run = backend.runs["unlogged"]
    assert run.history == []  # no row of the training's own has ended
    assert len(shown_steps(backend, run)) >= 5
    assert {row["part"] for row in chart_of(backend, CHART, run).rows} >= {"summary", "nodes", "tensors"}


def test_what_was_recorded_gets_there_while_no_further_step_comes(backend: Backend, tmp_path: Path) -> None:
    with started_training("unlogged", backend, tmp_path, steps=3, seconds=2 * SECONDS):
        assert wait_for(lambda: has_chart(backend, steps=1))
        assert shown_steps(backend, backend.runs["unlogged"]) == [0]
