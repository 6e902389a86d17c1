"""A training that logs to W&B in some way, in a process of its own: `python -m tests.wandb_panel.training WAY LOGDIR`.

What the way needs besides is a third argument, as JSON.

It prints a line of JSON: what the test is to know of it.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import wandb
from torch import Tensor, nn
from wandb.agents.pyagent import Agent

from tests.held import held
from tests.processes import wait_for
from torchgraph_explorer import Keep, attach, watch
from torchgraph_explorer.schema import Frame
from torchgraph_explorer.training.writer_thread import Step, WriterThread
from torchgraph_wandb.sink import WandbSink
from torchgraph_wandb.snapshots import Snapshot


class Block(nn.Module):
    """Two layers and a way past them; its activation is used twice."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.relu = nn.ReLU(inplace=True)
        self.outer = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.outer(self.relu(self.inner(x)))
        attach(y, self, "residual")
        return self.relu(y + x)


class Net(nn.Module):
    """A stem, two blocks, a head."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)))


def begin(**options: Any) -> Any:
    """A W&B run that does not look at the machine and at what is installed on it, which takes long."""
    settings = wandb.Settings(x_disable_stats=True, x_save_requirements=False, silent=True)
    return wandb.init(project="p", settings=settings, **options)


def train(model: nn.Module, steps: int, log: Callable[[int, float], None]) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 8)).square().mean()
        loss.backward()
        optimizer.step()
        log(step, loss.item())


def watched(model: nn.Module, logdir: str, **options: Any) -> Any:
    return watch(model, backend="wandb", log_freq=1, logdir=logdir, verbose=False, **options)


# The ways. What each returns is printed.


def left_open(logdir: str) -> object:
    """Nothing is closed: the interpreter's exit does it."""
    run = begin()
    model = Net()
    watched(model, logdir, run=run, upload_record=True)
    train(model, 10, lambda _step, loss: run.log({"loss": loss}))
    return {"run": run.id, "step": run.step}


def finished(logdir: str) -> object:
    """The W&B run ends before anybody closes the watcher."""
    with begin() as run:
        model = Net()
        watcher = watched(model, logdir)
        train(model, 10, lambda _step, loss: run.log({"loss": loss}))
        step = run.step
    return {"run": run.id, "step": step, "is_finished": watcher.finished, "run_dir": watcher.run_dir}


def broken(logdir: str, *, seconds: float) -> object:
    """A ReLU is dead from the first step. With `seconds`, the training is as long, and is looked at meanwhile."""
    with begin() as run:
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        nn.init.constant_(model[0].bias, -100.0)  # type: ignore[arg-type]
        watcher = watched(model, logdir)

        def log(_step: int, loss: float) -> None:
            run.log({"loss": loss})
            time.sleep(seconds / 20)

        train(model, 20, log)
    return {"run_dir": watcher.run_dir}


def committed_late(logdir: str) -> object:
    """Rows are put together with `commit=False`, with steps and an axis of their own, until a snapshot falls in."""
    snapshots, steps = timed(WandbSink, "_log", Snapshot), 0
    with begin() as run:
        run.define_metric("samples")
        run.define_metric("*", step_metric="samples")
        model = Net()
        watched(model, logdir)

        def log(_step: int, loss: float) -> None:
            run.log({"loss": loss}, step=steps * 10, commit=False)
            run.log({"samples": steps * 32}, commit=False)
            time.sleep(0.15)  # most of the time of a step, so that is where a snapshot falls
            run.log({"half": loss / 2}, commit=True)

        while steps < 5 or (not snapshots and steps < 600):
            train(model, 1, log)
            steps += 1
        train(model, 1, log)  # a snapshot that fell between two rows is committed, or the last one would replace it
        steps += 1
    return {"run": run.id, "steps": steps}


def disabled(logdir: str) -> object:
    with begin(mode="disabled") as run:
        model = Net()
        watcher = watched(model, logdir)
        train(model, 3, lambda _step, loss: run.log({"loss": loss}))
    return {"run_dir": watcher.run_dir}


def watched_again(logdir: str) -> object:
    """As by a cell of a notebook that is run five times, with some training after each."""
    losses: list[float] = []
    with begin() as run:
        model, counts = Net(), []
        for _ in range(5):
            watcher = watched(model, logdir)
            assert wait_for(lambda: all(thread.name != "torchgraph-wandb" for thread in threading.enumerate()))
            counts.append(held(model))
            train(model, 2, lambda _step, loss: losses.append(loss))
    return {"run": run.id, "run_dir": watcher.run_dir, "losses": losses, "held": counts}


def unwatched(_logdir: str) -> object:
    """The losses of the training above without any watch."""
    losses: list[float] = []
    model = Net()
    for _ in range(5):
        train(model, 2, lambda _step, loss: losses.append(loss))
    return {"losses": losses}


def begun_late(logdir: str) -> object:
    """The run begins after some steps, and ends before anybody closes the watcher."""
    model = Net()
    watcher = watched(model, logdir)
    train(model, 3, lambda _step, _loss: None)
    with begin() as run:
        train(model, 3, lambda _step, loss: run.log({"loss": loss}))
    return {"run_dir": watcher.run_dir}


