"""Takes what was measured in each step and writes it to the sinks, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer import interrupts, timeouts
from torchgraph_explorer.capture.distributed import Shards
from torchgraph_explorer.capture.facts.pending import PendingFacts
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.gaps import Missing
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.schema import (
    STATISTICS,
    Finished,
    Frame,
    KeptArrays,
    KeptStep,
    ModuleGraph,
    Noted,
    NotFinite,
    Record,
    Series,
    Session,
    StepFacts,
    TensorGraph,
    TrainingFacts,
)
from torchgraph_explorer.sinks import Sink
from torchgraph_explorer.training.flight_recorder import Entry, FlightRecorder, Waiting
from torchgraph_explorer.training.nonfinite_steps import NonfiniteSteps
from torchgraph_explorer.training.rank_decisions import Decisions
from torchgraph_explorer.training.rank_parts import part_of
from torchgraph_explorer.training.scalar_log import NO_ROOM, ScalarLog

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"

WAITING = 32
"""Steps that may wait to be written; if there are more, the training waits for room."""

MOST_SECONDS = timeouts.SECONDS
"""How long the training waits for room. Then the step is dropped, and counted."""

IDLE_SECONDS = 0.25
"""How often the sinks' `when_idle` is called while no step comes."""

LOGGED_SECONDS = 1.0
"""How often what the training loop has logged is written."""

MOST_NOTES = 64
"""Notes that are written while the training goes on; those after them are written at the end."""

_POLL_SECONDS = 0.005
"""How often the training checks for room."""

_COUNT = STATISTICS.index("count")


class Kept(Waiting, Protocol):
    """The tensors of a step that are kept whole."""

    @property
    def most(self) -> int:
        """Bytes that the kept tensors of the run may take."""

    @property
    def is_flagged(self) -> bool:
        """Whether the step is kept only if something asks for it, which NaN and infinity do."""

    def arrays(self) -> KeptArrays:
        """What was kept. May have to wait for a device."""

    def done(self, used: int | None) -> None:
        """The step was written or dropped. The kept tensors of the run now take `used` bytes; None if not known."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured in one step.

    Attributes:
        step: Its number.
        time: Seconds since the epoch.
        clock: The second time axis' value; None without.
        gradient_scale: The loss scale that the gradients were divided by; None without.
        graph: The module graph in force, if known.
        rows: The row of each series among those of `measured`, counted from the end if it is negative.
        shards: How the parameters were divided among the ranks; empty if each rank records by itself.
        measured: Gives statistics, `[rows, len(STATISTICS)]` float32, histograms, and fingerprints, `[rows]` uint64.
            Some rows may have no series.
        facts: How the step ended, and which passes belonged to it; None if that is not known.
        kept: Its tensors that are kept whole; None if there are none.
        label: The kind of step that the training loop said it is; None without.
        tensors: The dependency graph of named tensors; None if it is not known.
        training: Gives what only the live training knew of it, from `measured`; None if that is not known.
        not_finite: What was not finite since the step before it; None if nothing was.
    """

    step: int
    time: float
    clock: float | None
    gradient_scale: float | None
    graph: ModuleGraph | None
    rows: Mapping[SeriesKey, int]
    shards: Shards
    measured: Callable[[], tuple[npt.NDArray[np.float32], Histograms, npt.NDArray[np.uint64]]]
    facts: StepFacts | None = None
    kept: Kept | None = None
    label: str | None = None
    tensors: TensorGraph | None = None
    training: PendingFacts | None = None
    not_finite: NotFinite | None = None


