"""W&B's alerts: what is broken in a training is sent to those who asked W&B for alerts, by e-mail or Slack."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.report import kind_and_place, when

LONGEST_TITLE = 63
"""Characters that W&B accepts."""

SECONDS_BETWEEN = 1
"""Between two alerts of one title; W&B drops an earlier one."""


class Alerts:
    """Errors that were found, each for one alert. Filled in one thread, and sent in another."""

    def __init__(self, model: str) -> None:
        """Nothing was found in `model`."""
        self._model = model
        self._waiting: queue.SimpleQueue[tuple[Finding, ...]] = queue.SimpleQueue()

    def add(self, findings: Sequence[Finding]) -> None:
        """Take what was found at once, for one alert."""
        if errors := tuple(one for one in findings if one.severity == "error"):
            self._waiting.put(errors)

    def send(self, run: Any) -> None:
        """Alert of what waits."""
        with suppress(queue.Empty):
            while True:
                self._send(run, self._waiting.get_nowait())

    def _send(self, run: Any, errors: tuple[Finding, ...]) -> None:
        first = errors[0]
        lines = [f"{kind_and_place([one])}, {when(one)}: {one.text}" for one in errors]
        run.alert(
            title=f"{first.kind} in {self._model}, step {first.step}"[:LONGEST_TITLE],
            text="\n\n".join([*lines, *([first.advice] if first.advice else [])]),
            level="ERROR",
            wait_duration=SECONDS_BETWEEN,
        )
