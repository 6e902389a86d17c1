"""Takes what the training thread measured and writes it to the sinks, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer import timeouts
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.gaps import Missing
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.schema import Finished, Frame, ModuleGraph, Record, Series, Session
from torchgraph_explorer.sinks import Sink

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"

WAITING = 32
"""Steps that may wait for the thread; when there are more, the training waits for it."""

MOST_SECONDS = timeouts.SECONDS
"""How long the training waits for the thread in one go. Then the step is dropped, and counted."""

IDLE_SECONDS = 0.25
"""How often the thread looks whether a step has come to rest."""

_LOOK_SECONDS = 0.005
"""How often the training looks whether there is room again."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured in one step.

    Attributes:
        step: Its number.
        time: Seconds since the epoch.
        clock: The second time axis' value; None without.
        gradient_scale: The loss scale that was taken out of the gradients; None without.
        graph: The module graph in force, if known.
        rows: The row of each series among those of `measured`, counted from the end if it is negative.
        measured: Gives statistics, `[rows, len(STATISTICS)]` float32, and histograms. Some rows may be nobody's.
    """

    step: int
    time: float
    clock: float | None
    gradient_scale: float | None
    graph: ModuleGraph | None
    rows: Mapping[SeriesKey, int]
    measured: Callable[[], tuple[npt.NDArray[np.float32], Histograms]]


class WriterThread:
    """The thread between a watched model and its sinks. A sink that fails is left out from then on, said once.

    What is shared between the threads can be used at any moment, also by a signal handler or a finalizer that
    interrupts one of them in the middle of it: a `SimpleQueue`, and a lock that a thread may take twice.
    """

    def __init__(
        self,
        session: Session,
        sinks: Sequence[Sink],
        *,
        now: Callable[[], float],
        when_idle: Callable[[], None],
        steps: Callable[[], int] | None = None,
    ) -> None:
        """Write `session` and what follows to `sinks`; call `when_idle` when nothing has come for a moment.

        `steps` says, at the end, how many steps were counted.
        """
        self._sinks = list(sinks)
        self._now, self._when_idle, self._steps = now, when_idle, steps
        self._queue: queue.SimpleQueue[Step | None] = queue.SimpleQueue()
        self._own: deque[Step] = deque()
        self._dropped = Missing()
        self._is_slow = False
        self._series: dict[SeriesKey, int] = {}
        self._graphs: dict[int, ModuleGraph] = {}
        self._notes: list[str] = []
        self._lock = threading.RLock()
        self._warned: set[str] = set()
        self._unsaid: list[str] | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(session,), name="torchgraph-recorder", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as fault:
            self._warn(f"Nothing is recorded, since no thread can be started ({reason(fault)}). Training goes on.")

    @property
    def is_alive(self) -> bool:
        """What is put is written. Not so where no thread can be started, and in a process forked from this one."""
        return self._thread.is_alive()

    def has_begun(self, until: float) -> bool:
        """Whether every sink has taken the session, by the moment `until` of the monotonic clock.

        If not, the training has waited as long as it does: steps are dropped rather than waited for.
        """
        has_begun = not self.is_alive or self._began.wait(max(0.0, until - monotonic()))
        self._is_slow = self._is_slow or not has_begun
        return has_begun

    def put(self, step: Step) -> None:
        """Hand over a step. Waits a while if too much is waiting already, then drops it."""
        if threading.current_thread() is self._thread:
            # It holds a lock that the training waits for, so nothing is written now. Nor does it wait for itself.
            self._own.append(step)
        elif self.is_alive:
            self._put_or_drop(step)

    def _put_or_drop(self, step: Step) -> None:
        if self._has_room():
            self._queue.put(step)
            self._is_slow = False
            self._dropped.end()
            return
        self._dropped.add(step.step)
        if not self._is_slow and self._began.is_set():  # else it was said that the store does not answer
            self._warn(
                f"Some steps are not recorded: writing is slower than the training, which waited {MOST_SECONDS:g} s. "
                f"Log less often, or to a faster disk."
            )
        self._is_slow = True  # do not wait again and again; the next one that fits ends it

    def _has_room(self) -> bool:
        is_waited_for = self._began.is_set() and not self._is_slow
        until = monotonic() + (MOST_SECONDS if is_waited_for else 0.0)
        while self._queue.qsize() >= WAITING:
            if monotonic() >= until:
                return False
            sleep(_LOOK_SECONDS)
        return True

    def note(self, sentence: str) -> None:
        """Warn of what is not recorded, once, and keep it for the end of the record."""
        with self._lock:
            if sentence in self._notes:
                return
            self._notes.append(sentence)
        self._warn(sentence)

    def _warn(self, sentence: str) -> None:
        """Warn of it, once. No lock is held meanwhile: what shows warnings may be the user's and take its own."""
        with self._lock:
            if sentence in self._warned:
                return
            self._warned.add(sentence)
        if self._unsaid is not None and threading.current_thread() is self._thread:
            self._unsaid.append(sentence)
        else:
            warn(sentence)

    def end(self) -> None:
        """No more steps will come. What was handed over is written, the record finished and the sinks closed."""
        if self.is_alive:
            self._queue.put(None)

    def wait(self, until: float) -> None:
        """Come back when that is done, or at the moment `until` of the monotonic clock, which is said."""
        if not self.is_alive or threading.current_thread() is self._thread:
            return
        self._thread.join(max(0.0, until - monotonic()))
        if self._thread.is_alive():
            self._warn(
                f"The end of the record is missing: writing did not come to an end within "
                f"{timeouts.SECONDS_TO_END:g} s."
            )

    def _run(self, session: Session) -> None:
        try:
            self._write(session)
            self._began.set()
            while (item := self._next()) is not None:
                self._take(item)
        except Exception as fault:
            self.note(f"The recorder failed, and nothing more is recorded: {reason(fault)}.")
        finally:
            self._began.set()
        try:
            self._end()
        except Exception as fault:
            warn(f"The end of the record is missing: {reason(fault)}.")

    def _end(self) -> None:
        if self._dropped:
            self._notes.append(f"{self._dropped} were dropped, since writing was slower than the training.")
        self._write(Finished(self._now(), tuple(self._notes), self._steps() if self._steps is not None else None))
        for sink in list(self._sinks):
            self._guarded(sink, sink.close)

    def _next(self) -> Step | None:
        """What comes next; None at the end."""
        while True:
            if self._own:
                return self._own.popleft()
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._rest()

    def _rest(self) -> None:
        """Nothing has come for a moment. What is to be said of it is said when its locks are free again."""
        self._unsaid = []
        try:
            self._when_idle()
        finally:
            unsaid, self._unsaid = self._unsaid, None
            for sentence in unsaid:
                warn(sentence)
        for sink in list(self._sinks):
            if (when_idle := getattr(sink, "when_idle", None)) is not None:
                self._guarded(sink, when_idle)

    def _take(self, step: Step) -> None:
        try:
            self._write_step(step)
        except Exception as fault:
            self.note(f"Step {step.step} is not recorded: {reason(fault)}.")

    def _write_step(self, step: Step) -> None:
        statistics, histograms = step.measured()
        if step.graph is not None and self._graphs.get(step.graph.id) is not step.graph:
            self._write(step.graph)
            self._graphs[step.graph.id] = step.graph
        self._name_series(step.rows)
        numbers = np.fromiter(step.rows.values(), np.int64, len(step.rows)) % max(len(statistics), 1)
        used, rows = np.unique(numbers, return_inverse=True)
        if len(used) != len(statistics):  # a later measurement of the same step replaced one
            statistics, histograms = statistics[used], histograms.of(used)
        series = np.fromiter((self._series[key] for key in step.rows), np.uint32, len(step.rows))
        graph = step.graph.id if step.graph is not None else None
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
            )
        )

    def _name_series(self, rows: Mapping[SeriesKey, int]) -> None:
        new = [key for key in rows if key not in self._series]
        self._series.update(zip(new, range(len(self._series), len(self._series) + len(new)), strict=True))
        if new:
            self._write(tuple(Series(self._series[key], *key) for key in new))  # type: ignore[arg-type]

    def _write(self, record: Record) -> None:
        for sink in list(self._sinks):
            self._guarded(sink, sink.write, record)

    def _guarded(self, sink: Sink, act: Callable[..., None], *arguments: Record) -> None:
        """Let a sink act; one that cannot is closed, if it can be, and left out from then on."""
        try:
            act(*arguments)
        except Exception as fault:
            self.note(f"{type(sink).__name__} failed and gets no more records: {reason(fault)}.")
            if sink in self._sinks:
                self._sinks.remove(sink)
                if act != sink.close:
                    with suppress(Exception):  # it was said that it failed
                        sink.close()
