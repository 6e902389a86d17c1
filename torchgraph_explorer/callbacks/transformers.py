"""A callback for Hugging Face's `Trainer`, which watches the model that it trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState
from transformers.training_args import TrainingArguments

from torchgraph_explorer.callbacks.watching import Watching
from torchgraph_explorer.training.watcher import Watcher


class WatchCallback(TrainerCallback):
    """Watches each `train`: `Trainer(callbacks=[WatchCallback(log_freq=50)])`.

    Steps go on at the trainer's `global_step` if a checkpoint is resumed. The `Trainer` tells its callbacks nothing of
    an exception: after one, the watch goes on until the next `train`, or until the process ends.

    What the trainer logs is recorded as scalars, by the names that its W&B callback gives them: `train/loss`,
    `eval/accuracy`.
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
        """The watcher of the current `train`, or of the last one; None before the first."""
        return self._watching.watcher

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """The training begins; a checkpoint is loaded."""
        self._watching.begin(others["model"], made=state.global_step)

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """The trainer logs."""
        logs: Mapping[str, object] = others.get("logs") or {}
        self._watching.log({_grouped(name): value for name, value in logs.items()})

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """The training is over."""
        self._watching.end()


def _grouped(name: str) -> str:
    return f"eval/{name.removeprefix('eval_')}" if name.startswith("eval_") else f"train/{name}"
