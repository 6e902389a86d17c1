"""No store is touched in the user's thread; one that hangs costs the stated time, wherever it hangs, and no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

from tests import warm
from tests.processes import wait_for
from tests.shared import FORKED
from tests.stores import METHODS, Gate, gated_folder, gated_url
from tests.tables import matrix
from torchgraph_explorer import open_run, timeouts, watch
from torchgraph_explorer.record import remote
from torchgraph_explorer.training import writer_thread
from torchgraph_explorer.training.watcher import Watcher

SLACK = 4.5
"""Seconds that a busy machine may take for nothing. A limit that was not shortened is 5 s or more."""

STEPS = 3 * writer_thread.WAITING


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stated times are short, and every record is put at once."""
    monkeypatch.setattr(timeouts, "SECONDS", 0.25)
    monkeypatch.setattr(timeouts, "SECONDS_TO_END", 0.4)
    monkeypatch.setattr(writer_thread, "MOST_SECONDS", 0.3)
    monkeypatch.setattr(remote, "FLUSH_SECONDS", 0.0)


pytestmark = pytest.mark.filterwarnings("ignore::torchgraph_explorer.TorchgraphWarning")


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds + SLACK


def step(model: nn.Module) -> float:
    loss = model(torch.randn(4, 3)).square().mean()
    loss.backward()
    return float(loss.detach())


def unwatched() -> list[float]:
    torch.manual_seed(4)
    model = nn.Linear(3, 2)
    return [step(model) for _ in range(STEPS)]


def watched(gate: Gate, when: str, **options: Any) -> tuple[list[float], Watcher]:
    """Losses of a training whose store hangs from `when` on, each part of it within the stated time."""
    torch.manual_seed(4)
    model, losses = nn.Linear(3, 2), list[float]()
    if when == "at watch":
        gate.close()
    with at_most(timeouts.SECONDS):
        watcher = watch(model, log_freq=1, verbose=False, **options)
    with at_most(writer_thread.MOST_SECONDS):
        for number in range(STEPS):
            if (when, number) == ("in training", 5):
                gate.close()
            losses.append(step(model))
    if when == "at close":
        gate.close()
    with at_most(timeouts.SECONDS_TO_END):
        watcher.close()
    with at_most(0.0):
        watcher.close()
    return losses, watcher


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "when", "backend"),
    matrix(METHODS, ["at watch", "in training", "at close"], ["record", "tensorboard"]),
)
def test_a_url_that_hangs_costs_the_stated_time(method: str, when: str, backend: str) -> None:
    with gated_url(method) as (url, gate):
        assert watched(gate, when, backend=backend, logdir=url)[0] == unwatched()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "when", "backend"),
    matrix([None, "named"], ["at watch", "in training", "at close"], ["record", "tensorboard"]),
)
def test_a_mount_that_hangs_costs_the_stated_time(run: str | None, when: str, backend: str, tmp_path: Path) -> None:
    with gated_folder(str(tmp_path / "mount")) as gate:
        assert watched(gate, when, backend=backend, logdir=tmp_path / "mount", run=run)[0] == unwatched()


@pytest.mark.parametrize("when", ["at watch", "in training"])
def test_a_store_that_answers_later_has_what_waited(
    when: str, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "SECONDS_TO_END", 30.0)  # it answers by then, however busy this machine is
    with gated_url("pipe_file") as (url, gate):
        torch.manual_seed(4)
        model = nn.Linear(3, 2)
        if when == "at watch":
            gate.close()
        watcher = watch(model, log_freq=1, verbose=False, backend="record", logdir=url)
        step(model)
        gate.close()
        for _ in range(9):
            step(model)
        gate.open()
        watcher.close()
        run = open_run(str(watcher.run_dir)).model()
    assert run.steps.tolist() == list(range(10))
    assert (len(run.graphs), run.finished is not None and run.finished.notes) == (1, ())
    said = [str(one.message) for one in recwarn]
    assert ["has not answered within 0.25 s. Training goes on" in one for one in said] == [True] * (when == "at watch")


@pytest.mark.slow
def test_steps_beyond_those_that_may_wait_are_told_in_the_record() -> None:
    with gated_url("makedirs") as (url, gate):
        gate.close()
        model = nn.Linear(3, 2)
        watcher = watch(model, log_freq=1, verbose=False, backend="record", logdir=url)
        for _ in range(STEPS):
            step(model)
        gate.open()
        assert wait_for(lambda: watcher._train._writer._queue.qsize() == 0)
        step(model)
        watcher.close()
        run = open_run(str(watcher.run_dir)).model()
    first, last = writer_thread.WAITING, STEPS - 2  # the one after that comes to rest when the store answers
    assert run.steps.tolist() == [*range(first), STEPS - 1, STEPS]
    assert run.finished is not None
    [note] = run.finished.notes
    assert note.startswith(f"{last - first + 1} logged steps ({first} to {last}) were dropped")