class _Asked(NamedTuple):
    """Tensors of a step are to be kept after the fact."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class _End:
    """No more steps come.

    Attributes:
        steps: How many were counted, logged or not.
        not_finite: What was not finite since the last recorded one; None if nothing was.
    """

    steps: int | None
    not_finite: NotFinite | None = None


class _Deferred(threading.local):
    """The warnings that this thread shows later; None where it shows them at once."""

    sentences: list[str] | None = None


class WriterThread:
    """The thread between a watched model and its sinks. A sink that fails is closed and left out, with a warning.

    What is shared between the threads can be used at any moment, also by a signal handler or a finalizer that
    interrupts one of them: a `SimpleQueue`, and a lock that a thread may take twice.

    Attributes:
        decides: What is asked for here is kept. Else the first rank decides.
    """

    def __init__(
        self,
        session: Session,
        sinks: Sequence[Sink],
        *,
        now: Callable[[], float],
        log: ScalarLog | None = None,
        decisions: Decisions | None = None,
    ) -> None:
        """Write `session`, and then the steps that are put, and what `log` has, to `sinks`.

        `now` gives the time, in seconds since the epoch; `decisions` are about the steps that ranks keep.
        """
        self._sinks = list(sinks)
        self._now = now
        self._log = log if log is not None else ScalarLog()
        self._logged_at = monotonic()
        self._queue: queue.SimpleQueue[Step | Noted | _Asked | _End] = queue.SimpleQueue()
        self._dropped, self._unwritten = Missing(), Missing()
        self._kinds_of_faults: set[type[Exception]] = set()
        self._is_slow = False
        self._series: dict[SeriesKey, int] = {}
        self._last: tuple[list[SeriesKey], npt.NDArray[np.uint32]] = ([], np.zeros(0, np.uint32))
        self._graphs: dict[int, ModuleGraph] = {}
        self._recorder = FlightRecorder(self.note, decisions)
        self.decides = decisions is None or decisions.is_first
        self._nonfinite = NonfiniteSteps()
        self._notes: list[str] = []
        self._lock = interrupts.lock()
        self._warned: set[str] = set()
        self._deferred = _Deferred()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(session,), name="torchgraph-writer", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as fault:
            self._warn(f"Nothing is recorded, since no thread can be started ({reason(fault)}). Training goes on.")

    @property
    def is_alive(self) -> bool:
        """Whether what is put is written. It is not if no thread can be started, and in a forked process."""
        return self._thread.is_alive()

    def has_begun(self, until: float) -> bool:
        """Whether every sink has taken the session, by the moment `until` of the monotonic clock.

        If not, the training does not wait again: steps without room are dropped at once.
        """
        has_begun = not self.is_alive or self._began.wait(max(0.0, until - monotonic()))
        self._is_slow = self._is_slow or not has_begun
        return has_begun

    @property
    def has_room(self) -> bool:
        """A step that is put now need not wait."""
        return self._queue.qsize() < WAITING

    def put(self, step: Step) -> None:
        """Hand over a step. If too many wait already, wait up to `MOST_SECONDS` for room, and then drop the step."""
        if threading.current_thread() is self._thread:
            self._queue.put(step)  # a finalizer ends the watch in this very thread, which cannot wait for itself
        elif self.is_alive:
            self._put_or_drop(step)

    def _put_or_drop(self, step: Step) -> None:
        if self._wait_for_room():
            self._queue.put(step)
            self._is_slow = False
            self._dropped.end()
            return
        self._dropped.add(step.step)
        if step.kept is not None:
            step.kept.done(None)
        if not self._is_slow and self._began.is_set():  # otherwise there was a warning that the store does not answer
            self._warn(
                f"Some steps are not recorded: writing is slower than the training, which waited {MOST_SECONDS:g} s. "
                f"Log less often, or to a faster disk."
            )
        self._is_slow = True  # do not wait again for each step, until one finds room

    def _wait_for_room(self) -> bool:
        is_waited_for = self._began.is_set() and not self._is_slow
        until = monotonic() + (MOST_SECONDS if is_waited_for else 0.0)
        while not self.has_room:
            if monotonic() >= until:
                return False
            sleep(_POLL_SECONDS)
        return True

    def note(self, sentence: str) -> None:
        """Warn of what is not recorded, once, and note it in the record, now and at its end."""
        with self._lock:
            if sentence in self._notes:
                return
            self._notes.append(sentence)
            if len(self._notes) <= MOST_NOTES:
                self._queue.put(Noted(self._now(), sentence))
        self._warn(sentence)

    def ask(self, step: int, reason: str) -> None:
        """Keep the tensors of `step` after the fact, and those of the steps before it, as far as they wait."""
        if self.is_alive and self.decides:
            self._queue.put(_Asked(step, reason))

    def _warn(self, sentence: str) -> None:
        """Warn, once. No lock is held meanwhile: what shows warnings may be the user's and take its own."""
        with self._lock:
            if sentence in self._warned:
                return
            self._warned.add(sentence)
        if (deferred := self._deferred.sentences) is not None:
            deferred.append(sentence)
        else:
            warn(sentence)

    @contextmanager
    def deferring_warnings(self) -> Iterator[None]:
        """A block at whose end this thread shows its warnings: within it, it holds a lock that the training needs.

        The function that shows warnings may be the user's, and wait for the training.
        """
        sentences: list[str] = []
        self._deferred.sentences = sentences
        try:
            yield
        finally:
            self._deferred.sentences = None
            for sentence in sentences:
                warn(sentence)

    def end(self, steps: int | None = None, not_finite: NotFinite | None = None) -> None:
        """Write what was put, finish the record and close the sinks; `steps`, logged or not, were counted.

        Since the last recorded one, `not_finite` was seen not to be finite.
        """
        if self.is_alive:
            self._queue.put(_End(steps, not_finite))

    def wait(self, until: float) -> None:
        """Wait until that is done, or until the moment `until` of the monotonic clock, with a warning."""
        if not self.is_alive or threading.current_thread() is self._thread:
            return
        self._thread.join(max(0.0, until - monotonic()))
        if self._thread.is_alive():
            self._warn(
                f"The end of the record is missing: writing did not finish within {timeouts.SECONDS_TO_END:g} s."
            )

    def _run(self, session: Session) -> None:
        end = _End(None)
        try:
            self._write(session)
            self._began.set()
            while not isinstance(item := self._next(), _End):
                self._take(item)
                self._write_logged()
            end = item
        except Exception as fault:
            self.note(f"The recorder failed, and nothing more is recorded: {reason(fault)}.")
        finally:
            self._began.set()
        try:
            self._end(end)
        except Exception as fault:
            warn(f"The end of the record is missing: {reason(fault)}.")

    def _write_logged(self, *, ends_at: int | None = None) -> None:
        """Write what was logged, if that is due; at the end, after `ends_at` steps, all of it."""
        if ends_at is None and monotonic() - self._logged_at < LOGGED_SECONDS:
            return
        self._logged_at = monotonic()
        try:
            while (logged := self._log.take(ends_at=ends_at)) is not None:
                self._write(logged)
        except Exception as fault:
            self.note(f"Some of what was logged is not recorded: {reason(fault)}.")

    def _end(self, end: _End) -> None:
        self._write_logged(ends_at=end.steps or 0)
        if self._log.dropped:
            self._notes.append(f"{self._log.dropped:,} logged values are missing: {NO_ROOM}.")
        if self._dropped:
            self._notes.append(f"{self._dropped} were dropped, since writing was slower than the training.")
        if self._unwritten:
            self._notes.append(f"{self._unwritten} could not be measured or written.")
        self._keep(self._recorder.end)
        self._recorder.close()
        self._write(Finished(self._now(), tuple(self._notes), end.steps, end.not_finite))
        for sink in list(self._sinks):
            self._guarded(sink, sink.close)

    def _next(self) -> Step | Noted | _Asked | _End:
        """Wait for the next step or note, or for the end. Meanwhile, the sinks may do what they have put off."""
        while True:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._write_logged()
                self._idle()

    def _idle(self) -> None:
        for sink in list(self._sinks):
            if (when_idle := getattr(sink, "when_idle", None)) is not None:
                self._guarded(sink, when_idle)

    def _take(self, item: Step | Noted | _Asked) -> None:
        if isinstance(item, Noted):
            self._write(item)
            return
        if isinstance(item, _Asked):
            self._keep(lambda: self._recorder.ask(*item))
            return
        try:
            self._write_step(item)
        except Exception as fault:
            self._leave_out(item.step, fault)
        else:
            self._unwritten.end()
        if (kept := item.kept) is not None:
            entry = Entry(item.step, kept, lambda: self._write_kept(item, kept))
            self._keep(lambda: self._recorder.take(entry))

    def _leave_out(self, step: int, fault: Exception) -> None:
        """Count a step that is not recorded. Only the first `fault` of its kind is noted: every step may fail."""
        self._unwritten.add(step)
        if type(fault) not in self._kinds_of_faults:
            self._kinds_of_faults.add(type(fault))
            self.note(f"Step {step} is not recorded: {reason(fault)}.")

    def _keep(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as fault:
            self.note(f"Tensors of some steps are not kept: {reason(fault)}.")

    def _write_step(self, step: Step) -> None:
        statistics, histograms, fingerprints = step.measured()
        training = self._training_facts(step, statistics)
        if step.graph is not None and self._graphs.get(step.graph.id) is not step.graph:
            self._write(step.graph)
            self._graphs[step.graph.id] = step.graph
        rows = np.fromiter(step.rows.values(), np.int64, len(step.rows)) % max(len(statistics), 1)
        is_used = np.zeros(len(statistics), dtype=np.bool_)
        is_used[rows] = True
        if not is_used.all():  # a later measurement replaced an earlier one of the same series
            used, rows = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[rows]
            statistics, histograms, fingerprints = statistics[used], histograms.of(used), fingerprints[used]
        series = self._named(step, statistics[rows, _COUNT])
        graph = step.graph.id if step.graph is not None else None
        if (kept := step.kept) is not None:
            self._keep(lambda: self._ask_if_nonfinite(step, kept, statistics[rows]))
        self._write(
            Frame(
                step=step.step,
                time=step.time,
                clock=step.clock,
                graph=graph,
                series=series,
                rows=rows.astype(np.uint32),
                statistics=statistics,
                histograms=histograms,
                gradient_scale=step.gradient_scale,
                facts=step.facts,
                label=step.label,
                training=training,
                fingerprints=fingerprints,
            )
        )

    def _ask_if_nonfinite(self, step: Step, kept: Kept, statistics: npt.NDArray[np.float32]) -> None:
        if (
            self.decides
            and kept.is_flagged
            and (found := self._nonfinite.found(tuple(step.rows), statistics)) is not None
        ):
            kept.ask(found)

    def _training_facts(self, step: Step, statistics: npt.NDArray[np.float32]) -> TrainingFacts | None:
        if step.training is None:
            return None
        try:
            return replace(step.training(statistics), not_finite=step.not_finite)
        except Exception as fault:
            self.note(f"Facts about the training of some steps are not recorded: {reason(fault)}.")
            return None

    def _write_kept(self, step: Step, kept: Kept) -> None:
        """Give the step's kept tensors to those sinks that take them."""
        try:
            used = None
            try:
                tensors = KeptStep(
                    step=step.step,
                    time=step.time,
                    gradient_scale=step.gradient_scale,
                    arrays=kept.arrays(),
                    label=step.label,
                    reasons=tuple(kept.reasons),
                    graph=step.tensors,
                )
                used = self._used_by_kept(tensors, kept.most)
            finally:
                kept.done(used)
        except Exception as fault:
            self.note(f"Tensors of some steps are not kept: {reason(fault)}.")

    def _used_by_kept(self, tensors: KeptStep, most: int) -> int | None:
        """The bytes of the run's kept tensors, once `tensors` are written; None if no sink takes them."""
        used: int | None = None
        for sink in self._sinks:
            if (keep := getattr(sink, "keep", None)) is not None:
                used = keep(tensors, most)
        return used

    def _named(self, step: Step, counts: npt.NDArray[np.float32]) -> npt.NDArray[np.uint32]:
        """The numbers of the step's series, which are usually those of the step before.

        Those that no step had before are written; `counts` are the elements that each of its series has.
        """
        keys = [*step.rows]
        known, numbers = self._last
        if keys == known:
            return numbers
        if new := [key for key in keys if key not in self._series]:
            self._series.update(zip(new, range(len(self._series), len(self._series) + len(new)), strict=True))
            elements = dict(zip(keys, counts.tolist(), strict=True))
            series = [Series(self._series[key], *key) for key in new]  # type: ignore[arg-type]
            self._write(tuple(replace(one, part=part_of(one, elements[one.key], step.shards)) for one in series))
        numbers = np.fromiter((self._series[key] for key in keys), np.uint32, len(keys))
        self._last = keys, numbers
        return numbers

    def _write(self, record: Record) -> None:
        for sink in list(self._sinks):
            self._guarded(sink, sink.write, record)

    def _guarded(self, sink: Sink, act: Callable[..., None], *arguments: Record) -> None:
        """Call a sink. If it raises, warn, close it and leave it out from then on."""
        try:
            act(*arguments)
        except Exception as fault:
            self.note(f"{type(sink).__name__} failed and gets no more records: {reason(fault)}.")
            if sink in self._sinks:
                self._sinks.remove(sink)
                if act != sink.close:
                    with suppress(Exception):  # there was a warning already
                        sink.close()
