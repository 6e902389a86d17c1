"""`watch(backend="wandb")`: keeps the panels of one model in a W&B run up to date."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.schema import Finished, Frame, Record
from torchgraph_explorer.sinks import Sink, SinkContext
from torchgraph_wandb.late import LateSink
from torchgraph_wandb.panels import log_chart, log_page, show, show_at_once
from torchgraph_wandb.presets import PresetError, PresetOwner, expected, publish_chart, remembered
from torchgraph_wandb.progress import First, Progress, Ready, Uploads
from torchgraph_wandb.resuming import steps_key
from torchgraph_wandb.schedule import is_page_due
from torchgraph_wandb.snapshots import Maker, Snapshot
from torchgraph_wandb.ticks import Ticks

SECONDS_TO_UPLOAD = 5.5
"""After which W&B's client has uploaded a file: it waits for five, to upload several at once."""

SECONDS_TO_LEAVE = 4.0
"""That the end of a run waits for W&B to come back from what is being logged."""

SECONDS_TO_END = (15.0, 5.0)
"""That it waits for the last snapshot, and for a second try. The recorder waits 30 s for the sink."""

SECONDS_TO_PUBLISH = 4.0
"""That it waits for the chart to be published, which was begun when the run was."""


class Finishing(Protocol):
    """As a `Watcher`."""

    def finish(self) -> None:
        """Write what is at hand."""


def open_sink(context: SinkContext) -> Sink:
    """The sink for `context`, whose `wandb_run` is the W&B run, or None for the active one, or the first to become so.

    Raises:
        ImportError: wandb is not installed.
        OptionError: The run is over, or what was given is none.
    """
    import wandb

    run = context.wandb_run if context.wandb_run is not None else wandb.run
    if run is None:
        return LateSink(context, open_sink, _before_end)
    if not all(hasattr(run, part) for part in ("log", "id", "finish")):
        raise OptionError(f"run={run!r} is no W&B run. Pass what wandb.init() returned, or the name of a run folder.")
    if _is_over(run):
        raise OptionError(
            f"The W&B run {run.id} is finished; nothing can be logged to it. Begin another one with wandb.init(), and "
            f"pass it as run=, or leave run= out: the active run is taken."
        )
    return WandbSink(context, run)


class WandbSink:
    """Logs the chart's table as `schedule` says, the page more rarely, and both at the end.

    It does so in a thread of its own, so that what is recorded gets there also while no further step comes.

    Attributes:
        introduction: Where it is to be seen.
    """

    def __init__(self, context: SinkContext, run: Any) -> None:
        self._run, self._model = run, context.model_name
        self._upload = context.run_dir if context.upload_record else None
        self._maker = Maker(context.run_dir, context.model_name)
        self._preset = Preset(run)
        self._progress = Progress()
        self._uploads = Uploads()
        self._ready: Ready | None = None
        self._first: First | None = First()
        self._is_charted = False
        self._ticks = Ticks(self._keep_up, self._fail)
        self.introduction = f"W&B: {run.url}" if getattr(run, "url", None) else f"W&B run {run.id}"

    def watched_by(self, watcher: Finishing) -> None:
        """End the watch before the W&B run ends: at its `finish()`, and at exit."""
        _before_end(self._run, watcher)

    def write(self, record: Record) -> None:
        """Take the next record."""
        if _is_disabled(self._run):
            return
        if isinstance(record, Frame):
            self._progress = self._progress.after(record.step, now=time.monotonic())
            self._ticks.begin()
        elif isinstance(record, Finished) and self._progress.frames:
            if record.steps is not None:
                self._progress = replace(self._progress, steps=record.steps)
            self._end()

    def close(self) -> None:
        """Nothing more will be logged."""
        self._ticks.end(SECONDS_TO_LEAVE)
        self._maker.stop()

    def _keep_up(self) -> None:
        """Log a snapshot that is ready, or begin one that is due. Waits for no training and no snapshot."""
        now, progress = time.monotonic(), self._progress
        elapsed = now - progress.began
        if _is_over(self._run):
            self._maker.stop()
            return
        if (snapshot := self._maker.take()) is not None:
            self._ready = Ready(snapshot, now)
        if self._first is not None and self._first.is_due(now):
            first, self._first = self._first, None
            show_at_once(self._run, first.shown)
        elif self._ready is not None:
            # Which preset draws the table is said only with the table, so the first one waits for that a little.
            if not self._preset.is_coming or now - self._ready.since >= SECONDS_TO_PUBLISH:
                ready, self._ready = self._ready, None
                self._log(ready.snapshot)
        elif not self._maker.is_busy and progress.frames > self._uploads.frames and self._uploads.is_due(elapsed):
            self._maker.try_to_begin(page=is_page_due(elapsed, self._uploads.pages), aside=True)
            self._uploads = replace(self._uploads, last=elapsed, frames=progress.frames)

    def _fail(self, fault: Exception) -> None:
        """Something in W&B raises: its panels are left as they are until the end, where it is tried once more."""
        warn(f"{self._model}: the W&B chart is not kept up to date any more ({reason(fault)}).")

    def _end(self) -> None:
        """Log all there is."""
        if not self._ticks.end(SECONDS_TO_LEAVE):
            info(f"{self._model}: W&B does not answer; its chart lacks the last steps, which are in the run's folder.")
            return
        if _is_over(self._run):
            info(f"{self._model}: the W&B run had ended; it lacks the last steps, which are in the run's folder.")
            return
        self._maker.stop()
        snapshot = self._last_snapshot()
        if snapshot is None:
            info(f"{self._model}: the W&B chart lacks the last steps: {self._maker.fault}. The run's folder has them.")
        else:
            self._preset.wait(SECONDS_TO_PUBLISH)
            self._is_charted = False  # a report tells what the chart said when it was last logged
            self._log(snapshot)
        if self._upload is not None:
            from torchgraph_wandb.records_online import upload_record

            upload_record(self._run, self._upload)

    def _last_snapshot(self) -> Snapshot | None:
        """Made anew, a second time in a simpler way if it fails."""
        for seconds in SECONDS_TO_END:
            self._maker.try_to_begin(page=True)
            if (snapshot := self._maker.take(patience=seconds)) is not None:
                return snapshot
        return None

    def _log(self, snapshot: Snapshot) -> None:
        preset = self._preset.chart
        shown = dict(log_chart(self._run, self._model, snapshot.rows, preset=preset if not self._is_charted else None))
        self._is_charted = self._is_charted or preset is not None
        if snapshot.page is not None:
            shown |= log_page(self._run, self._model, snapshot.page)
        self._uploads = self._uploads.after(snapshot)
        shown[steps_key(self._model)] = self._progress.steps
        show(self._run, shown)
        # The client itself tells the server within 15 seconds, so later ones do not need it.
        is_first = self._first is not None and not self._first.shown and not _is_offline(self._run)
        self._first = First(shown, time.monotonic() + SECONDS_TO_UPLOAD) if is_first else None


