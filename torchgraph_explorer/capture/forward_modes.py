"""What is switched on while the forward pass of a logged step runs."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from torchgraph_explorer.capture.call_stack import is_caller
from torchgraph_explorer.capture.eager import hold_eager, release_eager
from torchgraph_explorer.capture.mode_stack import modes, set_modes
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.interrupts import Restoring, here, soon


class ForwardModes:
    """The trace, if there is one, and compiled code that runs as it was written: hooks in it are not called else."""

    def __init__(self, trace: Trace | None) -> None:
        """Nothing is switched on yet."""
        self._trace = trace
        self._frame: Any = None

    def enter(self, frame: Any) -> None:
        """The forward pass begins: `frame` is that of torch's call of the model, in this thread."""
        hold_eager(self)
        if self._trace is not None:
            self._trace.over, self._frame = False, frame
            _restack(self._trace)

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again.

        The trace can only be taken out in its own thread. Called in another, it notes no more, and waits there for a
        further call.
        """
        release_eager(self)
        if self._trace is not None:
            self._trace.over = True
            _restack()
            self._frame = None  # which would keep what the user's call has made

    def leave_later(self) -> None:
        """The forward pass is being left by an interrupt, or was: leave once it is. For any thread.

        Not before: the trace may be telling of an operation now, so that it is not among the modes; and what torch
        notes of them on the way in, as a compiled module does, it restores on the way out. Interrupts come in the main
        thread; what another one has left on waits for a further call of `leave` there.
        """
        release_eager(self)
        if self._trace is not None and self._frame is not None:
            self._trace.over = True
            soon(self._leave_if_left)

    def _leave_if_left(self) -> bool:
        if here.changed or is_caller(self._frame, sys._getframe()) or _is_torch_at_work():
            return False
        _restack()
        self._frame = None
        return True


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


def _is_torch_at_work() -> bool:
    """Whether we are called between two instructions of torch's, which may rely on the modes being what they were."""
    frame: Any = sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("torchgraph_explorer"):
        frame = frame.f_back
    return bool(frame.f_globals.get("__name__", "").partition(".")[0] == "torch")
