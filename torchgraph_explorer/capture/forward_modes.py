"""Switches on, for the forward pass of a logged step, the trace and the eager stance of compiled modules."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from torchgraph_explorer.capture.call_stack import is_caller
from torchgraph_explorer.capture.mode_stack import modes, set_modes
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.interrupts import Restoring, call_in_main_thread, this_thread


class ForwardModes:
    """The trace, if there is one, and the eager stance, without which hooks in compiled code are not called."""

    def __init__(self, trace: Trace | None) -> None:
        """Begin with no mode switched on."""
        self._trace = trace
        self._frame: Any = None

    def enter(self, frame: Any) -> None:
        """The forward pass begins. `frame` is that of torch's call of the model, in this thread."""
        process_state.eager.hold(self)
        if self._trace is not None:
            self._trace.over, self._frame = False, frame
            _restack(self._trace)

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again.

        The trace can only be removed in its own thread. Called in another one, this only makes it note nothing more; it
        is removed by a further call in its own thread.
        """
        process_state.eager.release(self)
        if self._trace is not None:
            self._trace.over = True
            _restack()
            self._frame = None  # it would keep alive what the user's call has made

    def leave_later(self) -> None:
        """An interrupt ends the forward pass, or has ended it: leave as soon as it has. For any thread.

        Not before, for two reasons. While the trace handles an operation, it is not among the modes. And torch restores
        on the way out the modes that it found on the way in, e.g. around a compiled module. Interrupts come in the main
        thread; a trace in another thread is removed by a further call of `leave` there.
        """
        process_state.eager.release(self)
        if self._trace is not None and self._frame is not None:
            self._trace.over = True
            call_in_main_thread(self._leave_if_left)

    def _leave_if_left(self) -> bool:
        if this_thread.changed or is_caller(self._frame, sys._getframe()) or _is_torch_at_work():
            return False
        _restack()
        self._frame = None
        return True


def _restack(*lowest: Trace) -> None:
    """Put `lowest` below all dispatch modes of this thread, and remove the traces that are over.

    It goes below because leaving a mode removes the uppermost one: after an interrupt, which calls no hook, the user's
    modes are left before the trace. The trace sees the operations that the user's modes pass on. It does not see how
    they make a tensor of their own; for such a tensor, autograd says where it came from. Torch's own modes, for
    simulated tensors and the like, stay below all others by themselves.

    The trace is not entered by `with`: torch then notes for the process that a mode is on, and would not take that back
    if the user's modes were left first.
    """
    found = modes()
    wanted = [mode for mode in (*lowest, *found) if not (isinstance(mode, Trace) and mode.over)]
    if wanted != found:
        with Restoring(partial(set_modes, wanted)):
            """Restoring sets the modes, also after an interrupt."""


def _is_torch_at_work() -> bool:
    """Whether the caller is a function of torch's, which may rely on the modes staying as they were."""
    frame: Any = sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("torchgraph_explorer"):
        frame = frame.f_back
    return bool(frame.f_globals.get("__name__", "").partition(".")[0] == "torch")
