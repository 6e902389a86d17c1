"""What is switched on while the forward pass of a logged step runs."""

from __future__ import annotations

import sys
import threading
from functools import partial
from types import FrameType

from torchgraph_explorer.capture.eager import hold_eager, release_eager
from torchgraph_explorer.capture.mode_stack import modes, set_modes
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.interrupts import Restoring, here, soon


class Modes:
    """The trace, if there is one, and compiled code that runs as it was written: hooks in it are not called else."""

    def __init__(self, trace: Trace | None) -> None:
        """Nothing is switched on yet."""
        self._trace = trace
        self._thread: int | None = None

    def enter(self) -> None:
        """The forward pass begins."""
        hold_eager(self)
        if self._trace is not None:
            self._trace.over = False
            self._thread = threading.get_ident()
            _restack(self._trace)

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again.

        The trace can only be taken out in its own thread. Called in another, it notes no more, and waits there for a
        further call. Called within an operation that it is told of, it is taken out after that.
        """
        release_eager(self)
        if self._trace is not None:
            self._trace.over = True
            _restack()
            if self._thread == threading.get_ident() == threading.main_thread().ident and _is_in_dispatch():
                soon(_restack_after_dispatch)

    def leave_soon(self) -> None:
        """An interrupt has ended the forward pass, and no hook was told: leave in its thread, if it is the main one."""
        release_eager(self)
        if self._trace is not None and not self._trace.over and self._thread == threading.main_thread().ident:
            self._trace.over = True
            soon(_restack_after_dispatch)


def _restack(*lowest: Trace) -> None:
    """Put `lowest` below all of this thread's dispatch modes, and take out the traces that are over from among them.

    Below, since a mode is left by taking away the uppermost: after an interrupt, of which no hook is told, the user's
    modes are left before the trace is. It sees the operations that they let through, as they let them through; what
    they make up it does not see come about, and takes autograd's word for where it is from. Torch's own modes, for
    simulated tensors and the like, keep below all others by themselves.

    The trace is not entered as a mode is by `with`: torch notes process-wide that one is on, which should the user's
    be left first would never be taken back.
    """
    found = modes()
    wanted = [mode for mode in (*lowest, *found) if not (isinstance(mode, Trace) and mode.over)]
    if wanted != found:
        with Restoring(partial(set_modes, wanted)):
            """Done at its end, also after an interrupt."""


def _restack_after_dispatch() -> bool:
    """Take out the traces that are over, unless one is being told of an operation now, or all modes are left."""
    if _is_in_dispatch() or here.changed:
        return False
    _restack()
    return True


def _is_in_dispatch() -> bool:
    frame: FrameType | None = sys._getframe()
    told = Trace.__torch_dispatch__.__code__
    while frame is not None and frame.f_code is not told:
        frame = frame.f_back
    return frame is not None
