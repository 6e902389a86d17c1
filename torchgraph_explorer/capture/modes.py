"""What is switched on while the forward pass of a logged step runs."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode

from torchgraph_explorer.capture.trace import Trace


class Modes:
    """The trace, if there is one, and compiled code that runs as it was written: hooks in it are not called else."""

    def __init__(self, trace: Trace | None) -> None:
        """Nothing is switched on yet."""
        self._trace, self._stance = trace, None

    def enter(self) -> None:
        """The forward pass begins."""
        self._stance = force_eager()
        if self._trace is not None:
            self._trace.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again."""
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.__exit__(None, None, None)
        if self._trace is not None and _get_current_dispatch_mode() is self._trace:
            self._trace.__exit__(None, None, None)  # type: ignore[no-untyped-call]


def force_eager() -> Any:
    """Have compiled modules run as they were written, until what this returns is left with `__exit__`.

    What was compiled is neither thrown away nor compiled again. None where nothing was ever compiled in this
    process: importing dynamo would take seconds.
    """
    if "torch._dynamo" not in sys.modules:
        return None
    return torch.compiler.set_stance("force_eager")
