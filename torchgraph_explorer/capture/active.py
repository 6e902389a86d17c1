"""Which logged steps are being executed in this thread, so that `attach` inside a forward pass finds them."""

from __future__ import annotations

import threading
from typing import Protocol

from torch import nn


class Attachable(Protocol):
    """A logged step that is being executed."""

    def attach(self, tensor: object, module: nn.Module, name: str) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`."""


class _Active(threading.local):
    """The steps of one thread. Not one for all: two threads may each train a model."""

    def __init__(self) -> None:
        self.rounds: list[Attachable] = []


_active = _Active()


def enter(one: Attachable) -> None:
    """`one` wants to hear of attached tensors."""
    if one not in _active.rounds:
        _active.rounds.append(one)


def leave(one: Attachable) -> None:
    """`one` hears of them no more. May be called for one that never entered."""
    if one in _active.rounds:
        _active.rounds.remove(one)


def rounds() -> tuple[Attachable, ...]:
    """Those that want to hear."""
    return tuple(_active.rounds)
