"""Has compiled modules run as they were written, as long as somebody holds it so."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchgraph_explorer import interrupts


def hold_eager(holder: object) -> None:
    """Have compiled modules run as they were written, until `release_eager` is called with the same object.

    What was compiled is neither thrown away nor compiled again. Nothing happens where nothing was ever compiled in this
    process: importing dynamo would take seconds.
    """
    if "torch._dynamo" in sys.modules:
        _eager.holders.add(holder)
        _eager.update()


def release_eager(holder: object) -> None:
    """`holder` does not hold it any more. May be called again, and for one that never did."""
    if "torch._dynamo" in sys.modules:
        _eager.holders.discard(holder)
        _eager.update()


class _Eager:
    """One stance for all that hold it. They need not leave it in the reverse order.

    It is not for the control flow of torch (`cond`, `scan`, `flex_attention` ...), which even called eagerly compiles
    what it is given and cannot do without. All of it lifts the limit on compilations meanwhile: that is where the
    stance is left for as long.

    Attributes:
        holders: Who holds it.
    """

    def __init__(self) -> None:
        self.holders: set[object] = set()
        self._lock = interrupts.lock()
        self._pauses: set[object] = set()
        self._before: Any = None
        self._plain: Any = None
        self._ours: Any = None

    def update(self) -> None:
        """Have the stance be what is wanted. May be called again, also after an interrupt of it."""
        with self._lock:
            self._set_stance(wanted=bool(self.holders) and not self._pauses)
            self._install(wanted=bool(self.holders))

    def interrupted(self, _at_work: object) -> None:
        """See `interrupts.Interruptible`."""
        self.update()

    def _set_stance(self, *, wanted: bool) -> None:
        dynamo: Any = sys.modules["torch._dynamo.eval_frame"]
        if wanted and self._before is None:
            self._before = dynamo._stance  # noted first: an interrupt may come before the next line is over
            try:
                torch.compiler.set_stance("force_eager")
            except Exception:
                self._before = None
                raise
        elif not wanted and self._before is not None:
            dynamo._set_stance(self._before)
            self._before = None

    def _install(self, *, wanted: bool) -> None:
        """Have torch tell when it lifts the limit; if not `wanted`, no more."""
        dynamo: Any = sys.modules.get("torch._dynamo.utils")
        if wanted and self._ours is None and hasattr(dynamo, "disable_cache_limit"):
            self._plain = dynamo.disable_cache_limit
            self._ours = self._pausing(self._plain)
            dynamo.disable_cache_limit = self._ours
        elif not wanted and self._ours is not None:
            if dynamo.disable_cache_limit is self._ours:
                dynamo.disable_cache_limit = self._plain
            self._ours = None

    def _pausing(self, plain: Callable[[], Any]) -> Callable[[], Any]:
        """`plain`, and without the stance where it is torch that calls it: users lift the limit for other reasons."""

        @functools.wraps(plain)
        def disable_cache_limit() -> Any:
            is_torchs = sys._getframe(1).f_globals.get("__name__", "").startswith("torch.")
            return self._pause(plain()) if is_torchs else plain()

        return disable_cache_limit

    @contextmanager
    def _pause(self, limit: AbstractContextManager[None]) -> Iterator[None]:
        pause = object()
        try:
            self._pauses.add(pause)
            self.update()
            with limit:
                yield
        finally:
            self._pauses.discard(pause)
            self.update()


_eager = _Eager()
interrupts.tell(_eager)
