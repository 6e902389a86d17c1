"""A callback for Lightning's `Trainer`, which watches the LightningModule that it fits."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl

from torchgraph_explorer.callbacks.watching import Watching
from torchgraph_explorer.training.watcher import Watcher


class WatchCallback(pl.Callback):
    """Watches each `fit`: `Trainer(callbacks=[WatchCallback(log_freq=50)])`.

    Steps go on at the trainer's `global_step` if a checkpoint is resumed. The sanity check is before the watch.
    """

    def __init__(self, **options: Any) -> None:
        """Watch nothing so far.

        Args:
            options: As for `watch`.

        Raises:
            TypeError: `watch` has no such option.
        """
        self._watching = Watching(options)

    @property
    def watcher(self) -> Watcher | None:
        """Of the `fit` that goes on, or of the last one; None before the first."""
        return self._watching.watcher

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The training begins; a checkpoint is loaded."""
        self._watching.begin(pl_module, made=0)  # watch() knows the global_step of a LightningModule

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """The training is over."""
        self._watching.end()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """The training has failed, or was interrupted."""
        self._watching.end()
