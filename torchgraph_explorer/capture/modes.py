"""What is switched on while the forward pass of a logged step runs."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from torchgraph_explorer.capture.trace import Trace


class Modes:
    """The trace, if there is one, and compiled code that runs as it was written: hooks in it are not called else."""

    def __init__(self, trace: Trace | None) -> None:
        """Nothing is switched on yet."""
        self._trace = trace
        self._stance: ExitStack | None = None

    def enter(self) -> None:
        """The forward pass begins."""
        self._stance = force_eager()
        if self._trace is not None:
            self._trace.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again."""
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.close()
        if self._trace is not None:
            _take_out(self._trace)


def _take_out(trace: Trace) -> None:
    """Leave a trace that may be below others: those of a model that is watched twice end in the order they began in."""
    above: list[Trace] = []
    while isinstance(top := _get_current_dispatch_mode(), Trace) and top is not trace:
        top.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        above.append(top)
    if top is trace:
        trace.__exit__(None, None, None)  # type: ignore[no-untyped-call]
    for one in reversed(above):
        one.__enter__()  # type: ignore[no-untyped-call]


def force_eager() -> ExitStack | None:
    """Have compiled modules run as they were written, until what this returns is closed.

    What was compiled is neither thrown away nor compiled again. None where nothing was ever compiled in this
    process: importing dynamo would take seconds.
    """
    if "torch._dynamo" not in sys.modules:
        return None
    return _eager.enter()


class _Eager:
    """One stance for all that ask for it. They need not leave it in the reverse order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stance: Any = None

    def enter(self) -> ExitStack:
        """Ask for it, until what this returns is closed."""
        with self._lock:
            if self._inside == 0:
                self._stance = torch.compiler.set_stance("force_eager")
            self._inside += 1
        left = ExitStack()
        left.callback(self._leave)
        return left

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._stance.__exit__(None, None, None)


_eager = _Eager()
