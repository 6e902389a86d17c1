"""Runs compiled modules as they were written, as long as something needs it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from torchgraph_explorer import interrupts


class EagerStance:
    """Torch's stance `force_eager`, for all objects that need it. They need not release it in the reverse order.

    The control flow of torch (`cond`, `scan`, `flex_attention` ...) compiles what it is given, even if it is called
    eagerly, and does not work otherwise. It lifts the limit on compilations meanwhile: there the stance is left for as
    long.
    """

    def __init__(self) -> None:
        """Leave torch's stance on compiled code as the user has set it."""
        self._holders: set[object] = set()
        self._lock = interrupts.lock()
        self._pauses: set[object] = set()
        self._before: Any = None
        self._plain: Any = None
        self._ours: Any = None

    def hold(self, holder: object) -> None:
        """Run compiled modules as they were written, until `release` is called with the same object.

        Nothing that was compiled is thrown away or compiled again. Nothing happens where nothing was ever compiled in
        this process: importing dynamo would take seconds.
        """
        if "torch._dynamo" in sys.modules:
            self._holders.add(holder)
            self._update()

    def release(self, holder: object) -> None:
        """`holder` does not need it any more. May be called again, and for one that never did."""
        if "torch._dynamo" in sys.modules:
            self._holders.discard(holder)
            self._update()

    def release_all(self) -> None:
        """Give the user's stance back, even if somebody still holds ours."""
        self._holders.clear()
        if "torch._dynamo" in sys.modules:
            self._update()

    def interrupted(self, _at_work: object) -> None:
        """See `interrupts.Interruptible`."""
        self._update()

    def _update(self) -> None:
        """Set the stance that is needed. May be called again, also after an interrupt."""
        with self._lock:
            self._set_stance(wanted=bool(self._holders) and not self._pauses)
            self._install(wanted=bool(self._holders))

    def _set_stance(self, *, wanted: bool) -> None:
        dynamo: Any = sys.modules["torch._dynamo.eval_frame"]
        if wanted and self._before is None:
            self._before = dynamo._stance  # noted first: an interrupt may come during the next line
            try:
                torch.compiler.set_stance("force_eager")
            except Exception:
                self._before = None
                raise
        elif not wanted and self._before is not None:
            dynamo._set_stance(self._before)
            self._before = None

    def _install(self, *, wanted: bool) -> None:
        """Replace torch's function that lifts the limit by one of ours; if not `wanted`, put it back."""
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
            self._update()
            with limit:
                yield
        finally:
            self._pauses.discard(pause)
            self._update()