class Preset:
    """The chart's preset, published in the background when it is not known to be there.

    Attributes:
        chart: Its id; None while it is not there, and if it will never be.
    """

    def __init__(self, run: Any) -> None:
        self.chart: str | None = None
        self._thread: threading.Thread | None = None
        if _is_disabled(run):
            return
        place = PresetOwner(str(run.settings.base_url).rstrip("/"), str(run.entity or ""))
        act = partial(self._settle, place, is_offline=_is_offline(run))
        thread = threading.Thread(target=act, name="torchgraph-wandb", daemon=True)
        with suppress(RuntimeError):  # no thread can be started: then nothing is recorded, as is said
            thread.start()
            self._thread = thread

    @property
    def is_coming(self) -> bool:
        """It is still being published."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Come back when it is known whether it is there, or after so many seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _settle(self, place: PresetOwner, *, is_offline: bool) -> None:
        """In a thread of its own: what was published is remembered in the user's home, which may not answer."""
        try:
            self._look_up(place, is_offline=is_offline)
            if self.chart is None and not is_offline:
                self.chart = publish_chart(place)
        except PresetError as refusal:
            info(f"{refusal}. The page, which is logged too, shows the same until then.")
        except Exception as fault:
            info(f"the W&B chart cannot be published ({reason(fault)}). The page, which is logged too, shows the same.")

    def _look_up(self, place: PresetOwner, *, is_offline: bool) -> None:
        known = remembered(place) if place.entity else None
        self.chart = expected(place) if is_offline and place.entity else known
        if is_offline:
            _advise_offline(place, known=known is not None)


def _advise_offline(place: PresetOwner, *, known: bool) -> None:
    if not place.entity:
        info(
            "W&B is offline and does not say whose the run will be, so that its chart cannot be named. The page will "
            "be there. For the chart too, pass wandb.init(entity=...)."
        )
    elif not known:
        info(
            f"W&B is offline. Before `wandb sync`, publish the chart once: "
            f"torchgraph wandb publish --entity {place.entity}"
        )


def _before_end(run: Any, watcher: Finishing) -> None:
    """Have `watcher` finished before `run` is.

    wandb offers no public way to be told. The hook is the one that its own integrations use; at exit ours comes first
    anyway, being registered later.
    """
    finish = _finisher(weakref.ref(watcher))
    atexit.register(finish)
    hooks = getattr(run, "_teardown_hooks", None)
    if hooks is None:
        return
    try:
        from wandb.sdk.wandb_run import TeardownHook, TeardownStage
    except ImportError:
        return
    hooks.append(TeardownHook(finish, TeardownStage.EARLY))


def _finisher(watcher: weakref.ref[Finishing]) -> Callable[[], None]:
    def finish() -> None:
        atexit.unregister(finish)
        if (still := watcher()) is not None:
            still.finish()

    return finish


def _is_over(run: Any) -> bool:
    return bool(getattr(run, "_is_finished", False))


def _is_disabled(run: Any) -> bool:
    return bool(getattr(run, "disabled", False))


def _is_offline(run: Any) -> bool:
    return bool(getattr(run, "offline", False))
