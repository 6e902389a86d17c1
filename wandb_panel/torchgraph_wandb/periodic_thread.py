"""A thread that calls a function at regular intervals."""

from __future__ import annotations

import threading
from collections.abc import Callable

INTERVAL_SECONDS = 0.5
"""Seconds between two calls."""


class PeriodicThread:
    """Calls `act` at intervals in a thread of its own, from `begin` to `end`, or until it raises."""

    def __init__(self, act: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """`fail` is called, in the same thread, with what `act` raises."""
        self._act, self._fail = act, fail
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread, unless it is started already."""

        def run_until_ended() -> None:
            try:
                self._run()
            except Exception as fault:  # of W&B, or of what makes snapshots; the training goes on without them
                self._fail(fault)

        if self._thread is None:
            self._thread = threading.Thread(target=run_until_ended, name="torchgraph-wandb-updates", daemon=True)
            self._thread.start()

    def end(self, seconds: float) -> bool:
        """Stop calling; whether the last call returned within `seconds`. May be called again."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_SECONDS):
            self._act()
