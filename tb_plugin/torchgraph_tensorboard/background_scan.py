"""Looks for runs repeatedly in a background thread, so that requests are answered at once."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from torchgraph_explorer.record.discovery import RunInfo

IDLE_SECONDS = 5.0
"""Time between two scans without requests; TensorBoard scans as often."""

ASKED_SECONDS = 1.0
"""Time between two scans with requests."""

MAX_SHARE = 0.1
"""The largest share of its time that the thread scans: a large remote log directory is scanned less often."""

FIRST_SECONDS = 10.0
"""How long a request waits for the first scan."""

log = logging.getLogger(__name__)


class BackgroundScan:
    """The runs that `find` found last."""

    def __init__(self, find: Callable[[], Sequence[RunInfo]]) -> None:
        """Start the thread."""
        self._find = find
        self._found: tuple[RunInfo, ...] = ()
        self._has_scanned, self._asked = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="torchgraph-scan", daemon=True).start()

    @property
    def has_runs(self) -> bool:
        """Whether the last scan found a run. Never waits."""
        return bool(self._found)

    def latest(self) -> list[RunInfo]:
        """The runs that the last scan found. Waits only for the first scan."""
        self._asked.set()
        self._has_scanned.wait(FIRST_SECONDS)
        return list(self._found)

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._scan_once()
            took = time.monotonic() - began
            time.sleep(max(ASKED_SECONDS, took / MAX_SHARE))
            self._asked.wait(IDLE_SECONDS)
            self._asked.clear()

    def _scan_once(self) -> None:
        try:
            self._found = tuple(self._find())
        except Exception:
            log.exception("torchgraph: looking for runs failed; trying again")
        self._has_scanned.set()
