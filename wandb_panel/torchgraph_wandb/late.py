"""The sink of a model that is watched before its W&B run begins, which a trainer's logger may do much later."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from torchgraph_explorer.console import info
from torchgraph_explorer.schema import Finished, Frame, Record, Session
from torchgraph_explorer.sinks import Sink, SinkContext

OpenSink: TypeAlias = "Callable[[SinkContext], Sink]"
BeforeEnd: TypeAlias = "Callable[[Any, Any], object]"
"""Has a watcher finished before a W&B run is."""


def active_run() -> Any:
    """The W&B run of this process; None without one. A look-up in a dict, for every step of a training."""
    return getattr(sys.modules.get("wandb"), "run", None)


class LateSink:
    """Becomes the sink for the first W&B run that is active. Until then the records are in the run's folder alone.

    Attributes:
        introduction: What it waits for.
    """

    def __init__(self, context: SinkContext, open_sink: OpenSink, before_end: BeforeEnd) -> None:
        self._context, self._open, self._before_end = context, open_sink, before_end
        self._watcher: Callable[[], Any] = lambda: None
        self._run: Any = None
        self._sink: Sink | None = None
        self._kept: dict[type, Record] = {}
        self.introduction = "W&B: no run is active. The panels will be in the first one that begins (wandb.init())."

    def watched_by(self, watcher: Any) -> None:
        """End the watch before the W&B run ends, once there is one."""
        self._watcher = weakref.ref(watcher)

    def before_step(self) -> None:
        """Look for a run. In the training's thread: the run may end before the recorder's thread has a look."""
        if self._run is None and (run := active_run()) is not None:
            self._run = run
            if (watcher := self._watcher()) is not None:
                self._before_end(run, watcher)

    def write(self, record: Record) -> None:
        """Take the next record. What a sink of a run that has begun must know of those before it is kept."""
        if self._sink is not None:
            self._sink.write(record)
            return
        if isinstance(record, (Session, Frame, Finished)):
            self._kept[type(record)] = record
        self.before_step()
        if self._run is not None:
            self._begin()
        elif isinstance(record, Finished) and Frame in self._kept:
            info(
                f"{self._context.model_name}: no W&B run began while it was watched, so that nothing was logged there. "
                f"The record is in {self._context.run_dir}."
            )

    def close(self) -> None:
        """No more records will come."""
        if self._sink is not None:
            self._sink.close()

    def _begin(self) -> None:
        self._sink = self._open(replace(self._context, wandb_run=self._run))
        for record in self._kept.values():
            self._sink.write(record)
        self._kept.clear()
