"""Hooks that are left out of copies and pickles of a model, and cannot raise into training."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from torch import compiler
from torch.compiler import is_dynamo_compiling

from torchgraph_explorer import interrupts
from torchgraph_explorer.console import warn_once

flags: Any = compiler if hasattr(compiler, "_is_compiling_flag") else SimpleNamespace(_is_compiling_flag=False)
"""Where torch notes that it exports a model: `torch.compiler.is_compiling` takes two functions to look there."""


def are_walked() -> bool:
    """Whether torch is iterating over a module's hooks, so that none may be removed: it does so after an exception.

    To be called in a forward hook, before anything of ours could have failed in it.
    """
    return sys.exc_info()[1] is not None


class Unpickled:
    """A hook on one of the user's modules or tensors.

    A pickled or copied model must contain nothing of this package, and must load where it is not installed. So a copy
    of a hook is a callable of the standard library that takes any arguments and does nothing. Nor does torch warn of a
    hook that it leaves out where a tensor is saved, as the loss is with a checkpoint.
    """

    __slots__ = ("__weakref__",)
    __torch_unserializable__ = True  # for `warn_if_has_hooks` of torch

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, str]]:
        """The copy: `nullcontext().__exit__`, which accepts anything and returns None."""
        return getattr, (nullcontext(), "__exit__")


class SafeHook(Unpickled):
    """A hook that cannot raise into training."""

    __slots__ = ()

    @abstractmethod
    def act(self, *arguments: Any) -> None:
        """What the hook does."""

    @abstractmethod
    def fail(self, fault: Exception) -> None:
        """Called with what `act` raises."""

    @interrupts.entry
    def __call__(self, *arguments: Any) -> None:
        """Call `act`. Returns and raises nothing, so that nothing of the user's changes; an interrupt passes."""
        if (
            is_dynamo_compiling() or flags._is_compiling_flag
        ):  # a hook that stayed on by a fault must not break the user's graph
            return
        try:
            try:
                self.act(*arguments)
            except Exception as fault:
                self._report(fault)
        except BaseException:
            interrupts.restore_all()
            raise

    def _report(self, fault: Exception) -> None:
        try:
            self.fail(fault)
        except Exception as another:  # while cleaning up
            warn_once(f"Watching the model failed ({fault!r}), and so did ending it ({another!r}). Training goes on.")


class Hook(SafeHook):
    """A hook made of two functions.

    Attributes:
        act: What the hook does.
    """

    __slots__ = ("_fail", "act")

    act: Callable[..., None]  # no method that calls it, since it is called at each step

    def __init__(self, act: Callable[..., None], fail: Callable[[Exception], None]) -> None:
        """Call `act` with whatever the hook is called with, and `fail` with what it raises."""
        self.act, self._fail = act, fail

    def fail(self, fault: Exception) -> None:
        """Called with what `act` raises."""
        self._fail(fault)
