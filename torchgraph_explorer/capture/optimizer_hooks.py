"""Hooks on an optimizer's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from torch.optim import Optimizer

from torchgraph_explorer.capture.safe_hook import Hook


class Updated(Protocol):
    """Takes an optimizer's steps."""

    def before_update(self) -> None:
        """The optimizer is about to move the parameters."""

    def after_update(self) -> None:
        """It has moved them."""


class OptimizerHooks:
    """Two hooks on an optimizer, until `close`."""

    def __init__(self, optimizer: Optimizer, to: Updated, fail: Callable[[Exception], None]) -> None:
        """Call `to` before and after every step of `optimizer`, and `fail` with what it raises."""
        self._handles = (
            optimizer.register_step_pre_hook(Hook(lambda *_: to.before_update(), fail)),
            optimizer.register_step_post_hook(Hook(lambda *_: to.after_update(), fail)),
        )

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
