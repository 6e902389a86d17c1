"""The `Watcher`: what `watch` hands back, for as long as a model is watched."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from torch import nn

from torchgraph_explorer import interrupts, timeouts
from torchgraph_explorer.capture.phases import Evaluation, Training
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.schema import ModuleGraph, Session
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.training.first_step import Start
from torchgraph_explorer.training.options import Settings
from torchgraph_explorer.training.pipeline import Pipeline
from torchgraph_explorer.training.schedule import Schedule, schedule

if TYPE_CHECKING:
    from torchgraph_explorer.record.reader import Run


LAST_STEP = 2**53
"""The largest step that may be set: up to it, the viewer counts exactly."""


class LiveViewer(Protocol):
    """The server process that shows a logdir."""

    @property
    def url(self) -> str:
        """Where to open it."""

    def stop(self) -> None:
        """End it, unless another watcher still shows something in it."""

    def wait(self) -> None:
        """Come back when the server has ended, or with a KeyboardInterrupt."""


class Watcher:
    """One watched model. Made by `watch`; also a context manager that closes itself.

    Attributes:
        name: The model's name in its run.
        run_dir: The run's folder, as an absolute path, or URL; None if only sinks of the user's own are written to.
        url: Where the live viewer is; None without one.
        viewer: The live viewer, until `close` ends it.
        pid: The process that it was made in. One that was forked from that shares neither its thread nor its files.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        *,
        session: Session,
        sinks: Sequence[Sink],
        more_sinks: Callable[[str], Sequence[Sink]],
        run_dir: str | None,
        viewer: LiveViewer | None,
        before_step: Callable[[], None] | None = None,
    ) -> None:
        """Begin to watch `model`. `watch` is the way to make one.

        Args:
            model: The model.
            settings: What to record of it.
            session: What the record says of this watch.
            sinks: What to write to.
            more_sinks: Opens what to write another phase to, under another name of the model.
            run_dir: For the attribute.
            viewer: For the attribute.
            before_step: To be called in the training thread when a logged training step begins.
        """
        self.name, self.run_dir = session.model, run_dir
        self.url = viewer.url if viewer is not None else None
        self.viewer = viewer
        self.pid = os.getpid()
        self._ending = interrupts.lock()  # a signal handler may close the watcher while it is being closed
        self._ends_in: int | None = None
        self._finished = self._has_ended = self._is_written = False
        self._training = Training()
        self._train = Pipeline(
            model,
            settings,
            session=session,
            sinks=sinks,
            phase=self._training,
            kinds=frozenset(settings.log),
            wants=after(sinks_before_step(sinks), schedule(settings.log_freq)),
            before_step=before_step,
        )
        self._streams = [self._train]
        if "eval" in settings.phases and self._train.is_recording:
            name = f"{session.model} (eval)"
            evaluation = Pipeline(
                model,
                replace(settings, optimizer=None, scaler=None, compiled="eager"),
                session=replace(session, id=f"{session.id}-eval", model=name),
                sinks=more_sinks(name),
                phase=Evaluation(self._training),
                kinds=frozenset(settings.log) & {"io", "io_grad"},
                wants=first_of_each(),
            )
            self._streams.append(evaluation)
        self._model = weakref.ref(unwrapped(model))
        self._gone = weakref.finalize(model, self.finish)
        self._gone.atexit = False  # at_exit.py sees to that

    @property
    def step(self) -> int:
        """Training forward passes of the model so far. May be set, e.g. after a checkpoint was loaded."""
        return self._training.step

    @step.setter
    def step(self, step: int) -> None:
        if not _is_step(step):
            raise OptionError(f"step={step!r} is no step. Set a whole number from 0 to {LAST_STEP}.")
        self._training.step = int(step)
        self._train.recorded = 0  # whoever says which step it is knows how it joins the earlier ones

    def begin(self, start: Start) -> None:
        """Count from where `start` says. For `watch`, before the first step."""
        self._training.step, self._train.recorded = min(start.step, LAST_STEP), start.recorded

    @property
    @interrupts.guarded
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """The module graphs seen so far, one for each way in which the model called its modules."""
        return self._train.tracker.graphs

    @property
    def graph(self) -> ModuleGraph | None:
        """The latest module graph; None until a logged step's forward pass is over."""
        graphs = self.graphs
        return graphs[-1] if graphs else None

    @property
    def structure(self) -> ModuleGraph | None:
        """As `graph`, by the name that TorchExplorer has for it."""
        return self.graph

    @property
    def has_steps(self) -> bool:
        """Something was recorded."""
        return any(stream.saw_a_step for stream in self._streams)

    def watches(self, model: nn.Module) -> bool:
        """Whether this is the model, whatever torch.compile or the data-parallel classes have wrapped it in."""
        return self._model() is unwrapped(model)

    @property
    def finished(self) -> bool:
        """Nothing is watched any more: it was closed, or the model is gone."""
        return self._finished

    def has_begun(self, until: float) -> bool:
        """Whether all sinks have taken the session, by the moment `until` of the monotonic clock."""
        have_begun = [stream.has_begun(until) for stream in self._streams]  # asked of each: one that has not, is told
        return all(have_begun)

    @interrupts.guarded
    def end(self) -> None:
        """Take everything off the model; what is at hand is written in the background. May be called again."""
        with self._ending:
            here = threading.get_ident()
            if self._has_ended or self._ends_in == here or os.getpid() != self.pid:
                return
            self._finished, self._ends_in = True, here
        self._gone.detach()  # or the model would keep this, were it watched ever again
        try:
            for stream in reversed(self._streams):
                stream.end((lambda: _why_nothing(self.step)) if stream is self._train else None)
            self._has_ended = True
        finally:  # if a signal's handler ended the process in the middle of it, it is done again at exit
            self._ends_in = None

    @interrupts.guarded
    def finish(self, *, until: float | None = None) -> None:
        """Take everything off the model and write what is at hand; the viewer stays. May be called again.

        Waits until the moment `until` of the monotonic clock, by default for `timeouts.SECONDS_TO_END`.
        """
        self.end()
        with self._ending:
            if not self._has_ended or self._is_written or os.getpid() != self.pid:
                return  # the model is gone, and was given up by `end` itself, which has still to do its part
            self._is_written = True
        until = timeouts.until_the_end() if until is None else until
        try:
            for stream in self._streams:
                stream.wait(until)
        except BaseException:  # an interrupt; at exit it is waited for again
            self._is_written = False
            raise

    def close(self) -> None:
        """Take everything off the model, write what is at hand and stop the viewer. May be called again."""
        self.finish()
        viewer, self.viewer = self.viewer, None
        if viewer is not None and os.getpid() == self.pid:
            try:
                viewer.stop()
            except Exception as fault:  # which is no reason for the user's training to fail at its end
                warn(f"The viewer at {self.url} may go on until this process ends ({reason(fault)}).")

    def export(self, path: str | os.PathLike[str], **options: Any) -> bytes:
        """Write the viewer with what is recorded so far into one HTML file, and return it.

        Args:
            path: The file to write.
            options: As for `export_page`: `steps`, `series`, `models`.

        Raises:
            OptionError: Nothing is recorded to a folder.
        """
        from torchgraph_explorer.server.export import export_page

        return export_page(self._recorded(), path, **options)

    def _repr_html_(self) -> str | None:
        """What a notebook shows of it: the viewer, once there is something recorded."""
        from torchgraph_explorer.server.notebook import frame

        return frame(self._recorded()) if self.run_dir is not None and self._train.saw_a_step else None

    def _recorded(self) -> Run:
        from torchgraph_explorer.record.discovery import open_run

        if self.run_dir is None:
            raise OptionError("Nothing is recorded to a folder that could be shown. Add 'record' to backend=.")
        return open_run(self.run_dir)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._finished else f"step {self.step}"
        return f"<Watcher of {self.name!r}, {state}, {self.url or self.run_dir or 'no folder'}>"


