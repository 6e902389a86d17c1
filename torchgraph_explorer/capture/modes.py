"""What is switched on while the forward pass of a logged step runs."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode, _pop_mode, _push_mode

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
            self._trace.over = False
            _restack(self._trace)

    def leave(self) -> None:
        """The forward pass is over, or was given up. May be called again.

        The trace can only be taken out in its own thread. Called in another, it notes no more, and waits there for a
        further call.
        """
        stance, self._stance = self._stance, None
        if stance is not None:
            stance.close()
        if self._trace is not None:
            self._trace.over = True
            _restack()


def _restack(*lowest: Trace) -> None:
    """Put `lowest` below all of this thread's dispatch modes, and take out the traces that are over from among them.

    Below, since a mode is left by taking away the uppermost: after an interrupt, of which no hook is told, the user's
    modes are left before the trace is. It sees the operations that they let through, as they let them through; what
    they make up it does not see come about, and takes autograd's word for where it is from. Torch's own modes, for
    simulated tensors and the like, keep below all others by themselves.

    The trace is not entered as a mode is by `with`: torch notes process-wide that one is on, which should the user's
    be left first would never be taken back.
    """
    above = []
    while (top := _get_current_dispatch_mode()) is not None and getattr(top, "_mode_key", None) is None:
        above.append(_pop_mode())
    for mode in (*lowest, *reversed(above)):
        if not (isinstance(mode, Trace) and mode.over):
            _push_mode(mode)


def force_eager() -> ExitStack | None:
    """Have compiled modules run as they were written, until what this returns is closed.

    What was compiled is neither thrown away nor compiled again. None where nothing was ever compiled in this
    process: importing dynamo would take seconds.
    """
    if "torch._dynamo" not in sys.modules:
        return None
    return _eager.enter()


class _Eager:
    """One stance for all that ask for it. They need not leave it in the reverse order.

    It is not for the control flow of torch (`cond`, `scan`, `flex_attention` ...), which even called eagerly compiles
    what it is given and cannot do without. All of it lifts the limit on compilations meanwhile: that is where the
    stance is left for as long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = self._paused = 0
        self._stance: Any = None
        self._installed: tuple[Any, Any] | None = None

    def enter(self) -> ExitStack:
        """Ask for it, until what this returns is closed."""
        self._change(inside=1)
        left = ExitStack()
        left.callback(self._leave)
        return left

    def _leave(self) -> None:
        self._change(inside=-1)

    def _change(self, *, inside: int = 0, paused: int = 0) -> None:
        with self._lock:
            self._inside += inside
            self._paused += paused
            wanted = self._inside > 0 and self._paused == 0
            if wanted and self._stance is None:
                self._stance = torch.compiler.set_stance("force_eager")
            elif not wanted and self._stance is not None:
                stance, self._stance = self._stance, None
                stance.__exit__(None, None, None)
            self._install(wanted=self._inside > 0)

    def _install(self, *, wanted: bool) -> None:
        """Have torch tell when it lifts the limit; if not `wanted`, no more."""
        dynamo: Any = sys.modules.get("torch._dynamo.utils")
        if wanted and self._installed is None and hasattr(dynamo, "disable_cache_limit"):
            plain = dynamo.disable_cache_limit
            dynamo.disable_cache_limit = ours = self._pausing(plain)
            self._installed = plain, ours
        elif not wanted and self._installed is not None:
            plain, ours = self._installed
            self._installed = None
            if dynamo.disable_cache_limit is ours:
                dynamo.disable_cache_limit = plain

    def _pausing(self, plain: Callable[[], Any]) -> Callable[[], Any]:
        """`plain`, and without the stance where it is torch that calls it: users lift the limit for other reasons."""

        @functools.wraps(plain)
        def disable_cache_limit() -> Any:
            is_torchs = sys._getframe(1).f_globals.get("__name__", "").startswith("torch.")
            return self._pause(plain()) if is_torchs else plain()

        return disable_cache_limit

    @contextmanager
    def _pause(self, limit: AbstractContextManager[None]) -> Iterator[None]:
        self._change(paused=1)
        try:
            with limit:
                yield
        finally:
            self._change(paused=-1)


_eager = _Eager()