def test_a_run_whose_name_could_not_be_asked_for_leaves_no_empty_one_beside_it(tmp_path: Path) -> None:
    with gated_folder(str(tmp_path / "mount")) as gate:
        gate.close()
        model = nn.Linear(3, 2)
        watcher = watch(model, log_freq=1, verbose=False, backend="record", logdir=tmp_path / "mount")
        gate.open()
        step(model)
        watcher.close()
    assert wait_for(lambda: [str(one) for one in (tmp_path / "mount").iterdir()] == [watcher.run_dir])
    assert open_run(str(watcher.run_dir)).model().steps.tolist() == [0]


def test_a_step_that_the_idle_timer_hands_over_does_not_hold_the_models_lock_while_it_is_written() -> None:
    """A forward pass without a backward pass is handed over by a thread whose lock the training may wait for."""
    with gated_url("pipe_file") as (url, gate):
        model = nn.Linear(3, 2)
        watcher = watch(model, log_freq=1, verbose=False, backend="record", logdir=url)
        gate.close()
        gate.threads.clear()
        model(torch.randn(4, 3))
        assert wait_for(lambda: bool(gate.threads), 10)
        with at_most(0.0):
            step(model)
        with at_most(timeouts.SECONDS_TO_END):
            watcher.close()


def with_writer(folder: Path) -> dict[str, Any]:
    return {"backend": "record", "writer": SummaryWriter(str(folder / "mine"))}


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "a new run": lambda folder: {"backend": "record", "logdir": folder},
    "a named run": lambda folder: {"backend": "record", "logdir": folder, "run": "a/b"},
    "with its evaluation": lambda folder: {"backend": "record", "logdir": folder, "phases": ("train", "eval")},
    "for TensorBoard": lambda folder: {"backend": "tensorboard", "logdir": folder},
    "with a writer": with_writer,
    "with a viewer": lambda folder: {"backend": "standalone", "logdir": folder, "port": 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_the_users_thread_touches_nothing_in_the_folder_of_runs(
    options: Callable[[Path], dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # with the times as they are
    given = options(tmp_path / "runs")
    model = nn.Linear(3, 2)
    with gated_folder(str(tmp_path / "runs")) as gate:
        watcher = watch(model, log_freq=1, verbose=False, **given)
        for _ in range(3):
            step(model)
        watcher.close()
    assert gate.threads
    assert threading.main_thread().name not in gate.threads
    if "writer" in given:
        given["writer"].close()


def test_the_users_thread_touches_nothing_at_a_url() -> None:
    with gated_url(*METHODS) as (url, gate):
        watcher = watch(model := nn.Linear(3, 2), log_freq=1, verbose=False, backend="tensorboard", logdir=url)
        step(model)
        watcher.close()
    assert gate.threads
    assert threading.main_thread().name not in gate.threads


def test_a_touch_in_the_users_thread_would_be_seen(tmp_path: Path) -> None:
    for touch in (Path.mkdir, Path.stat, lambda path: list(path.iterdir()), lambda path: path.joinpath("a").touch()):
        with gated_folder(str(tmp_path / "runs")) as gate:
            touch(tmp_path / "runs")
        assert gate.threads == {threading.main_thread().name}


AT_EXIT = """
import sys, time, warnings
import torch
from torchgraph_explorer import timeouts
from torchgraph_explorer.training import writer_thread
from torchgraph_explorer import watch
from torchgraph_explorer.record import remote
from tests.stores import gated_folder, gated_url

warnings.simplefilter("ignore")
timeouts.SECONDS = writer_thread.MOST_SECONDS = 0.3
timeouts.SECONDS_TO_END = 1.0
remote.FLUSH_SECONDS = 0.0
kind, when, folder, watchers = sys.argv[1:]
store = gated_folder(folder) if kind == "folder" else gated_url(kind)
entered = store.__enter__()
place, gate = (folder, entered) if kind == "folder" else entered
if when == "at watch":
    gate.close()
models = [torch.nn.Linear(3, 2) for _ in range(int(watchers))]
kept = [watch(m, name=str(i), log_freq=1, backend="record", logdir=place) for i, m in enumerate(models)]
for model in models:
    model(torch.randn(4, 3)).sum().backward()
if when == "at exit":
    gate.close()
print("trained", time.time(), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "when", "watchers"), matrix(["folder", "pipe_file"], ["at watch", "at exit"], [4, 1]))
@FORKED
def test_a_process_whose_store_hangs_ends_in_the_stated_time(
    kind: str, when: str, watchers: int, tmp_path: Path
) -> None:
    """However many watchers there are."""
    done = warm.run("-c", AT_EXIT, kind, when, str(tmp_path / "mount"), str(watchers), frees_all=True)
    ended = time.time()
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["trained"]), done.stderr
    assert ended - float(done.stdout.split()[1]) < 0.5 + 2 * SLACK
    assert "Traceback" not in done.stderr
