"""Which logged steps are being executed in this thread, so that `attach` inside a forward pass finds them."""

from __future__ import annotations

import threading
from typing import Protocol

from torch import nn


class Attachable(Protocol):
    """A logged step that is being executed."""

    def attach(self, tensor: object, module: nn.Module, name: str) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`."""


_threads: dict[Attachable, int] = {}
"""The thread of each step: two threads may each train a model. It may be left in another than it was entered in."""


def enter(one: Attachable) -> None:
    """`one` wants to hear of tensors that are attached in this thread."""
    _threads[one] = threading.get_ident()


def leave(one: Attachable) -> None:
    """`one` hears of them no more. May be called for one that never entered."""
    _threads.pop(one, None)


def open_steps() -> tuple[Attachable, ...]:
    """Those that want to hear of what is attached in this thread."""
    if not _threads:
        return ()
    here = threading.get_ident()
    return tuple(one for one, thread in _threads.copy().items() if thread == here)
