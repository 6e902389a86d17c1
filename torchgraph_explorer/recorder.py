"""Takes what the training thread measured and writes it to the sinks, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.buckets import Histograms
from torchgraph_explorer.records import Finished, Frame, ModuleGraph, Record, Series, Session
from torchgraph_explorer.say import warn
from torchgraph_explorer.sinks import Sink

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"

WAITING = 32
"""Steps that may wait for the thread; when there are more, the training waits for it."""

MOST_SECONDS = 5.0
"""How long the training waits for the thread in one go. Then the step is dropped, and counted."""

ENDS_WAITED = 6
"""How many times as long `close` waits for what is still to be written."""

IDLE_SECONDS = 0.25
"""How often the thread looks whether a step has come to rest."""


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured in one step.

    Attributes:
        step: Its number.
        time: Seconds since the epoch.
        clock: The second time axis' value; None without.
        gradient_scale: The loss scale that was taken out of the gradients; None without.
        graph: The module graph in force, if known.
        graph_is_new: It must be written before the frame.
        rows: The row of each series among those of `measured`, counted from the end if it is negative.
        measured: Gives statistics, `[rows, len(STATISTICS)]` float32, and histograms. Some rows may be nobody's.
    """

    step: int
    time: float
    clock: float | None
    gradient_scale: float | None
    graph: ModuleGraph | None
    graph_is_new: bool
    rows: Mapping[SeriesKey, int]
    measured: Callable[[], tuple[npt.NDArray[np.float32], Histograms]]


class Recorder:
    """The thread between a watched model and its sinks. A sink that fails is left out from then on, said once."""

    def __init__(
        self,
        session: Session,
        sinks: Sequence[Sink],
        *,
        now: Callable[[], float],
        when_idle: Callable[[], None],
    ) -> None:
        """Write `session` and what follows to `sinks`; call `when_idle` when nothing has come for a moment."""
        self._sinks = list(sinks)
        self._now, self._when_idle = now, when_idle
        self._queue: queue.Queue[Step | None] = queue.Queue(WAITING)
        self._dropped = 0
        self._is_slow = False
        self._series: dict[SeriesKey, int] = {}
        self._notes: list[str] = []
        self._warned: set[str] = set()
        self._write(session)
        self._thread = threading.Thread(target=self._run, name="torchgraph-recorder", daemon=True)
        self._thread.start()

    def put(self, step: Step) -> None:
        """Hand over a step. Waits a while if too much is waiting already, then drops it."""
        if threading.current_thread() is self._thread:  # which would wait for itself
            self._take(step)
        elif self._thread.is_alive():
            self._put_or_drop(step)

    def _put_or_drop(self, step: Step) -> None:
        try:
            self._queue.put(step, block=not self._is_slow, timeout=MOST_SECONDS)
            self._is_slow = False
        except queue.Full:
            self._is_slow = True  # do not wait again and again; the next one that fits ends it
            self._dropped += 1
            self._warn(
                f"Some steps are not recorded: writing is slower than the training, which waited {MOST_SECONDS:g} s. "
                f"Log less often, or to a faster disk."
            )

    def note(self, sentence: str) -> None:
        """Warn of what is not recorded, once, and keep it for the end of the record."""
        if sentence not in self._notes:
            self._notes.append(sentence)
            self._warn(sentence)

    def _warn(self, sentence: str) -> None:
        """Warn of it, once."""
        if sentence in self._warned:
            return
        self._warned.add(sentence)
        warn(sentence)

    def close(self) -> None:
        """Write all that was handed over, finish the record and close the sinks. May be called again."""
        if not self._thread.is_alive():
            return
        patience = ENDS_WAITED * MOST_SECONDS
        with suppress(queue.Full):  # then the thread is still alive below
            self._queue.put(None, timeout=patience)
            if threading.current_thread() is not self._thread:
                self._thread.join(patience)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._warn(f"The end of the record is missing: writing did not come to an end within {patience:g} s.")

    def _run(self) -> None:
        try:
            while (item := self._next()) is not None:
                self._take(item)
        except Exception as fault:
            self.note(f"The recorder failed, and nothing more is recorded: {_told(fault)}.")
        try:
            self._end()
        except Exception as fault:
            warn(f"The end of the record is missing: {_told(fault)}.")

    def _end(self) -> None:
        if self._dropped:
            self._notes.append(f"{self._dropped} steps were dropped, since writing was slower than the training.")
        self._write(Finished(self._now(), tuple(self._notes)))
        for sink in list(self._sinks):
            self._guarded(sink, sink.close)

    def _next(self) -> Step | None:
        """What comes next; None at the end."""
        while True:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self._when_idle()

    def _take(self, step: Step) -> None:
        try:
            self._write_step(step)
        except Exception as fault:
            self.note(f"Step {step.step} is not recorded: {_told(fault)}.")

    def _write_step(self, step: Step) -> None:
        statistics, histograms = step.measured()
        if step.graph is not None and step.graph_is_new:
            self._write(step.graph)
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
            self.note(f"{type(sink).__name__} failed and gets no more records: {_told(fault)}.")
            if sink in self._sinks:
                self._sinks.remove(sink)
                if act != sink.close:
                    with suppress(Exception):  # it was said that it failed
                        sink.close()


def _told(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"
