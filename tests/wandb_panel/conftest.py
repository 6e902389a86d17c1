"""A loopback server, trainings that log to it, and a panel to look at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page

from tests import warm
from tests.wandb_panel.emulator import Panel, panel_in
from tests.wandb_panel.loopback import Backend, loopback

ROOT = Path(__file__).parents[2]

Environment: TypeAlias = "dict[str, str]"


@dataclass(frozen=True)
class Trained:
    """A training that is over: what it printed as JSON, what it said, and its folder of runs."""

    told: Any
    said: str
    logdir: Path


Train: TypeAlias = "Callable[..., Trained]"


def environment(backend: Backend, home: Path) -> Environment:
    """For a process whose wandb knows `backend` only, and leaves everything in `home`."""
    places = dict.fromkeys(("WANDB_DIR", "WANDB_DATA_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR"), str(home))
    return {
        **os.environ,
        **places,
        "WANDB_BASE_URL": backend.address,
        "WANDB_API_KEY": "k" * 40,
        "WANDB_ERROR_REPORTING": "false",
        "XDG_CONFIG_HOME": str(home),
        "PYTHONPATH": warm.PACKAGES,
        "OMP_NUM_THREADS": "1",
    }


def arguments_for(way: str, logdir: Path, options: dict[str, Any]) -> list[str]:
    """To train as `tests.wandb_panel.training` does it."""
    return ["-m", "tests.wandb_panel.training", way, str(logdir), json.dumps(options)]


def run_training(
    way: str, backend: Backend, home: Path, *, logdir: str = "runs", timeout: float = 200, **options: Any
) -> Trained:
    """Train in some way."""
    arguments, surroundings = arguments_for(way, home / logdir, options), environment(backend, home)
    done = warm.run(*arguments, modules=warm.WANDB, env=surroundings, timeout=timeout)
    return trained(done, home / logdir)


def run_new_training(way: str, backend: Backend, home: Path, *, before: str) -> Trained:
    """Train in some way in a new process; `before` is a shell command to run first, like ulimit."""
    python = [sys.executable, *arguments_for(way, home / "runs", {})]
    command = ["bash", "-c", f'{before} && exec "$@"', "bash", *python]
    surroundings = environment(backend, home)
    done = subprocess.run(command, env=surroundings, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return trained(done, home / "runs")


def trained(done: subprocess.CompletedProcess[str], logdir: Path) -> Trained:
    assert done.returncode == 0, done.stderr
    return Trained(json.loads(done.stdout.splitlines()[-1]), done.stderr, logdir)


@contextmanager
def started_training(way: str, backend: Backend, home: Path, **options: Any) -> Iterator[int]:
    """The number of a process that trains until the block ends, or somebody kills it."""
    arguments, surroundings = arguments_for(way, home / "runs", options), environment(backend, home)
    with warm.started(*arguments, modules=warm.WANDB, env=surroundings) as training:
        yield training


@pytest.fixture
def backend() -> Iterator[Backend]:
    with loopback() as server:
        yield server
        assert server.unanswered == []


@pytest.fixture
def train(backend: Backend, tmp_path: Path) -> Train:
    return lambda way, **options: run_training(way, backend, tmp_path, **options)


@dataclass(frozen=True)
class Online:
    """A training that logged online, and what the server has of it since. Not to be changed."""

    backend: Backend
    trained: Trained
    home: Path

    def python(self, script: str) -> str:
        """What `script` prints, in a process that knows this server."""
        done = warm.run("-c", script, modules=warm.WANDB, env=environment(self.backend, self.home))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def torchgraph(self, *arguments: str) -> str:
        """What the command line prints."""
        return self.python(f"from torchgraph_explorer.cli import main; raise SystemExit(main({list(arguments)!r}))")


@pytest.fixture(scope="session")
def online(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Online]:
    home = tmp_path_factory.mktemp("online")
    with loopback() as server:
        yield Online(server, run_training("left_open", server, home), home)
        assert server.unanswered == []


@pytest.fixture(scope="session")
def panel_page(browser: Browser) -> Iterator[Page]:
    """One page for all panels: in a new one the browser reads Vega anew, which takes longer than most tests."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def panel(panel_page: Page) -> Iterator[Panel]:
    with panel_in(panel_page) as shown:
        yield shown
        assert shown.complaints == []


@pytest.fixture
def narrow_panel(panel_page: Page) -> Iterator[Panel]:
    with panel_in(panel_page, width=800, height=420) as shown:
        yield shown
