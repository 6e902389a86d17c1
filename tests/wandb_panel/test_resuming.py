"""A W&B run that goes on: where its steps begin, and what is said of it, through the real client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm
from tests.tables import matrix, thinned
from tests.wandb_panel.conftest import Train, environment
from tests.wandb_panel.loopback import Backend
from tests.wandb_panel.test_logging import summary
from torchgraph_explorer import open_run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wandb")]  # one training online, and one process that has wandb

FIRST, SECOND = 6, 4


@pytest.mark.parametrize(("mode", "resume"), matrix(["online", "offline"], ["must", "allow"]))
def test_a_resumed_run_goes_on_where_its_record_ends_and_its_chart_shows_both_its_parts(
    train: Train, backend: Backend, mode: str, resume: str
) -> None:
    train("session", steps=FIRST, run="r", mode=mode)
    trained = train("session", steps=SECOND, run="r", resume=resume, mode=mode)
    model = open_run(trained.told["run_dir"]).model()
    assert model.steps.tolist() == list(range(FIRST + SECOND))
    assert (len(model.sessions), model.notes) == (2, ())
    assert "W&B resumes this run: its steps go on at 6, where its record ends." in trained.said
    if mode == "online":
        assert summary(backend, backend.runs["r"])[2] == "|".join(map(str, range(FIRST + SECOND)))


@pytest.mark.parametrize("resume", thinned(["must", "allow"], 1))
def test_without_its_folder_it_goes_on_where_the_summary_says(train: Train, backend: Backend, resume: str) -> None:
    train("session", steps=FIRST, run="r", logdir="here")
    trained = train("session", steps=SECOND, run="r", resume=resume, logdir="elsewhere")
    model = open_run(trained.told["run_dir"]).model()
    assert model.steps.tolist() == list(range(FIRST, FIRST + SECOND))
    assert model.notes == ("Steps 0 to 5 were recorded elsewhere. The record there has them; this one lacks them.",)
    assert "where the count in W&B ends" in trained.said
    assert "recorded elsewhere" in summary(backend, backend.runs["r"])[-1]
    assert backend.runs["r"].summary["torchgraph/Net_steps"] == FIRST + SECOND


@pytest.mark.parametrize(("resume", "said"), [("must", "begin at 0, since no earlier one is known"), ("allow", "")])
def test_offline_without_its_folder_it_begins_anew(train: Train, resume: str, said: str) -> None:
    trained = train("session", steps=SECOND, run="r", resume=resume, mode="offline")
    assert open_run(trained.told["run_dir"]).model().steps.tolist() == list(range(SECOND))
    assert said in trained.said
    assert ("resumes" in trained.said) == bool(said)


@pytest.mark.parametrize("mode", thinned(["online", "offline"], 0))
def test_a_run_that_is_begun_again_under_its_id_says_that_it_is_mixed(
    train: Train, backend: Backend, mode: str
) -> None:
    train("session", steps=FIRST, run="r", mode=mode)
    trained = train("session", steps=SECOND, run="r", mode=mode)
    assert "Step 0 is recorded again: this run already has steps up to 5 of an earlier session" in trained.said
    [mixed] = open_run(trained.told["run_dir"]).model().notes
    assert mixed.startswith("Two sessions are mixed: 2 of 6 recorded steps, from 4 to 5, are of an earlier session")
    if mode == "online":
        assert "Two sessions are mixed" in summary(backend, backend.runs["r"])[-1]


def test_an_offline_session_that_is_synced_leaves_its_count(train: Train, backend: Backend, tmp_path: Path) -> None:
    told = train("session", steps=FIRST, run="r", mode="offline").told
    sync, surroundings = ["-m", "wandb", "sync", told["folder"]], environment(backend, tmp_path)
    done = warm.run(*sync, modules=warm.WANDB, cwd=tmp_path, env=surroundings)
    assert done.returncode == 0, done.stderr
    assert backend.runs["r"].summary["torchgraph/Net_steps"] == FIRST