def sinks_before_step(sinks: Sequence[Sink]) -> tuple[Callable[[], object], ...]:
    """What sinks have to do before each training step, in its thread: next to nothing, and never to raise."""
    return tuple(sink.before_step for sink in sinks if hasattr(sink, "before_step"))


def after(acts: tuple[Callable[[], object], ...], wants: Schedule) -> Schedule:
    """`wants`, asked at every step after `acts` were done."""
    if not acts:
        return wants

    def asked(step: int) -> bool:
        for act in acts:
            act()
        return wants(step)

    return asked


def _is_step(step: object) -> bool:
    try:
        return 0 <= int(step) <= LAST_STEP and bool(step == int(step))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return False


def first_of_each() -> Callable[[int], bool]:
    """Selects the first pass of each evaluation: the first after training has gone on."""
    latest = [-1]

    def wants(step: int) -> bool:
        is_first, latest[0] = step != latest[0], step
        return is_first

    return wants


def _why_nothing(step: int) -> str:
    if step:
        return "None of its training steps was one that log_freq selects."
    return (
        "The model itself was never called in training mode with gradients enabled; calls of its parts, and passes in "
        "eval mode or under no_grad, are not recorded. Watch the module that your training loop calls; if what it "
        "calls is a compiled function of yours, compile the model instead of the function."
    )
