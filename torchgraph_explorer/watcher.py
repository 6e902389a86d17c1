"""The `Watcher`: joins capture and reduce for one model, for as long as it is watched."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from torch import nn

from torchgraph_explorer.capture.rounds import Observation, Rounds
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.recorder import Recorder, Step
from torchgraph_explorer.records import ModuleGraph, Session
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schedule import Schedule, schedule
from torchgraph_explorer.sinks import Sink

TimeLog: TypeAlias = "tuple[str, Callable[[Any, int], float]]"


class Viewer(Protocol):
    """The server process that shows a logdir."""

    @property
    def url(self) -> str:
        """Where to open it."""

    def stop(self) -> None:
        """End it, unless another watcher still shows something in it."""

    def wait(self) -> None:
        """Come back when the server has ended, or with a KeyboardInterrupt."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to record of a model, and how; see `watch`."""

    log: tuple[str, ...]
    log_freq: int | str | Schedule
    bins: int
    sample_n: int | None
    reject_outlier_proportion: float
    time_log: TimeLog | None


class Watcher:
    """One watched model. Made by `watch`; also a context manager that closes itself.

    Attributes:
        name: The model's name in its run.
        run_dir: The run's folder or URL; None if only sinks of the user's own are written to.
        url: Where the live viewer is; None without one.
        viewer: The live viewer, until `close` ends it.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        *,
        session: Session,
        sinks: Sequence[Sink],
        run_dir: str | None,
        viewer: Viewer | None,
    ) -> None:
        """Begin to watch `model` and write to `sinks`. `watch` is the way to make one."""
        self.name, self.run_dir = session.model, run_dir
        self.url = viewer.url if viewer is not None else None
        self.viewer = viewer
        self._pid = os.getpid()
        self._settings = settings
        self._model = weakref.ref(model)  # not kept alive by being watched
        self._wants = schedule(settings.log_freq)
        self._sampler = Sampler(settings.sample_n, seed=random.SystemRandom().getrandbits(32))
        self._closing = threading.Lock()
        self._finished = False
        self._batch: Batch | None = None
        self._began: tuple[float, float | None] = (0.0, None)
        self._saw_a_step = False
        self._rounds = Rounds(model, self, frozenset(settings.log))
        self._recorder = Recorder(session, sinks, now=time.time, when_idle=self._rounds.settle)
        weakref.finalize(model, self.finish).atexit = False  # at_exit.py sees to that

    @property
    def step(self) -> int:
        """Training forward passes of the model so far. May be set, e.g. after a checkpoint was loaded."""
        return self._rounds.step

    @step.setter
    def step(self, step: int) -> None:
        if step < 0 or step != int(step):
            raise OptionError(f"step={step!r} is no step. Set a whole number from 0.")
        self._rounds.step = step

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """The module graphs seen so far, one for each way in which the model called its modules."""
        return tuple(self._rounds.graphs)

    @property
    def graph(self) -> ModuleGraph | None:
        """The latest module graph; None until a first logged step is over."""
        return self._rounds.graphs[-1] if self._rounds.graphs else None

    def finish(self) -> None:
        """Take everything off the model and write what is at hand; the viewer stays. May be called again."""
        with self._closing:
            if self._finished or os.getpid() != self._pid:  # a forked child shares neither thread nor files
                return
            self._finished = True
        self._rounds.close()
        if not self._saw_a_step:
            self._recorder.note(f"{self.name}: no step was recorded. {_why_nothing(self.step)}")
        self._recorder.close()

    def close(self) -> None:
        """Take everything off the model, write what is at hand and stop the viewer. May be called again."""
        self.finish()
        viewer, self.viewer = self.viewer, None
        if viewer is not None and os.getpid() == self._pid:
            viewer.stop()

    @property
    def finished(self) -> bool:
        """Nothing is watched any more: it was closed, or the model is gone."""
        return self._finished

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._finished else f"step {self.step}"
        return f"<Watcher of {self.name!r}, {state}, {self.url or self.run_dir or 'sinks of its own'}>"

    def wants(self, step: int) -> bool:
        """Whether this step is to be logged (for `capture.rounds.Listener`)."""
        return bool(self._wants(step))

    def measure(self, step: int) -> Batch:
        """What measures the tensors of a step which begins (for `capture.rounds.Listener`)."""
        self._began = (time.time(), self._clock(step))
        self._batch = Batch(self._sampler, self._recorder.put)
        return self._batch

    def take(self, observation: Observation) -> None:
        """A logged step is over (for `capture.rounds.Listener`)."""
        assert self._batch is not None
        self._batch.finish()
        moment, clock = self._began
        self._saw_a_step = True
        self._recorder.put(
            Step(
                observation.step,
                moment,
                clock,
                observation.graph,
                observation.graph_is_new,
                observation.rows,
            )
        )

    def fail(self, module: str, fault: Exception) -> None:
        """Something went wrong while capturing `module` (for `capture.rounds.Listener`)."""
        what = f"module {module!r} is" if module else "the whole model is"
        self._recorder.note(
            f"{self.name}: {what} no longer recorded, since capturing it failed "
            f"({type(fault).__name__}: {fault}). Training goes on as it would without watch()."
        )

    def _clock(self, step: int) -> float | None:
        if self._settings.time_log is None:
            return None
        unit, read = self._settings.time_log
        try:
            return float(read(self._model(), step))
        except Exception as fault:
            self._recorder.note(f"{self.name}: the time axis {unit!r} is missing at some steps ({fault!r}).")
            return None


def _why_nothing(step: int) -> str:
    if step:
        return "None of its training steps was one that log_freq selects."
    return (
        "The model itself was never called in training mode with gradients enabled; calls of its parts, and passes in "
        "eval mode or under no_grad, are not recorded. Watch the module that your training loop calls; if it is "
        "compiled, that is what torch.compile returned."
    )
