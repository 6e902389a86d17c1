"""InlineProbes for runs again and again in a thread of its own, so that whoever asks is answered at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from torchgraph_explorer.record.discovery import RunInfo

IDLE_SECONDS = 5.0
"""Between two looks when nobody asks; TensorBoard looks as often."""

ASKED_SECONDS = 1.0
"""Between two looks when somebody does."""

SHARE = 0.1
"""Of its time, the most that the thread spends looking: a large logdir far away is looked at less often."""

FIRST_SECONDS = 10.0
"""How long an answer waits for the first look."""

log = logging.getLogger(__name__)


class Scan:
    """What `look` found last."""

    def __init__(self, look: Callable[[], Sequence[RunInfo]]) -> None:
        """Start to look."""
        self._look = look
        self._found: tuple[RunInfo, ...] = ()
        self._has_looked, self._asked = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="torchgraph-scan", daemon=True).start()

    @property
    def has_runs(self) -> bool:
        """Whether there was any run. Never waits."""
        return bool(self._found)

    def latest(self) -> list[RunInfo]:
        """The runs there were a moment ago. Waits for the first look only."""
        self._asked.set()
        self._has_looked.wait(FIRST_SECONDS)
        return list(self._found)

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._look_once()
            took = time.monotonic() - began
            time.sleep(max(ASKED_SECONDS, took / SHARE))
            self._asked.wait(IDLE_SECONDS)
            self._asked.clear()

    def _look_once(self) -> None:
        try:
            self._found = tuple(self._look())
        except Exception:
            log.exception("torchgraph: looking for runs failed; trying again")
        self._has_looked.set()
