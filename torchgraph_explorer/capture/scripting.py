"""Lets `torch.jit.script` compile a watched model, or a copy of one: it would compile our hooks, and fails at them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from torch import nn
from torch.jit import _recursive

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.safe_hook import Unpickled
from torchgraph_explorer.console import warn


class Scripting:
    """Replaces torch's function that scripts a module by one that does so without our hooks.

    From the first watch on, to the end of the process: a copy of a watched model keeps hooks that do nothing.
    """

    def __init__(self) -> None:
        """Leave `torch.jit.script` as torch has it."""
        self._lock = interrupts.lock()
        self._is_on = False

    def take_over(self) -> None:
        """Have modules scripted without our hooks from now on."""
        with self._lock:
            if not self._is_on:
                self._is_on = True
                _recursive.create_script_module = _without_hooks(_recursive.create_script_module)


def _without_hooks(plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    @interrupts.guarded
    def create_script_module(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        try:
            put_back = _taken_off(module)
        except Exception as fault:
            warn(f"Hooks could not be taken off a model that torch.jit.script compiles ({fault!r}).")
            return plain(module, *args, **kwargs)
        with interrupts.Restoring(put_back):
            return plain(module, *args, **kwargs)

    return create_script_module


def _taken_off(model: nn.Module) -> Callable[[], None]:
    """Take our hooks off `model` and the modules in it; returns what puts them back where they were."""
    taken = [(hooks, dict(hooks)) for hooks in _hooks(model) if any(map(_is_ours, hooks.values()))]

    def put_back() -> None:
        while taken:
            hooks, before = taken[-1]
            before.update(hooks)  # the user's of meanwhile stand last
            hooks.clear()
            hooks.update(before)
            taken.pop()

    for hooks, before in taken:
        for key, hook in before.items():
            if _is_ours(hook):
                hooks.pop(key, None)
    return put_back


def _hooks(model: nn.Module) -> Iterator[dict[int, Callable[..., Any]]]:
    for module in model.modules():
        yield module._forward_pre_hooks
        yield module._forward_hooks


def _is_ours(hook: object) -> bool:
    """Whether it is a hook of ours, or what stands for one in a copy of the module; see `Unpickled`."""
    return isinstance(hook, Unpickled) or type(getattr(hook, "__self__", None)) is nullcontext
