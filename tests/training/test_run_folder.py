"""New runs get names of their own, also where several trainings begin in one second."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from torchgraph_explorer.training.run_folder import new_run_name

NOW = "2026-11-21_08-43-04"


@pytest.fixture(autouse=True)
def _one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still."""
    monkeypatch.setattr(time, "strftime", lambda _: NOW)


def test_trainings_that_begin_in_one_second_get_runs_of_their_own(tmp_path: Path) -> None:
    logdir = tmp_path / "group" / "runs"
    assert [new_run_name(str(logdir)) for _ in range(3)] == [NOW, f"{NOW}-2", f"{NOW}-3"]
    assert sorted(one.name for one in logdir.iterdir()) == [NOW, f"{NOW}-2", f"{NOW}-3"]


def test_a_name_that_is_in_use_here_is_not_taken(tmp_path: Path) -> None:
    assert new_run_name(str(tmp_path), taken={NOW}) == f"{NOW}-2"


@pytest.mark.parametrize("logdir", ["file", "link", "locked"])
def test_a_folder_that_cannot_be_made_is_left_to_the_recorder(
    logdir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    if logdir == "locked":
        monkeypatch.setattr(Path, "mkdir", locked)
    assert new_run_name(str(tmp_path / logdir)) == NOW


def locked(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_at_a_url_names_differ_by_chance_that_is_not_the_users() -> None:
    random.seed(1)
    before = random.getstate()
    names = {new_run_name("memory://nowhere/runs") for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch(rf"{NOW}-[0-9a-f]{{6}}", name) for name in names)
    assert random.getstate() == before
