"""Which logged steps are being executed in this thread, so that `attach` inside a forward pass finds them."""

from __future__ import annotations

import threading
from typing import Protocol

from torch import nn


class Attachable(Protocol):
    """A logged step that is being executed."""

    def attach(self, tensor: object, module: nn.Module, name: str) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`."""


class AttachTargets:
    """The steps that record attached tensors, each with the thread that it is executed in.

    Two threads may each train a model. A step may be left in another thread than it was entered in.
    """

    def __init__(self) -> None:
        """No step is being executed."""
        self._threads: dict[Attachable, int] = {}

    def enter(self, step: Attachable) -> None:
        """From now on, `step` records tensors that are attached in this thread."""
        self._threads[step] = threading.get_ident()

    def leave(self, step: Attachable) -> None:
        """`step` records no more of them. May be called for one that never entered."""
        self._threads.pop(step, None)

    def open_steps(self) -> tuple[Attachable, ...]:
        """The steps that record what is attached in this thread."""
        if not self._threads:
            return ()
        here = threading.get_ident()
        return tuple(step for step, thread in self._threads.copy().items() if thread == here)

    def clear(self) -> None:
        """Leave every step."""
        self._threads.clear()
