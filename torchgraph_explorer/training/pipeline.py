"""Brings the steps of one model, in one phase, from capture through reduce to the sinks."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from torch import Tensor, nn

from torchgraph_explorer.capture.distributed import Shards
from torchgraph_explorer.capture.inline.probes import why_not_inline
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.observation import OPTIMIZER, Observation
from torchgraph_explorer.capture.phases import Phase, Training
from torchgraph_explorer.capture.step_tracker import StepTracker
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.per_label import LabelSchedule, PerLabel
from torchgraph_explorer.reduce.batch import Batch
from torchgraph_explorer.reduce.device_batch import DeviceBatch
from torchgraph_explorer.reduce.finite import IsFinite, is_finite
from torchgraph_explorer.reduce.row_buffer import RowBuffer
from torchgraph_explorer.reduce.sampling import Sampler
from torchgraph_explorer.schema import NotFinite, NotFiniteOrigin, Session
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.tensors.keep import Keep
from torchgraph_explorer.tensors.step_tensors import KeptSteps, StepTensors
from torchgraph_explorer.training.bad_values import BadValues
from torchgraph_explorer.training.evaluation_turns import EvaluationTurns
from torchgraph_explorer.training.first_step import recorded_again
from torchgraph_explorer.training.idle_timer import IdleTimer
from torchgraph_explorer.training.options import Settings, module_selection, pass_choice
from torchgraph_explorer.training.rank_decisions import decisions
from torchgraph_explorer.training.scalar_log import NO_ROOM, ScalarLog
from torchgraph_explorer.training.schedule import Schedule
from torchgraph_explorer.training.told import Told
from torchgraph_explorer.training.writer_thread import Step, WriterThread

SEEN = {"output": "the model's output", "gradient": "a gradient", "parameter": "a parameter"}
"""What is looked at in steps that are not recorded, as `NotFinite.what` and in a sentence."""


class Pipeline:
    """Records the passes of one model in one phase.

    Attributes:
        tracker: Follows the model.
        saw_a_step: A step was recorded.
        recorded: One more than the highest step of earlier sessions in the run; 0 if there is none to warn about.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Settings,
        *,
        session: Session,
        sinks: Sequence[Sink],
        phase: Phase,
        kinds: frozenset[str],
        wants: Schedule,
        shards: Callable[[], Shards] | None = None,
        between_steps: Callable[[], object] | None = None,
        run_dir: str | None = None,
        share: float = 1.0,
    ) -> None:
        """Begin to watch `model` in `phase`, and write the steps that `wants` selects to `sinks`.

        `shards` is called in the training thread when such a step begins. It tells how the parameters are divided among
        the ranks. `between_steps` is called there before each step, and may end the training. `run_dir` is where they
        record to, and `share` the part of the space for kept tensors that these steps have.
        """
        self._between_steps = between_steps
        self.saw_a_step = self._is_given_up = False
        self.recorded = 0
        self._warned: set[str] = set()
        self._name, self._settings, self._wants = session.model, settings, wants
        self._look_at_shards = shards
        self._shards: Shards = {}
        self._model = weakref.ref(model)  # not kept alive
        self._sampler = Sampler(settings.sample_n)
        self._rows: RowBuffer | None = None
        self._device_batch = DeviceBatch(histograms=settings.histograms)
        self._batch: Batch | None = None
        self._keeps = kept_steps(settings.keep, session, self.note, share=share)
        self._kept: StepTensors | None = None
        self._kept_ahead: tuple[int, StepTensors | None] = -1, None
        self._told = self._ahead = Told(-1)
        self._labels = LabelSchedule(settings.log_freq) if isinstance(settings.log_freq, PerLabel) else None
        self._began: tuple[float, float | None, float | None] = (0.0, None, None)
        self._turns = None if isinstance(phase, Training) else EvaluationTurns()
        inline = settings.compiled == "inline"
        why_not = why_not_inline() if inline else None
        self.tracker = StepTracker(
            model,
            self,
            kinds=kinds,
            phase=phase,
            optimizer=settings.optimizer,
            inline=inline and why_not is None,
            by_updates=isinstance(phase, Training),
            choice=pass_choice(settings.passes),
            selection=module_selection(settings),
            with_evaluations="eval" in settings.phases,
        )
        self._phase = phase
        self._log, self._bad_values = ScalarLog(), BadValues()
        self._last_bad_value: NotFinite | None = None
        try:
            ranks = decisions(session, run_dir) if self._keeps is not None else None
            self._writer = WriterThread(session, sinks, now=time.time, log=self._log, decisions=ranks)
        except BaseException:
            self.tracker.close()
            raise
        if why_not is not None:
            self.note(why_not)
        self._idle_timer: IdleTimer | None = None
        if self.is_recording:
            with suppress(RuntimeError):  # no further thread can be started: each step is handed over by the next one
                self._idle_timer = IdleTimer(self._settle, self._fail_to_settle)

    @property
    def is_recording(self) -> bool:
        """Whether what is measured is written. It is not if no thread can be started."""
        return self._writer.is_alive

    def has_begun(self, until: float) -> bool:
        """Whether its sinks have taken the session, by the moment `until` of the monotonic clock."""
        return self._writer.has_begun(until)

    def end(self, why_nothing: Callable[[], str] | None = None) -> None:
        """Take everything off the model and have the last step written; warn with `why_nothing` if there was none."""
        self._each(
            self._stop_idle_timer,
            self._note_only_step,
            self.tracker.close,
            self._note_last_bad_value,
            lambda: self._note_nothing(why_nothing),
            lambda: self._writer.end(self._phase.step, self._last_bad_value),
        )
        self._kept_ahead = -1, None
        self._rows = self._batch = self._kept = None  # these are large, and a watcher whose viewer stays is kept
        # The optimizer keeps the parameters alive.
        self._settings = replace(self._settings, optimizer=None, scaler=None, time_log=None)

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.stop()

    def wait(self, until: float) -> None:
        """Wait until everything is written, or until the moment `until` of the monotonic clock."""
        self._each(lambda: self._writer.wait(until))

    def _settle(self) -> None:
        """In the idle timer's thread: hand over a step after which nothing comes.

        It holds the step's lock, which the training waits for. So it waits neither for room in the writer's queue nor
        for the function that shows warnings.
        """
        if self._writer.has_room:
            with self._writer.deferring_warnings():
                self.tracker.settle()

    def _fail_to_settle(self, fault: Exception) -> None:
        self.note(f"a finished step could not be recorded ({reason(fault)}). Training goes on.")

    def _each(self, *parts: Callable[[], None]) -> None:
        for part in parts:
            try:
                part()
            except Exception as fault:  # a fault of ours must not fail the end of the user's training
                sentence = f"{self._name}: the end of the record is missing ({reason(fault)})."
                if sentence not in self._warned:
                    self._warned.add(sentence)
                    warn(sentence)

    def _note_nothing(self, reason: Callable[[], str] | None) -> None:
        if reason is not None and not (self.saw_a_step or self._is_given_up) and self.is_recording:
            self._writer.note(f"{self._name}: no step was recorded. {reason()}")

    def between_steps(self) -> None:
        """Call the user's function for what was found (for `capture.observation.StepListener`)."""
        if self._between_steps is not None:
            self._between_steps()

    def wants(self, step: int) -> bool:
        """Whether this step is to be logged (for `capture.observation.StepListener`)."""
        is_asked_for, self._bad_values.asks_for_step = self._bad_values.asks_for_step, False
        if not (self.is_recording and (self._wants(step) or is_asked_for) and self._may_select(step)):
            return False
        return self._turns is None or self._has_turn(self._turns, step)

    def wants_turn(self, _step: int) -> bool:
        """Whether a step may be logged that the schedule leaves out (for `capture.observation.StepListener`).

        Not where the user selects steps one by one, or by their labels.
        """
        is_chosen = self._labels is not None or callable(self._settings.log_freq)
        return self.is_recording and not is_chosen

    def _has_turn(self, turns: EvaluationTurns, step: int) -> bool:
        has_turn = turns.takes(step, self._ahead.label if self._ahead.step == step else None)
        if turns.have_met:
            self.note(
                "evaluations with different labels come at the same step. One of them is recorded at each step: the "
                "labels take turns."
            )
        return has_turn

    def _may_select(self, step: int) -> bool:
        """Whether the schedule of labels may select a step that has not begun."""
        if self._labels is None:
            return True
        label = self._ahead.label if self._ahead.step == step else None
        return self._labels.may_select(step) if label is None else self._labels.selects(step, label)

    def measure(self, step: int) -> Batch:
        """What measures the tensors of a step that begins (for `capture.observation.StepListener`)."""
        self._told = self._ahead if self._ahead.step == step else Told(step)
        if self._turns is not None:
            self._told = replace(self._told)  # what is said next is of another evaluation, maybe at the same step
            self._turns.note(step, self._told.label)
        self._prepare()
        scale = self._scale()
        self._began = (time.time(), self._clock(step), scale)
        self._rows = self._rows or RowBuffer(
            histograms=self._settings.histograms
        )  # reused: it has the memory that a step needs
        self._batch = Batch(self._sampler, self._rows, self._device_batch, step=step, gradient_scale=scale or 1.0)
        return self._batch

    def keeper(self, step: int) -> StepTensors | None:
        """What keeps tensors of a step that begins (for `capture.observation.StepListener`)."""
        (number, kept), self._kept_ahead = self._kept_ahead, (-1, None)
        self._kept = kept if number == step else self._begin_kept(self._told)
        return self._kept

    def selects(self) -> Callable[[str, str, str], bool] | None:
        """Which tensors have names (for `capture.observation.StepListener`)."""
        keeps = self._keeps
        if keeps is None:
            return None
        selects = keeps.selects
        return lambda *place: selects(place)

    def keeper_ahead(self, step: int) -> StepTensors | None:
        """What keeps tensors of a step before it begins (for `capture.observation.StepListener`)."""
        if self._kept_ahead[0] != step:
            told = self._ahead if self._ahead.step == step else Told(step)
            self._kept_ahead = step, self._begin_kept(told)
        return self._kept_ahead[1]

    def _begin_kept(self, told: Told) -> StepTensors | None:
        kept = None
        if self._keeps is not None:
            try:
                kept = self._keeps.begin(told.step, told.label)
                if kept is not None and told.categories:
                    kept.choose(told.categories)
            except Exception as fault:
                self._keep_no_more(fault)
        return kept

    def _finish_kept(self, label: str | None) -> StepTensors | None:
        """The kept tensors of the step that is over."""
        kept, self._kept = self._kept, None
        if kept is not None:
            try:
                with NoDispatch():
                    kept.finish(label)
            except Exception as fault:
                self._keep_no_more(fault)
                return None
        return kept

    def _keep_no_more(self, fault: Exception) -> None:
        self._keeps = None
        self.note(
            f"tensors are no longer kept, since keeping them failed ({reason(fault)}). Everything else is recorded."
        )

    def _prepare(self) -> None:
        try:
            self._shards = self._look_at_shards() if self._look_at_shards is not None else {}
        except Exception as fault:
            self._writer.note(f"{self._name}: how its parameters are sharded cannot be told ({reason(fault)}).")

    def take(self, observation: Observation) -> None:
        """A logged step is over (for `capture.observation.StepListener`)."""
        assert self._batch is not None
        if not (self.saw_a_step or self._phase.joins) and observation.step < self.recorded:
            self._writer.note(f"{self._name}: {recorded_again(observation.step, self.recorded)}")
        self.saw_a_step = True
        self._note_first_step()
        told, self._told = self._told, Told(-1)
        if self._labels is not None and not self._labels.take(observation.step, told.label):
            self._discard()
            return
        moment, clock, scale = self._began
        with NoDispatch():  # what is on a GPU is copied
            measured, kept = self._batch.finish(), self._finish_kept(told.label)
        self._writer.put(
            Step(
                step=observation.step,
                time=moment,
                clock=clock,
                gradient_scale=scale,
                graph=observation.graph,
                rows=observation.rows,
                shards=self._shards,
                measured=measured,
                facts=observation.facts,
                training=observation.training,
                not_finite=self._bad_values.take(),
                kept=kept,
                label=told.label,
                tensors=observation.tensors,
            )
        )

    def _discard(self) -> None:
        """The step is none that its label's schedule selects."""
        assert self._batch is not None
        self._batch.finish()
        self._kept = None
        if self._keeps is not None:
            self._keeps.discard()

    def finite_reader(self) -> IsFinite | None:
        """What tells whether a tensor is finite (for `capture.observation.StepListener`)."""
        return is_finite()

    def not_finite(self, step: int, what: str, origin: NotFiniteOrigin | None) -> None:
        """Something was not finite in a step that is not logged (for `capture.observation.StepListener`)."""
        self._bad_values.note(step, what, origin)

    def fail(self, module: str, fault: Exception) -> None:
        """Something went wrong while capturing `module` (for `capture.observation.StepListener`)."""
        self._is_given_up = self._is_given_up or not module
        what = f"module {module!r} is" if module else "the whole model is"
        if module == OPTIMIZER:
            what = "the optimizer's updates are"
        # An OptionError is of what the user passed, and says so.
        why = str(fault) if isinstance(fault, OptionError) else f"capturing it failed ({reason(fault)})"
        self._writer.note(
            f"{self._name}: {what} no longer recorded, since {why}. Training goes on as it would without watch()."
        )

    def note(self, sentence: str) -> None:
        """Something is not recorded (for `capture.observation.StepListener`)."""
        self._writer.note(f"{self._name}: {sentence}")

    def log(self, scalars: Mapping[str, object], label: str | None) -> None:
        """Record scalars at the step that the training is in. A fault of ours is noted; training goes on.

        Raises:
            OptionError: A name is not a str, or a value is not a number.
        """
        self._note_first_step()
        try:
            unreadable = self._log.add(self.tracker.current_step, time.time(), scalars, label=label)
            self._bad_values.look(self.tracker.current_step, scalars, label)
        except OptionError:
            raise
        except Exception as fault:
            self.note(f"some scalars are not recorded ({reason(fault)}).")
            return
        if unreadable:
            self.note(
                f"the scalar {unreadable[0]!r} is not recorded at steps at which its tensor's value cannot be read."
            )
        if self._log.dropped:
            self.note(f"some logged scalars are not recorded: {NO_ROOM}.")

    def log_note(self, sentence: str) -> None:
        """Record a sentence at the step that the training is in."""
        self._note_first_step()
        self._log.note(self.tracker.current_step, time.time(), sentence)

    def label(self, label: str | None) -> None:
        """Give the step that has begun, or else the one that begins next, this label."""
        self._told_of().label = label
        if self._labels is not None:
            self._labels.note(label)
        if self._keeps is not None:
            self._keeps.note_label(label)

    def samples(self, categories: tuple[str, ...]) -> None:
        """Spread the kept samples of that step evenly over these categories."""
        told = self._told_of()
        told.categories = categories
        number, ahead = self._kept_ahead
        kept = self._kept if told is self._told else ahead if number == told.step else None
        if kept is not None:
            kept.choose(categories)

    def flag(self, reason: str) -> None:
        """Keep the tensors of the latest step. For any thread."""
        step = self.tracker.current_step
        step = self.tracker.step if step is None else step
        if self._keeps is None:
            self.note("watcher.keep() keeps nothing, since watch() was given no keep=. Pass keep=Keep('*').")
            return
        if not self._writer.decides:
            return
        if (kept := self._kept) is not None:
            kept.ask(reason)
        elif not (self._keeps.is_flagged or self._keeps.is_asked):
            self.note(
                f"step {step} was not copied, and cannot be kept: log_freq= of watch() or Keep() has not selected it. "
                f"From now on, each logged step is copied, so that watcher.keep() can keep it."
            )
        self._keeps.is_asked = True
        self._writer.ask(step, reason)

    @property
    def is_flagged(self) -> bool:
        """Whether steps are kept only if something asks for them."""
        return self._keeps is not None and self._keeps.is_flagged

    def connect(self, source: Tensor | str, target: Tensor | str) -> None:
        """Add an edge to the dependency graph, if this step makes it."""
        self.tracker.connect(source, target)

    def gradients(self, loss: str) -> None:
        """Keep the gradients of the latest backward pass under a name."""
        if (kept := self._kept) is not None:
            kept.name_gradients(loss)

    def _told_of(self) -> Told:
        """What was said of the step that has begun; else of the one that begins next."""
        if self._turns is None and self.tracker.is_within:  # an evaluation may leave gradients on, and is over
            return self._told
        if self._ahead.step != (upcoming := self.tracker.upcoming):
            self._ahead = Told(upcoming)
        return self._ahead

    def _note_first_step(self) -> None:
        """Tell the log which step came first. The writer's thread does not ask the tracker."""
        if self._log.first_step is None:
            self._log.first_step = self.tracker.first_step

    def _note_only_step(self) -> None:
        """At the end: what was logged before a first step has ended belongs to the step that the training is in."""
        self._note_first_step()
        if self._log.first_step is None:
            self._log.first_step = self.tracker.step

    def _note_last_bad_value(self) -> None:
        """At the end: say what was not finite since the last recorded step. No later step has a place for it.

        Scalars are recorded at all steps.
        """
        found = self._bad_values.take()
        if found is not None and found.what in SEEN:
            self._last_bad_value = found
            self.note(
                f"{SEEN[found.what]} had NaN or infinite elements at step {found.step}, which was not recorded, and no "
                f"later step was: the training ended.{_origin_in_words(found.origin)} Record every step (log_freq=1) "
                f"to see in which module they began."
            )

    def _clock(self, step: int) -> float | None:
        if self._settings.time_log is None:
            return None
        unit, read = self._settings.time_log
        return self._number(lambda: read(self._model(), step), f"the time axis {unit!r} is missing at some steps")

    def _scale(self) -> float | None:
        scaler = self._settings.scaler
        if scaler is None:
            return None
        return self._number(scaler.get_scale, "the gradients have the scaler's factor at some steps")

    def _number(self, read: Callable[[], float], without: str) -> float | None:
        """The number that the user's function returns; None, with the note `without`, if it is not finite."""
        try:
            number = float(read())
        except Exception as fault:
            self._writer.note(f"{self._name}: {without} ({reason(fault)}).")
            return None
        if math.isfinite(number):
            return number
        self._writer.note(f"{self._name}: {without} (it was {number}).")
        return None


def kept_steps(keep: Keep | None, session: Session, note: Callable[[str], None], *, share: float) -> KeptSteps | None:
    """What decides which steps are kept; None if none is. Ranks that make one record divide this share of the space."""
    return None if keep is None else KeptSteps(keep, share=share / session.world_size, note=note)


def _origin_in_words(origin: NotFiniteOrigin | None) -> str:
    """A sentence on what else was not finite, with a space before it; empty if that is not known."""
    if origin is None:
        return ""
    if not origin.names:
        return " The inputs and all parameters were finite." if origin.kind == "parameter" else ""
    first, last, share = origin.names[0], origin.names[-1], f"{origin.count} of {origin.total} parameters"
    return {
        "input": f" They came in with the data: {first} of the model had some.",
        "parameter": f" {share} had some, first {first}.",
        "gradient": f" The gradients of {share} had some, up to that of {last}.",
    }[origin.kind]
