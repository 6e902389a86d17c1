"""The processor time that each frame of a page takes, by Chromium's trace.

The time between frames says little on a machine that does other work, too. The processor time of the page's main thread
does not depend on that: what takes 16 ms of it is drawn 60 times a second where a core is free.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks.tables import Cell

CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
TASKS = ("RunTask", "ThreadControllerImpl::RunTask")


def frame_times(browser: Browser, page: Page, act: Callable[[], object]) -> list[float]:
    """Milliseconds of processor time of each frame that `act` causes: its events, its layout and its drawing."""
    browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        act()
    finally:
        trace = browser.stop_tracing()
    return _by_frame(json.loads(trace)["traceEvents"])


def _by_frame(events: list[dict[str, Any]]) -> list[float]:
    """A task with animation frames begins a frame; the tasks of the same thread up to the next such one are its own."""
    begun = [one for one in events if one["name"] == "FireAnimationFrame"]
    threads = Counter(map(_thread, begun))
    if not threads:
        return []
    thread = max(threads, key=lambda one: threads[one])
    calls = np.sort([one["ts"] for one in begun if _thread(one) == thread])
    tasks = (one for one in events if one["name"] in TASKS and _thread(one) == thread and "tdur" in one)
    found: list[float] = []
    stop = 0.0
    for task in sorted(tasks, key=lambda one: one["ts"]):
        start, end = task["ts"], task["ts"] + task.get("dur", 0)
        if start < stop:  # within another one
            continue
        stop = end
        if np.searchsorted(calls, start) < np.searchsorted(calls, end, side="right"):
            found.append(0.0)
        if found:
            found[-1] += task["tdur"] / 1e3
    return found[:-1]


def _thread(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["tid"]


FRAME_COLUMNS = ("a frame, p50 ms", "p95 ms", "largest, ms", "frames")


def frame_cells(times: list[float]) -> list[Cell]:
    """The cells of `FRAME_COLUMNS`."""
    return [*np.quantile(times, [0.5, 0.95, 1.0]).tolist(), len(times)]
