"""What is open when a process ends is flushed, and a viewer is kept only where somebody can end it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch import nn

from tests import warm
from tests.listening import Listening
from tests.shared import FORKED
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.training import exit
from torchgraph_explorer.training.process import this_process

IN_A_CHILD = """
import multiprocessing, sys
import torch
from torchgraph_explorer import watch

def train():
    model = torch.nn.Linear(3, 2)
    watch(model, log_freq=1, backend="record", logdir=sys.argv[1], run="a", verbose=False)
    model(torch.randn(4, 3)).sum().backward()

child = multiprocessing.get_context("fork").Process(target=train)
child.start()
child.join()
"""


@pytest.mark.slow
@FORKED
def test_what_is_open_in_a_forked_child_is_finished(tmp_path: Path) -> None:
    warm.run("-c", IN_A_CHILD, str(tmp_path), frees_all=True).check_returncode()
    model = open_run(tmp_path / "a").model()
    assert (model.steps.tolist(), model.finished is not None) == ([0], True)


def no_terminal() -> int:
    raise OSError(25, "Inappropriate ioctl for device")


@pytest.mark.parametrize(
    ("foreground", "expected"),
    [
        pytest.param(os.getpgrp, True, id="in the foreground"),
        pytest.param(lambda: 0, False, id="in the background"),
        pytest.param(no_terminal, False, id="of another session"),
    ],
)
def test_a_job_in_the_background_waits_for_nobody(
    foreground: Callable[[], int], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for stream in ("stdin", "stderr"):
        monkeypatch.setattr(sys, stream, SimpleNamespace(isatty=lambda: True, fileno=lambda: 0))
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: foreground())
    assert exit.is_interactive() == expected


class Shown:
    """A viewer that nobody ends."""

    url = "http://localhost/"

    def stop(self) -> None:
        """Nothing to end."""

    def wait(self) -> None:
        raise AssertionError("somebody waits")


class Interrupted(Shown):
    """A viewer that Ctrl-C ends, and whose end begins another watch, as a user's `on_finding` may."""

    def stop(self) -> None:
        watch(nn.Linear(1, 1), backend=Listening(), verbose=False)

    def wait(self) -> None:
        raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
def test_ctrl_c_closes_all_that_is_watched_also_if_another_watch_begins_meanwhile() -> None:
    watcher = watch(nn.Linear(1, 1), backend=Listening(), block_at_exit=True, verbose=False)
    watcher.viewer = Interrupted()
    exit.close_all()
    assert this_process.open_watchers() == ()


@pytest.mark.filterwarnings("ignore:.*no step was recorded:torchgraph_explorer.TorchgraphWarning")
def test_a_forked_process_does_not_keep_the_viewer_of_its_parent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watcher = watch(nn.Linear(1, 1), backend=Listening(), block_at_exit=True)
    watcher.viewer = Shown()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        exit.close_all()
    watcher.close()
    assert capsys.readouterr().err == ""
