"""Reports modules that are compiled in place, for which torch has no hook."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import nn

from torchgraph_explorer import interrupts


class CompileListeners:
    """Replaces `nn.Module.compile` by a function that also calls listeners, as long as there is a listener."""

    def __init__(self) -> None:
        """Leave `nn.Module.compile` as torch has it, until there is a listener."""
        self._lock = interrupts.lock()
        self._listeners: list[Callable[[nn.Module], object]] = []
        self._plain = self._ours = nn.Module.compile

    def __len__(self) -> int:
        """How many listeners there are."""
        return len(self._listeners)

    def add(self, listener: Callable[[nn.Module], object]) -> None:
        """Call `listener` with each module, once it is compiled."""
        with self._lock:
            self._listeners.append(listener)
            if self._plain in (self._ours, nn.Module.compile):  # ours is not on, or was taken off by somebody else
                self._plain = nn.Module.compile
                nn.Module.compile = self._ours = self._reporting(self._plain)  # type: ignore[method-assign]

    def remove(self, listener: Callable[[nn.Module], object]) -> None:
        """Call it no more. With the last one, `Module.compile` is torch's own again, unless it was replaced since."""
        with self._lock:
            self._listeners.remove(listener)
            if not self._listeners and nn.Module.compile is self._ours:
                nn.Module.compile = self._ours = self._plain  # type: ignore[method-assign]

    def _reporting(self, plain: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(plain)
        def compile_and_report(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            plain(module, *args, **kwargs)
            for listener in tuple(self._listeners):
                listener(module)

        return compile_and_report
