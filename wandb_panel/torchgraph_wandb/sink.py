"""`watch(backend="wandb")`: keeps the panels of one model in a W&B run up to date."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from torchgraph_explorer.console import info, reason, warn
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import Finished, Frame, Record
from torchgraph_explorer.sinks import Sink, SinkContext
from torchgraph_wandb.alerts import Alerts
from torchgraph_wandb.deferred_start import DeferredSink
from torchgraph_wandb.panels import log_chart, log_page, update_summary, update_summary_now
from torchgraph_wandb.periodic_thread import PeriodicThread
from torchgraph_wandb.presets import PresetError, PresetOwner, preset_id, publish_chart, published_preset
from torchgraph_wandb.resuming import steps_key
from torchgraph_wandb.snapshots import Snapshot, SnapshotMaker
from torchgraph_wandb.upload_progress import FirstSummary, PendingSnapshot, RecordProgress, UploadProgress
from torchgraph_wandb.upload_schedule import is_page_due

SECONDS_TO_UPLOAD = 5.5
"""How long W&B's client takes to upload a file: it waits for five seconds, to upload several together."""

SECONDS_TO_LEAVE = 4.0
"""How long the end of a run waits for a call of W&B that is in progress."""

SECONDS_TO_END = (15.0, 5.0)
"""How long it waits for the last snapshot, and for a second try. The writer's thread waits 30 s for the sink."""

SECONDS_TO_PUBLISH = 4.0
"""How long it waits until the chart is published, which begins with the run."""


class SupportsFinish(Protocol):
    """A `Watcher`, as far as it is needed here."""

    def finish(self) -> None:
        """Write what is recorded, and end the watch."""


def open_sink(context: SinkContext) -> Sink:
    """The sink for `context`.

    `context.wandb_run` is the W&B run; None means the active run, or the first one that becomes active.

    Raises:
        ImportError: wandb is not installed.
        OptionError: The run is finished, or the value is not a W&B run.
    """
    import wandb

    run = context.wandb_run if context.wandb_run is not None else wandb.run
    if run is None:
        return DeferredSink(context, open_sink, _before_end)
    if not all(hasattr(run, part) for part in ("log", "id", "finish")):
        raise OptionError(
            f"run={run!r} is not a W&B run. Pass what wandb.init() returned, or the name of a run folder."
        )
    if _is_over(run):
        raise OptionError(
            f"The W&B run {run.id} is finished; nothing can be logged to it. Begin another one with wandb.init(), and "
            f"pass it as run=, or leave run= out: the active run is taken."
        )
    return WandbSink(context, run)


