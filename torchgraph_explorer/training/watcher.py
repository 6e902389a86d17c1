"""The `Watcher`, which `watch` returns."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from torchgraph_explorer import interrupts, timeouts
from torchgraph_explorer.capture.distributed import Shards
from torchgraph_explorer.capture.phases import Evaluation, Training
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import EVALUATIONS, ModuleGraph, Session
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.training.first_step import Start
from torchgraph_explorer.training.on_finding import FindingInbox
from torchgraph_explorer.training.options import Settings
from torchgraph_explorer.training.pipeline import Pipeline
from torchgraph_explorer.training.schedule import Schedule, every, schedule
from torchgraph_explorer.training.told import checked_categories, checked_label, checked_reason

if TYPE_CHECKING:
    from torchgraph_explorer.exploring.session import Session as FlowSession
    from torchgraph_explorer.record.run_record import RunRecord


EVALUATIONS_SHARE = 0.25
"""The part of the space for kept tensors that evaluations have, if they are recorded."""

LAST_STEP = 2**52
"""The largest step that may be set. A record has room for as many after it: the viewer counts up to 2⁵³."""


class LiveViewer(Protocol):
    """The server process that shows a logdir."""

    @property
    def url(self) -> str:
        """The address of the viewer."""

    def stop(self) -> None:
        """End the server, unless another watcher still shows something in it."""

    def wait(self) -> None:
        """Wait until the server has ended; a KeyboardInterrupt passes."""


class Watcher:
    """One watched model. Made by `watch`. Also a context manager, which closes it.

    Attributes:
        name: The model's name in its run.
        run_dir: The run's folder, as an absolute path, or URL; None if only sinks of the user's own are written to.
        url: Where the live viewer is; None without one.
        viewer: The live viewer, until `close` ends it.
        is_replaced: Another watch of the model takes its place.
        pid: The process that it was made in. A process that is forked from that has neither its threads nor its files.

    Example:
        >>> watcher = watch(model, backend="record", run="logged", verbose=False)
        >>> train(model)
        >>> watcher.log({"loss": 0.5})
        >>> watcher.close()
        >>> open_run("runs/logged").model().scalar("loss").values
        array([0.5])
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
        shards: Callable[[], Shards] | None = None,
        inbox: FindingInbox | None = None,
    ) -> None:
        """Begin to watch `model`. `watch` is the way to make one.

        Args:
            model: The model.
            settings: What to record of it.
            session: The description of this watch in the record.
            sinks: What to write to.
            more_sinks: Opens the sinks of another phase, given the model's name for it.
            run_dir: For the attribute.
            viewer: For the attribute.
            shards: Called in the training's thread when a logged training step begins; returns how the parameters are
                divided among the ranks.
            inbox: What was found, for the user's function.
        """
        self._inbox = inbox
        self.name, self.run_dir = session.model, run_dir
        self.url = viewer.url if viewer is not None else None
        self.viewer = viewer
        self.pid = os.getpid()
        self._ending = interrupts.lock()  # a signal handler may close the watcher during a close
        self._ends_in: int | None = None
        self._finished = self._has_ended = self._is_written = self.is_replaced = False
        self._training = Training()
        self._train = Pipeline(
            model,
            settings,
            session=session,
            sinks=sinks,
            phase=self._training,
            kinds=settings.kinds,
            wants=calling_first(sinks_before_step(sinks), schedule(settings.log_freq)),
            shards=shards,
            between_steps=inbox.deliver if inbox is not None else None,
            run_dir=run_dir,
            share=1 - EVALUATIONS_SHARE if "eval" in settings.phases else 1.0,
        )
        self._training.is_open = lambda: self._train.tracker.is_within
        self._pipelines = [self._train]
        if "eval" in settings.phases and self._train.is_recording:
            try:
                self._pipelines.append(self._evaluation(model, settings, session=session, more_sinks=more_sinks))
            except BaseException:  # no one else will have this object, to end the watch
                self._train.end()
                raise
        self._model = weakref.ref(unwrapped(model))
        self._gone = weakref.finalize(model, self.finish)
        self._gone.atexit = False  # exit.py does that

    def _evaluation(
        self, model: nn.Module, settings: Settings, *, session: Session, more_sinks: Callable[[str], Sequence[Sink]]
    ) -> Pipeline:
        """What records the evaluations of `model`, as a model of their own."""
        name = f"{session.model} (eval)"
        return Pipeline(
            model,
            replace(settings, optimizer=None, scaler=None, compiled="eager"),
            session=replace(session, id=f"{session.id}{EVALUATIONS}", model=name),
            sinks=more_sinks(name),
            phase=Evaluation(self._training),
            kinds=settings.kinds & {"io", "io_grad"},
            wants=every(1),
            run_dir=self.run_dir,
            share=EVALUATIONS_SHARE,
        )

    @property
    @interrupts.guarded
    def step(self) -> int:
        """How many training steps there were, including the one that has begun. You can set it.

        A step is one update of the model's parameters by an optimizer, together with all passes since the previous
        update. If no optimizer changes them, it is a forward pass and its backward pass. After you load a checkpoint,
        steps continue at the number of updates that the optimizer's state counts.
        """
        if not self._finished:
            self._train.tracker.look_back()
        return self._training.step

    @step.setter
    def step(self, step: int) -> None:
        if not _is_step(step):
            raise OptionError(f"step={step!r} is not a step. Set a whole number from 0 to {LAST_STEP}.")
        self._training.set(int(step))

    def begin(self, start: Start) -> None:
        """Count from `start`. For `watch`, before the first step."""
        self._training.step, self._train.recorded = min(start.step, LAST_STEP), start.recorded
        self._training.is_set = start.is_certain

    @property
    @interrupts.guarded
    def recording(self) -> bool:
        """Whether the current step is logged; between two steps, whether the next one is.

        Use it for code of your own that is only needed in logged steps. `log_freq` is asked about each step once.
        """
        return not self._finished and self._train.is_recording and self._train.tracker.is_recording

    def log(self, scalars: Mapping[str, object], label: str | None = None) -> None:
        """Record scalars, such as the loss, at the current step, whether or not that step is logged.

        Between an update and the next forward pass, the current step is the one that has just ended. So it does not
        matter whether you call this before `optimizer.step()`, after it, or after `zero_grad()`. Before the first pass,
        it is the step that is about to begin. If a scalar is logged several times in one step, the last value counts.

        The values are copied now, and nothing waits for a GPU. This does nothing after `close`, with `TORCHGRAPH=off`,
        and within compiled code.

        Args:
            scalars: A dict from names to numbers: a Python number, a numpy scalar, or a tensor or array with one
                element, on any device. NaN and infinity are recorded. The part of a name before a `/` groups the
                charts: `train/loss`, `train/accuracy`.
            label: Values of different labels are recorded apart, and are lines of one chart: `log({"loss": 0.5},
                label="eval")`. The label is that of these values alone. None: they have no label, even in a step that
                has one from `watcher.label`.

        Raises:
            OptionError: A name is not a str, a value is not a real number, or the label is not a short str.
        """
        if not torch.compiler.is_compiling() and self._records():
            if label is not None:
                checked_label(label, "log(…, label=", "log({'loss': loss}, label='eval')")
            self._train.log(scalars, label)

    def note(self, sentence: str) -> None:
        """Record a sentence at the current step (see `log`). The viewer shows it on the time bar.

        Raises:
            OptionError: It is not a str, or it is empty.
        """
        if torch.compiler.is_compiling() or not self._records():
            return
        if not isinstance(sentence, str) or not sentence.strip():
            raise OptionError(
                f"watcher.note({sentence!r:.80}) is not a note. Pass a sentence: note('warm-up is over')."
            )
        self._train.log_note(sentence)

    @interrupts.guarded
    def label(self, label: str | None) -> None:
        """Name the kind of the current step; between two steps, that of the next one.

        A step begins with its first forward pass and ends with its update. While the model is in evaluation mode, or
        within `torch.no_grad()` between two steps, the label is that of the evaluation that begins next, which is
        recorded with `phases=("train", "eval")`. With several ranks, the label of rank 0 counts.

        Raises:
            OptionError: It is not a short str.
        """
        if not torch.compiler.is_compiling() and self._records():
            checked = checked_label(label)
            self._tell(lambda one: one.label(checked), "a label is not recorded", next_pass=True)

    @interrupts.guarded
    def samples(self, categories: Sequence[object] | Tensor) -> None:
        """Spread the kept samples of this step (see `label`) evenly over `categories`.

        Call this before the forward pass, or before that of an evaluation, with one category for each sample of the
        batch. Tensors with another batch size are kept as without categories.

        Raises:
            OptionError: `categories` is not one str or number per sample.
        """
        if not torch.compiler.is_compiling() and self._records():
            checked = checked_categories(categories)
            self._tell(lambda one: one.samples(checked), "categories are not recorded", next_pass=True)

    @interrupts.guarded
    def keep(self, reason: str) -> None:
        """Keep the tensors of the latest step whole, and record why. You can call this until the next step begins.

        With `Keep(when="flagged", before=3)`, those of the three logged steps before are kept, too. Any thread may call
        this.

        Raises:
            OptionError: The reason is not a str.
        """
        if not torch.compiler.is_compiling() and self._records():
            checked = checked_reason("keep", reason)
            self._tell(lambda one: one.flag(checked), "a step is not kept")

    @interrupts.guarded
    def gradients(self, loss: str) -> None:
        """Keep the gradients of the backward pass that has just ended under a name, if there are several losses.

        Raises:
            OptionError: The name is not a str.
        """
        if not torch.compiler.is_compiling() and self._records():
            checked = checked_reason("gradients", loss, example="content loss")
            self._tell(lambda one: one.gradients(checked), "gradients are not kept under their name")

    @interrupts.guarded
    def connect(self, source: Tensor | str, target: Tensor | str) -> None:
        """Say that `target` is computed from `source`, if autograd cannot show it, for example after a detach.

        This adds an edge to the dependency graph of kept tensors, if the graph is made from this step: the first one
        that calls its modules in this way. Call it after `source` was attached, and while both tensors are alive.

        Args:
            source: A tensor, or the name of a node.
            target: A tensor, or the name of a node.

        Raises:
            OptionError: One of them is neither.
        """
        for each in (source, target):
            if not isinstance(each, Tensor | str):
                raise OptionError(f"watcher.connect() was given {type(each).__name__}. Pass tensors or names of nodes.")
        if not torch.compiler.is_compiling() and self._records():
            self._tell(lambda one: one.connect(source, target), "an edge is not recorded")

    def flag_findings(self, found: Sequence[Finding]) -> None:
        """The rules have found something: keep what waits for that. For the writer's thread."""
        bad = [one for one in found if one.severity != "info"]
        if bad and self._records() and self._train.is_flagged:
            place = f" in {bad[0].module!r}" if bad[0].module else ""
            sentence = f"finding: {bad[0].kind}{place}, since step {bad[0].step}"
            self._guarded(lambda: self._train.flag(sentence), "a step is not kept")

    def flag_exception(self, error: BaseException) -> None:
        """An exception ends the training: keep what waits for that, of training and evaluation."""
        if self._records() and self._train.is_flagged:
            for one in self._pipelines:
                self._guarded(partial(one.flag, f"exception: {reason(error)}"), "a step is not kept")

    def _tell(self, act: Callable[[Pipeline], None], without: str, *, next_pass: bool = False) -> None:
        """Tell training or evaluation what the loop says, of the latest pass or of the next one."""

        def tell() -> None:
            model = self._model()
            if model is None or self._training.is_within(model, next_pass=next_pass):
                act(self._train)
            elif len(self._pipelines) > 1:
                act(self._pipelines[1])
            elif self._train.saw_a_step:  # before, the model may turn out to be trained in eval mode
                self._train.note(
                    "evaluations are not recorded, and neither is what the loop says about them, such as their label. "
                    "To record them, pass phases=('train', 'eval')."
                )

        self._guarded(tell, without)

    def _guarded(self, act: Callable[[], None], without: str) -> None:
        try:
            act()
        except Exception as fault:  # ours, in the user's loop
            self._train.note(f"{without} ({reason(fault)}). Training goes on.")

    def _records(self) -> bool:
        return not self._finished and os.getpid() == self.pid

    @interrupts.guarded
    def step_done(self) -> None:
        """End the step here. From the first call on, only this ends a step, and updates by optimizers do not.

        For a training that moves parameters in a way that cannot be seen, and where a step is to be something else than
        an update, such as an episode. All passes since the call before belong to the step.
        """
        if not self._finished:
            self._train.tracker.mark_step()

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
        """The same as `graph`, by TorchExplorer's name."""
        return self.graph

    @property
    def has_steps(self) -> bool:
        """Whether a step was recorded."""
        return any(each.saw_a_step for each in self._pipelines)

    def watches(self, model: nn.Module) -> bool:
        """Whether this is the model, whatever torch.compile or the data-parallel classes have wrapped it in."""
        return self._model() is unwrapped(model)

    @property
    def finished(self) -> bool:
        """Whether nothing is watched any more: it was closed, or the model was freed."""
        return self._finished

    def has_begun(self, until: float) -> bool:
        """Whether all sinks have taken the session, by the moment `until` of the monotonic clock."""
        have_begun = [each.has_begun(until) for each in self._pipelines]  # each one notes it if its sinks have not
        return all(have_begun)

    def _why_nothing(self) -> str:
        if self._train.tracker.silence.is_over:
            return "log_freq selected none of its training steps. Log more often, for example with log_freq=1."
        return self._train.tracker.silence.reason()

    def end(self) -> None:
        """Remove everything from the model. What was measured is written in the background. May be called again."""
        if not self._is_put_off(self.end):
            self._end()

    def _is_put_off(self, act: Callable[[], None]) -> bool:
        """Whether this is called by a signal's handler, or a finalizer, that has interrupted code of ours.

        What that code has changed cannot be changed back before it goes on, so `act` is called as soon as it is left.
        """
        if is_within := interrupts.is_within_entry():
            interrupts.call_when_left(act)
        return is_within

    @interrupts.guarded
    def _end(self) -> None:
        with self._ending:
            here = threading.get_ident()
            if self._has_ended or self._ends_in == here or os.getpid() != self.pid:
                return
            self._finished, self._ends_in = True, here
        self._gone.detach()  # or the model would keep this watcher alive
        is_replaced_unused = self.is_replaced and self._train.tracker.silence.is_before_training
        try:
            for each in reversed(self._pipelines):
                each.end(self._why_nothing if each is self._train and not is_replaced_unused else None)
            self._has_ended = True
        finally:  # if a signal handler ends the process meanwhile, this is done again at exit
            self._ends_in = None

    def finish(self, *, until: float | None = None) -> None:
        """End the watch, but keep the viewer: remove everything from the model, and write what was measured.

        It does no harm to call this again.

        Waits until the moment `until` of the monotonic clock, by default for `timeouts.SECONDS_TO_END`.
        """
        if not self._is_put_off(self.finish):
            self._finish(until)

    @interrupts.guarded
    def _finish(self, until: float | None) -> None:
        self._end()
        with self._ending:
            if not self._has_ended or self._is_written or os.getpid() != self.pid:
                return  # within `end`, by the finalizer of the model: `end` still has to do its part
            self._is_written = True
        until = timeouts.until_the_end() if until is None else until
        try:
            for each in self._pipelines:
                each.wait(until)
        except BaseException:  # an interrupt; at exit, this waits again
            self._is_written = False
            raise

    def close(self) -> None:
        """End the watch: remove everything from the model, write what was measured, and stop the viewer.

        It does no harm to call this again. If a signal handler that has interrupted code of this package calls it, it
        returns at once, and the watch ends as soon as that code is left.
        """
        if self._is_put_off(self.close):
            return
        self.finish()
        if self._inbox is not None and os.getpid() == self.pid:
            self._inbox.deliver_at_end(self.name)
        viewer, self.viewer = self.viewer, None
        if viewer is not None and os.getpid() == self.pid:
            try:
                viewer.stop()
            except Exception as fault:  # must not fail the end of the user's training
                warn(f"The viewer at {self.url} may keep running until this process ends ({reason(fault)}).")

    def explore(self, inputs: Any = None, **options: Any) -> FlowSession:
        """Explore how gradient flows in the model as it is now, between two steps. The training waits meanwhile.

        Nothing of the session is recorded, and the training then goes on as if it had not happened.

        Args:
            inputs: A batch, as for `explore`. None: the samples that `keep=Keep(":input")` has kept of the last batch.
            options: The other parameters of `explore`. The page has the recorded runs beside it.

        Raises:
            OptionError: The model cannot be explored, or was deleted; or no batch is given, and none was kept.
        """
        from torchgraph_explorer.exploring.kept_batch import ADVICE, last_kept_batch
        from torchgraph_explorer.exploring.start import explore

        if (model := self._model()) is None:
            raise OptionError("The model was deleted, so it can no longer be explored.")
        if inputs is None:
            if self.run_dir is None:
                raise OptionError(
                    f"No batch was given, and none is kept, because nothing is recorded to a folder. {ADVICE}"
                )
            inputs = last_kept_batch(self._recorded().model(self.name), model)
        if self.run_dir is not None:
            options.setdefault("logdir", self.run_dir.rpartition(os.sep)[0])
        return explore(model, inputs, **options)

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
        """What a notebook shows: the viewer, once a step is recorded."""
        from torchgraph_explorer.server.notebook import iframe

        return iframe(self._recorded()) if self.run_dir is not None and self._train.saw_a_step else None

    def _recorded(self) -> RunRecord:
        from torchgraph_explorer.record.discovery import open_record

        if self.run_dir is None:
            raise OptionError(
                "There is nothing to show, because nothing is recorded to a folder. Add 'record' to backend=."
            )
        return open_record(self.run_dir)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self.flag_exception(error)
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._finished else f"step {self.step}"
        return f"<Watcher of {self.name!r}, {state}, {self.url or self.run_dir or 'no folder'}>"


def sinks_before_step(sinks: Sequence[Sink]) -> tuple[Callable[[], object], ...]:
    """What sinks do before each training step, in the training's thread. It must be quick, and raise nothing."""
    return tuple(sink.before_step for sink in sinks if hasattr(sink, "before_step"))


def calling_first(acts: tuple[Callable[[], object], ...], wants: Schedule) -> Schedule:
    """`wants`, which calls `acts` first, at every step."""
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