def begun_late_for_one_step(logdir: str) -> object:
    """It begins, and ends at once after the only step, which the recorder's thread has not seen by then."""
    model = Net()
    watched(model, logdir)
    run = begin()
    loss = model(torch.randn(32, 8)).square().mean()
    loss.backward()
    run.finish()
    return None


def begun_late_with_evaluation(logdir: str, *, megabytes: float = 0) -> object:
    model = Net()
    watched(model, logdir, phases=("train", "eval"), keep=Keep("*", wandb_megabytes=megabytes))
    with begin():
        train(model, 3, lambda _step, _loss: None)
        model.eval()
        model(torch.randn(32, 8))
    return None


def never_begun(logdir: str) -> object:
    model = Net()
    with watched(model, logdir) as watcher:
        train(model, 3, lambda _step, _loss: None)
    return {"run_dir": watcher.run_dir}


def offline(logdir: str) -> object:
    with begin(mode="offline", entity="ent") as run:
        model = Net()
        watched(model, logdir)
        train(model, 5, lambda _step, loss: run.log({"loss": loss}))
        folder = Path(run.dir).parent
    return {"run": run.id, "folder": str(folder)}


def session(logdir: str, *, steps: int, run: str, resume: str | None = None, mode: str = "online") -> object:
    """One session of a run that may have had others."""
    with begin(id=run, resume=resume, mode=mode, entity="ent") as active:
        model = Net()
        watcher = watch(model, backend="wandb", log_freq=1, logdir=logdir)
        train(model, steps, lambda _step, loss: active.log({"loss": loss}))
        folder = Path(active.dir).parent
    return {"run": run, "run_dir": watcher.run_dir, "step": watcher.step, "folder": str(folder)}


def unlogged(logdir: str, *, steps: int, seconds: float) -> object:
    """A training of slow steps that logs nothing of its own to W&B, and so ends no row."""
    begin(id="unlogged")
    model = Net()
    watched(model, logdir)

    train(model, steps, lambda _step, _loss: time.sleep(seconds))
    return {}


def sweep(logdir: str) -> object:
    """Several runs in one process, and two models in the last."""
    runs = []
    for width in (4, 8):
        with begin() as run:
            model, other = Net(width), Net(width)
            watched(model, logdir, name="first")
            if width == 8:
                watched(other, logdir, name="second")
            train(model, 3, lambda _step, loss: run.log({"loss": loss}))
            train(other, 3, lambda _step, loss: None)
            runs.append(run.id)
    return {"runs": runs}


def agent(logdir: str) -> object:
    """Runs of a real sweep, each in a thread that the agent begins."""
    runs = []

    def run_once() -> None:
        with begin() as run:
            model = Net(run.config["width"])
            watched(model, logdir)
            train(model, 3, lambda _step, loss: run.log({"loss": loss}))
            runs.append(run.id)

    Agent.HEARTBEAT_SLEEP_SECONDS = 1
    sweep = wandb.sweep({"method": "grid", "parameters": {"width": {"values": [4, 8]}}}, project="p")
    wandb.agent(sweep, function=run_once, project="p", count=2)
    return {"runs": runs}


def many_steps(logdir: str, *, files: int | None = None, steps: int = 2000) -> object:
    """So many steps, each of them logged; and the seconds that each took, and spent on being logged.

    This process and those that it starts may each have as many files open as `files` says.
    """
    if files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    handed, written = timed(WriterThread, "put", Step), timed(WandbSink, "write", Frame)
    with begin() as run:
        model = Net()
        watched(model, logdir)
        taken = timed_steps(model, steps, run)
    return {"run": run.id, "steps": taken, "handing over": handed, "writing": written}


def many_steps_recorded(logdir: str) -> object:
    """The same with a record only, to hold it against."""
    with begin() as run:
        model = Net()
        with watch(model, backend="record", log_freq=1, logdir=logdir, verbose=False):
            taken = timed_steps(model, 2000, run)
    return {"run": run.id, "steps": taken}


def timed_steps(model: nn.Module, steps: int, run: Any) -> list[float]:
    """Train, and the seconds from one step's end to the next one's."""
    ends: list[float] = []

    def log(_step: int, loss: float) -> None:
        run.log({"loss": loss})
        ends.append(time.perf_counter())

    train(model, steps, log)
    return [later - earlier for earlier, later in pairwise(ends)]


def timed(owner: type, method: str, last: type) -> list[float]:
    """The seconds that each step spends in `method`, which is called with several things a step, the last a `last`."""
    original, seconds, spent = getattr(owner, method), [], 0.0

    def timing(self: object, item: object) -> None:
        nonlocal spent
        began = time.perf_counter()
        original(self, item)
        spent += time.perf_counter() - began
        if isinstance(item, last):
            seconds.append(spent)
            spent = 0.0

    setattr(owner, method, timing)
    return seconds


WAYS = (
    left_open,
    finished,
    broken,
    committed_late,
    disabled,
    watched_again,
    unwatched,
    begun_late,
    begun_late_for_one_step,
    begun_late_with_evaluation,
    never_begun,
    offline,
    session,
    unlogged,
    sweep,
    agent,
    many_steps,
    many_steps_recorded,
)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    ways: dict[str, Callable[..., object]] = {way.__name__: way for way in WAYS}
    options = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
    print(json.dumps(ways[sys.argv[1]](sys.argv[2], **options)))