class WandbSink:
    """Logs the chart's table as `upload_schedule` says, the page more rarely, and both at the end.

    It logs in a thread of its own, so that the last steps are logged even if no further step comes.

    Attributes:
        introduction: Where the panels are.
    """

    def __init__(self, context: SinkContext, run: Any) -> None:
        self._run, self._model = run, context.model_name
        self._upload = context.run_dir if context.upload_record else None
        self._maker = SnapshotMaker(context.run_dir, context.model_name, tensor_megabytes=context.tensor_megabytes)
        self._preset = PresetPublisher(run)
        self._alerts = Alerts(context.model_name)
        self._progress = RecordProgress()
        self._uploads = UploadProgress()
        self._ready: PendingSnapshot | None = None
        self._first: FirstSummary | None = FirstSummary()
        self._is_charted = False
        self._updates = PeriodicThread(self._update, self._report_fault)
        self.introduction = f"W&B: {run.url}" if getattr(run, "url", None) else f"W&B run {run.id}"

    def watched_by(self, watcher: SupportsFinish) -> None:
        """End the watch before the W&B run ends: at its `finish()`, and at exit."""
        _before_end(self._run, watcher)

    def write(self, record: Record) -> None:
        """Take the next record."""
        if _is_disabled(self._run):
            return
        if isinstance(record, Frame):
            self._progress = self._progress.after(record.step, now=time.monotonic())
            self._updates.begin()
        elif isinstance(record, Finished) and self._progress.frames:
            if record.steps is not None:
                self._progress = replace(self._progress, steps=record.steps)
            self._end()

    def found(self, findings: Sequence[Finding]) -> None:
        """Alert of the errors among what is new in the training."""
        self._alerts.add(findings)

    def close(self) -> None:
        """Nothing more will be logged."""
        self._updates.end(SECONDS_TO_LEAVE)
        self._maker.stop()

    def _update(self) -> None:
        """Log a snapshot that is ready, or begin one that is due. Waits neither for the training nor for a snapshot."""
        now, progress = time.monotonic(), self._progress
        elapsed = now - progress.began
        if _is_over(self._run):
            self._maker.stop()
            return
        self._alerts.send(self._run)
        if (snapshot := self._maker.take()) is not None:
            self._ready = PendingSnapshot(snapshot, now)
        if self._first is not None and self._first.is_due(now):
            first, self._first = self._first, None
            update_summary_now(self._run, first.shown)
        elif self._ready is not None:
            # The preset is logged only together with the table, so the first table waits a little for the preset.
            if not self._preset.is_coming or now - self._ready.since >= SECONDS_TO_PUBLISH:
                ready, self._ready = self._ready, None
                self._log(ready.snapshot)
        elif not self._maker.is_busy and progress.frames > self._uploads.frames and self._uploads.is_due(elapsed):
            self._maker.try_to_begin(page=is_page_due(elapsed, self._uploads.pages), low_priority=True)
            self._uploads = replace(self._uploads, last=elapsed, frames=progress.frames)

    def _report_fault(self, fault: Exception) -> None:
        """W&B raised: the panels stay as they are until the end, where they are updated once more."""
        warn(f"{self._model}: the W&B chart is no longer kept up to date ({reason(fault)}).")

    def _end(self) -> None:
        """Log everything that is recorded."""
        if not self._updates.end(SECONDS_TO_LEAVE):
            info(f"{self._model}: W&B does not answer; its chart lacks the last steps, which are in the run's folder.")
            return
        if _is_over(self._run):
            info(f"{self._model}: the W&B run had ended; it lacks the last steps, which are in the run's folder.")
            return
        self._alerts.send(self._run)
        self._maker.stop()
        snapshot = self._last_snapshot()
        if snapshot is None:
            info(f"{self._model}: the W&B chart lacks the last steps: {self._maker.fault}. The run's folder has them.")
        else:
            self._preset.wait(SECONDS_TO_PUBLISH)
            self._is_charted = False  # a report shows the description that was last logged with the chart
            self._log(snapshot)
        if self._upload is not None:
            from torchgraph_wandb.record_artifact import upload_record

            upload_record(self._run, self._upload)

    def _last_snapshot(self) -> Snapshot | None:
        """A snapshot of the whole record; after a failure, a second try in a simpler way."""
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
        update_summary(self._run, shown)
        # Later ones do not need this: the client sends the summary within 15 seconds.
        is_first = self._first is not None and not self._first.shown and not _is_offline(self._run)
        self._first = FirstSummary(shown, time.monotonic() + SECONDS_TO_UPLOAD) if is_first else None


class PresetPublisher:
    """Publishes the chart's preset in the background, unless it is known to be published.

    Attributes:
        chart: The preset's id; None while it is not published, or if it cannot be.
    """

    def __init__(self, run: Any) -> None:
        self.chart: str | None = None
        self._thread: threading.Thread | None = None
        if _is_disabled(run):
            return
        owner = PresetOwner(str(run.settings.base_url).rstrip("/"), str(run.entity or ""))
        act = partial(self._find_or_publish, owner, is_offline=_is_offline(run))
        thread = threading.Thread(target=act, name="torchgraph-wandb", daemon=True)
        with suppress(RuntimeError):  # no thread can be started: then nothing is recorded, and a warning says so
            thread.start()
            self._thread = thread

    @property
    def is_coming(self) -> bool:
        """Whether the preset is still being published."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait until it is published or refused, at most `seconds`."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _find_or_publish(self, owner: PresetOwner, *, is_offline: bool) -> None:
        """Runs in a thread of its own: published presets are listed in the user's home, which may not answer."""
        try:
            self._look_up(owner, is_offline=is_offline)
            if self.chart is None and not is_offline:
                self.chart = publish_chart(owner)
        except PresetError as refusal:
            info(f"{refusal}. The page, which is logged too, shows the same until then.")
        except Exception as fault:
            info(f"the W&B chart cannot be published ({reason(fault)}). The page, which is logged too, shows the same.")

    def _look_up(self, owner: PresetOwner, *, is_offline: bool) -> None:
        known = published_preset(owner) if owner.entity else None
        self.chart = preset_id(owner) if is_offline and owner.entity else known
        if is_offline:
            _advise_offline(owner, known=known is not None)


def _advise_offline(owner: PresetOwner, *, known: bool) -> None:
    if not owner.entity:
        info(
            "W&B is offline and does not say which entity the run will belong to, so its chart is missing. The page is "
            "logged. To log the chart, too, pass wandb.init(entity=...)."
        )
    elif not known:
        info(
            f"W&B is offline. Before `wandb sync`, publish the chart once: "
            f"torchgraph wandb publish --entity {owner.entity}"
        )


def _before_end(run: Any, watcher: SupportsFinish) -> None:
    """Arrange that `watcher` is finished before `run` is.

    wandb has no public callback for this. The hook is the one that its own integrations use. At exit ours runs first
    anyway, because it is registered later.
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


def _finisher(watcher: weakref.ref[SupportsFinish]) -> Callable[[], None]:
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
