"""A tracker for Hugging Face's `Accelerator`, which watches the model from `init_trackers` to `end_training`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelerate.tracking import GeneralTracker
from torch import nn

from torchgraph_explorer.callbacks.watching import Watching
from torchgraph_explorer.training.watcher import Watcher


class WatchTracker(GeneralTracker):  # type: ignore[misc]  # accelerate ships no annotations
    """Watches a model: `Accelerator(log_with=WatchTracker(model, log_freq=50))`.

    What the loop logs with `accelerator.log` is recorded as scalars. Each process has one: with several, their records
    are merged, as `watch` does.
    """

    name = "torchgraph"
    requires_logging_directory = False
    main_process_only = False

    def __init__(self, model: nn.Module, **options: Any) -> None:
        """Watch nothing so far.

        Args:
            model: The model, before or after `accelerator.prepare`.
            options: As for `watch`.

        Raises:
            TypeError: `watch` has no such option.
        """
        super().__init__()
        self._model = model
        self._watching = Watching(options)

    @property
    def tracker(self) -> Watcher | None:
        """The watcher; None before `init_trackers`."""
        return self._watching.watcher

    def start(self) -> None:
        """Called by `init_trackers`."""
        self._watching.begin(self._model, made=0)

    def store_init_configuration(self, values: Mapping[str, object]) -> None:
        """Do nothing: the loop's settings are not recorded."""

    def log(self, values: Mapping[str, object], step: int | None = None, **_: Any) -> None:
        """Record the numbers that the loop logs, at the step that the training is in, whatever `step` says."""
        self._watching.log(values)

    def finish(self) -> None:
        """Called by `end_training`."""
        self._watching.end()
