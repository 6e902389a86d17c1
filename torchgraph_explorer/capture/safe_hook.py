"""Hooks that leave no trace: they pickle and copy as nothing, and cannot raise into training."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from torchgraph_explorer import interrupts
from torchgraph_explorer.console import warn


def are_walked() -> bool:
    """Whether none may be taken off a module: after an exception torch goes through the hooks, not through a copy.

    To be asked in a forward hook, before anything of ours could have failed in it.
    """
    return sys.exc_info()[1] is not None


class SafeHook:
    """What a hook of ours does on one of the user's modules or tensors.

    A pickled or deep-copied model must not carry anything of ours, and must load where this package is not
    installed. So a copy of a hook is a callable of the standard library that takes any arguments and does nothing.
    """

    __slots__ = ("__weakref__",)

    @abstractmethod
    def act(self, *arguments: Any) -> None:
        """Do what the hook is for."""

    @abstractmethod
    def fail(self, fault: Exception) -> None:
        """Told of what `act` raises."""

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """Never returns a value and never raises, so that nothing of the user's changes. An interrupt goes through."""
        if torch.compiler.is_compiling():  # a hook that stayed on by a fault is not to break the user's graph
            return
        try:
            try:
                self.act(*arguments)
            except Exception as fault:
                self._report(fault)
        except BaseException:
            interrupts.put_right()
            raise

    def _report(self, fault: Exception) -> None:
        try:
            self.fail(fault)
        except Exception as another:  # while cleaning up; there is nobody left to tell but the user
            warn(f"Watching the model failed ({fault!r}), and so did ending it ({another!r}). Training goes on.")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, str]]:
        """The copy: `nullcontext().__exit__`, which accepts anything and returns None."""
        return getattr, (nullcontext(), "__exit__")


class Hook(SafeHook):
    """A hook made of two functions."""

    __slots__ = ("_act", "_fail")

    def __init__(self, act: Callable[..., None], fail: Callable[[Exception], None]) -> None:
        """Call `act` with whatever the hook is called with, and `fail` with what it raises."""
        self._act, self._fail = act, fail

    def act(self, *arguments: Any) -> None:
        """Do what the hook is for."""
        self._act(*arguments)

    def fail(self, fault: Exception) -> None:
        """Told of what `act` raises."""
        self._fail(fault)
