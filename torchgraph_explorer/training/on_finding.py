"""Hands findings to the function that the user gave as `on_finding=`, in the training's thread."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from torchgraph_explorer import interrupts
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.finding import Finding

OnFinding: TypeAlias = Callable[[Finding], object]


class FindingInbox:
    """What was found, and not yet given to the user's function."""

    def __init__(self, function: OnFinding) -> None:
        """Give each finding to `function`."""
        self._function, self._has_raised = function, False
        self._waiting: queue.SimpleQueue[Finding] = queue.SimpleQueue()

    def put(self, findings: Sequence[Finding]) -> None:
        """Take findings, in any thread."""
        for one in findings:
            self._waiting.put(one)

    def deliver(self) -> None:
        """Between two steps, in the training's thread: call the function with what has come.

        Raises:
            Deliberate: What the function raises. It is for the training loop.
        """
        while (one := self._next()) is not None:
            try:
                self._function(one)
            except Exception as fault:
                self._has_raised = True
                raise interrupts.Deliberate(fault) from fault

    def deliver_at_end(self, model: str) -> None:
        """After the training: there is nothing left to end, so an exception is only warned of.

        A function that has ended the training is not called again.
        """
        while not self._has_raised and (one := self._next()) is not None:
            try:
                self._function(one)
            except Exception as fault:
                warn(f"{model}: on_finding raised for {one.kind!r} at the end of the training ({reason(fault)}).")
                return

    def _next(self) -> Finding | None:
        with suppress(queue.Empty):
            return self._waiting.get_nowait()
        return None
