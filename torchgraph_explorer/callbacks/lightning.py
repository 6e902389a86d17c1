"""A callback for Lightning's `Trainer`, which watches the LightningModule that it fits."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from torchgraph_explorer.callbacks.watching import Watching
from torchgraph_explorer.training.watcher import Watcher


class WatchCallback(pl.Callback):
    """Watches each `fit`: `Trainer(callbacks=[WatchCallback(log_freq=50)])`.

    Steps go on at the trainer's `global_step` if a checkpoint is resumed. The sanity check is before the watch.

    What the module logs with `self.log` is recorded as scalars, as often as the trainer's `log_every_n_steps` says, and
    after each evaluation and epoch.
    """

    def __init__(self, **options: Any) -> None:
        """Watch nothing so far.

        Args:
            options: As for `watch`.

        Raises:
            TypeError: `watch` has no such option.
        """
        self._watching = Watching(options)
        self._updates = 0

    @property
    def watcher(self) -> Watcher | None:
        """The watcher of the current `fit`, or of the last one; None before the first."""
        return self._watching.watcher

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The training begins; a checkpoint is loaded."""
        self._watching.begin(pl_module, made=0)  # watch() knows the global_step of a LightningModule

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        """A batch is over, and maybe the update that it belongs to."""
        before, self._updates = self._updates, trainer.global_step
        every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        if every and before != self._updates and self._updates % every == 0:  # 0: never, as in barebones mode
            self._watching.log_new(trainer.callback_metrics)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """An evaluation is over."""
        self._watching.log_new(trainer.callback_metrics)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """An epoch is over."""
        self._watching.log_new(trainer.callback_metrics)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The training is over."""
        self._watching.end()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """The training has failed, or was interrupted."""
        self._watching.fail(exception)
