"""The sink of a model that is watched before its W&B run begins. A trainer's logger may begin the run much later."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from torchgraph_explorer.console import info
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import Finished, Frame, Record, Session
from torchgraph_explorer.sinks import Sink, SinkContext

OpenSink: TypeAlias = "Callable[[SinkContext], Sink]"
BeforeEnd: TypeAlias = "Callable[[Any, Any], object]"
"""Arranges that a watcher is finished before a W&B run is."""


def active_run() -> Any:
    """The W&B run of this process, or None. A dictionary look-up: it is called at every training step."""
    return getattr(sys.modules.get("wandb"), "run", None)


class DeferredSink:
    """Becomes the sink of the first W&B run that is active. Until then, records go to the run's folder only.

    Attributes:
        introduction: What it waits for.
    """

    def __init__(self, context: SinkContext, open_sink: OpenSink, before_end: BeforeEnd) -> None:
        self._context, self._open, self._before_end = context, open_sink, before_end
        self._watcher: Callable[[], Any] = lambda: None
        self._run: Any = None
        self._sink: Sink | None = None
        self._kept: dict[type, Record] = {}
        self._found: list[Sequence[Finding]] = []
        self.introduction = "W&B: no run is active. The panels will be in the first run that begins (wandb.init())."

    def watched_by(self, watcher: Any) -> None:
        """Finish the watch before the W&B run ends, once there is a run."""
        self._watcher = weakref.ref(watcher)

    def before_step(self) -> None:
        """Look for a run. Called in the training's thread: the run may end before the writer's thread looks."""
        if self._run is None and (run := active_run()) is not None:
            self._run = run
            if (watcher := self._watcher()) is not None:
                self._before_end(run, watcher)

    def write(self, record: Record) -> None:
        """Take the next record, and keep those that the sink of a later run needs."""
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
                f"{self._context.model_name}: no W&B run began while it was watched, so nothing was logged to W&B. "
                f"The record is in {self._context.run_dir}."
            )

    def found(self, findings: Sequence[Finding]) -> None:
        """Keep what is new in the training until there is a run to tell it to."""
        self._found.append(findings)
        self._tell()

    def _tell(self) -> None:
        if (found := getattr(self._sink, "found", None)) is not None:
            for findings in self._found:
                found(findings)
            self._found.clear()

    def close(self) -> None:
        """No more records will come."""
        if self._sink is not None:
            self._sink.close()

    def _begin(self) -> None:
        self._sink = self._open(replace(self._context, wandb_run=self._run))
        for record in self._kept.values():
            self._sink.write(record)
        self._kept.clear()
        self._tell()
