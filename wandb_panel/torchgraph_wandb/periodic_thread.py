"""A thread that does something again and again."""

from __future__ import annotations

import threading
from collections.abc import Callable

TICK = 0.5
"""Seconds between two times."""


class Ticks:
    """Calls `act` again and again in a thread of its own, from `begin` to `end`, or until it raises."""

    def __init__(self, act: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        self._act, self._fail = act, fail
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """From now on. May be called again."""

        def ticking() -> None:
            try:
                self._run()
            except Exception as fault:  # of W&B, or of what makes snapshots; the training goes on without them
                self._fail(fault)

        if self._thread is None:
            self._thread = threading.Thread(target=ticking, name="torchgraph-wandb-ticks", daemon=True)
            self._thread.start()

    def end(self, seconds: float) -> bool:
        """No more; whether the last call came back within `seconds`. May be called again."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.wait(TICK):
            self._act()
