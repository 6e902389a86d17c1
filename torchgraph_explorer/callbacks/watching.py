"""The watch of a callback, from the beginning of a training to its end."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from numbers import Real
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.training.watch import watch
from torchgraph_explorer.training.watcher import Watcher


class Watching:
    """Watches one training after the other.

    Attributes:
        watcher: Of the training that goes on, or of the last one; None before the first.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        """Watch nothing so far. `options` are those of `watch`.

        Raises:
            TypeError: `watch` has no such option.
        """
        inspect.signature(watch).bind(None, **options)
        self.watcher: Watcher | None = None
        self._options = options
        self._latest: Mapping[str, object] = {}

    def begin(self, model: nn.Module, *, made: int) -> None:
        """Watch `model`, of which the trainer says that `made` updates were made before."""
        self.end()
        self.watcher = watch(model, **self._options)
        if made:
            self.watcher.step = max(self.watcher.step, made)

    def log(self, scalars: Mapping[str, object]) -> None:
        """Record those of `scalars` that are numbers: a trainer may log words, lists and pictures beside them."""
        if self.watcher is not None:
            self.watcher.log({name: value for name, value in scalars.items() if _is_number(value)})

    def log_new(self, scalars: Mapping[str, object]) -> None:
        """The same, except for those that are the same objects as the last time, where a trainer keeps the latest."""
        latest, self._latest = self._latest, dict(scalars)
        self.log({name: value for name, value in scalars.items() if value is not latest.get(name)})

    def fail(self, error: BaseException) -> None:
        """An exception has ended the training: keep what waits for that, and end."""
        if self.watcher is not None and isinstance(error, Exception):
            self.watcher.flag_exception(error)
        self.end()

    def end(self) -> None:
        """Remove everything from the model and write what was measured; the viewer stays. May be called again."""
        if self.watcher is not None:
            self.watcher.finish()


def _is_number(value: object) -> bool:
    """Whether `Watcher.log` takes it."""
    if isinstance(value, Tensor):
        return value.numel() == 1 and not value.is_complex()
    return isinstance(value, Real)
