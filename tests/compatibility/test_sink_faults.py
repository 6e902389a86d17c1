"""With any one function of a backend broken, training is by bytes the unwatched one, and it is said once.

W&B's backend draws in a process of its own, which fails or hangs here: so it is with a layout, Graphviz's or ours.
"""

from __future__ import annotations

import gc
import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.compatibility.case import call, loss_of, sgd
from tests.compatibility.faults import Fault, Switch, functions_of, injected
from tests.compatibility.walk import fingerprint
from tests.models import CASES
from tests.tables import every
from torchgraph_explorer import watch
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.run import open_run
from torchgraph_explorer.sinks import live_viewer
from torchgraph_wandb import sink as wandb_sink
from torchgraph_wandb import snapshots

RECORD = (
    "torchgraph_explorer.record.writer",
    "torchgraph_explorer.record.outbox",
    "torchgraph_explorer.record.segments",
)

MODULES: dict[str, tuple[str, ...]] = {
    "record": RECORD,
    "standalone": ("torchgraph_explorer.sinks.live_viewer",),
    "tensorboard": ("torchgraph_tensorboard.sink", "torchgraph_tensorboard.metadata"),
    "wandb": ("torchgraph_wandb.sink", "torchgraph_wandb.snapshots", "torchgraph_wandb.upload_schedule"),
}
"""What each backend is made of, besides what others have too."""

BEFORE_TRAINING = ("__init__", "open_sink", "start_viewer", "watched_by", "_before_end", "_advise_offline")
"""Names of what `watch` itself calls. It may raise: nothing is trained yet."""


def faults(backend: str) -> list[Any]:
    names = functions_of(map(importlib.import_module, MODULES[backend]))
    return [
        pytest.param(backend, Fault(name), id=f"{backend}: {name}")
        for name in names
        if name.rpartition(".")[2] not in BEFORE_TRAINING
    ]


def trained(logdir: Path, backend: str | None, switch: Switch | None = None, **options: Any) -> object:
    """What is left of a training that is watched with `backend`, or not at all; faults begin once it is."""
    torch.manual_seed(5)
    make, arguments = CASES["two inputs, in-place, reused"]
    model, losses = make(), []
    optimizer = sgd(model.parameters())
    watcher = watch(model, backend=backend, logdir=logdir, log_freq=1, verbose=False, **options) if backend else None
    if switch is not None:
        switch.on = True
    for _ in range(3):
        args, kwargs = arguments()
        loss = loss_of(call(lambda *positional: model(*positional, **kwargs), args))  # noqa: B023  # called at once
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    if watcher is not None:
        watcher.close()
    return fingerprint([losses, dict(model.state_dict()), torch.get_rng_state()])


def wandb_run() -> SimpleNamespace:
    """Stands for a W&B run that is offline."""
    settings = SimpleNamespace(base_url="https://api.wandb.ai")
    return SimpleNamespace(
        id="run",
        step=0,
        entity=None,
        url=None,
        settings=settings,
        offline=True,
        disabled=False,
        log=print,
        finish=print,
    )


def program(folder: Path, line: str) -> str:
    """A program that is run in place of Python, where a snapshot is drawn."""
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{line}\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture
def drawn_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has snapshots drawn by a line of shell."""

    def draw(line: str) -> None:
        python = program(tmp_path, line)
        monkeypatch.setattr(snapshots, "sys", SimpleNamespace(executable=python, path=[]))

    return draw


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Servers and files that a fault has left open."""
    yield
    for process in live_viewer._SERVERS._running.values():
        if process.child.poll() is None:
            live_viewer._end(process.child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "fault"), [one for backend in MODULES for one in every(4, faults(backend))])
def test_no_fault_of_a_backend_reaches_training(
    backend: str,
    fault: Fault,
    tmp_path: Path,
    drawn_by: Callable[[str], None],
    recwarn: pytest.WarningsRecorder,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn_by("exit 3")
    options = {"run": wandb_run()} if backend == "wandb" else {"port": 0}
    switch = Switch(on=backend == "tensorboard")  # which has done all it does when it is told of the session
    with injected(fault, switch):
        outcome = trained(tmp_path / "runs", backend, switch, **options)
    assert outcome == trained(tmp_path, None)
    said = [str(each.message) for each in recwarn if issubclass(each.category, TorchgraphWarning)]
    said += [line for line in capsys.readouterr().err.splitlines() if str(fault) in line]
    assert len(said) == len(set(said))
    assert said or not switch.calls


@pytest.mark.slow
@pytest.mark.parametrize("line", ["exit 3", "kill -SEGV $$", "exec sleep 600"], ids=["fails", "crashes", "hangs"])
def test_a_layout_that_fails_or_hangs_costs_the_end_a_stated_time_and_training_nothing(
    line: str,
    tmp_path: Path,
    drawn_by: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(wandb_sink, "SECONDS_TO_END", (0.3, 0.3))
    drawn_by(line)
    assert trained(tmp_path / "runs", "wandb", run=wandb_run()) == trained(tmp_path, None)
    assert capsys.readouterr().err.count("the W&B chart lacks the last steps") == 1
    [folder] = (tmp_path / "runs").iterdir()
    assert open_run(folder).model().steps.tolist() == [0, 1, 2]
