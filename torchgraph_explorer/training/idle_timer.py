"""A thread that looks, a few times a second, whether the last logged step is over."""

from __future__ import annotations

import threading
from collections.abc import Callable

SECONDS = 0.25
"""Between two calls."""


class IdleTimer:
    """Calls a function every `SECONDS`, in a thread of its own, until `stop`.

    A step is over when the next one begins. No next one may come: the training has ended, waits for the user at a
    prompt, or evaluates for minutes. Nothing runs in the training's thread then, so another thread has to hand over the
    last step. The writer's thread cannot be that one, since a sink may keep it busy for as long as a store hangs.
    """

    def __init__(self, act: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Begin to call `act`. If it raises, `fail` is called with the exception, and `act` not again.

        Raises:
            RuntimeError: No thread can be started.
        """
        self._act, self._fail = act, fail
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="torchgraph-idle", daemon=True).start()

    def stop(self) -> None:
        """Begin no further call. Does not wait for one that is going on. May be called again."""
        self._stopped.set()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(SECONDS):
                self._act()
        except Exception as fault:
            self._fail(fault)
