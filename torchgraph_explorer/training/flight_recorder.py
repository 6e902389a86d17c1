"""The kept tensors of the latest steps, which wait in memory until something asks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic, sleep
from typing import NamedTuple, Protocol

from torchgraph_explorer.training.rank_decisions import Alone, Decisions

MOST_BYTES = 128 << 20
"""The most bytes that wait in memory. If the steps take more, fewer steps wait."""

LAST_SECONDS = 2.0
"""How long the end of a record waits for what another rank still decides."""


class Waiting(Protocol):
    """The kept tensors of a step."""

    is_kept: bool
    reasons: list[str]

    @property
    def size(self) -> int:
        """The size of the kept tensors in memory, in bytes."""

    @property
    def before(self) -> int:
        """How many steps before this one are kept with it, if something asks for it."""

    def ask(self, reason: str) -> None:
        """Keep the tensors, for this reason."""

    def arrays(self) -> object:
        """What was kept. May have to wait for a device."""

    def done(self, used: int | None) -> None:
        """The step was written or dropped. The kept tensors of the run now take `used` bytes; None if not known."""


class Entry(NamedTuple):
    """A step, and how to write what is kept of it."""

    step: int
    kept: Waiting
    write: Callable[[], None]


class FlightRecorder:
    """Writes the steps that are kept, and holds the others back for a while. For the writer's thread alone."""

    def __init__(self, note: Callable[[str], None], decisions: Decisions | None = None) -> None:
        """Hold nothing.

        Args:
            note: Called with a sentence on what cannot be held.
            decisions: What other ranks ask for.
        """
        self._note = note
        self._decisions = decisions or Alone()
        self._held: deque[Entry] = deque()
        self._latest = -1
        self._asked_ahead: list[tuple[int, str]] = []

    def take(self, entry: Entry) -> None:
        """A step is over. If it was asked for, it is written with those before it."""
        kept, self._latest = entry.kept, entry.step
        try:
            if kept.reasons and not kept.is_kept:
                self._decisions.publish(entry.step, kept.reasons[-1])
        finally:  # it is kept here even if the other ranks cannot be told
            self._take(entry)
        self.look()

    def ask(self, step: int, reason: str) -> None:
        """Keep `step`, if it is held, and those before it."""
        try:
            self._decisions.publish(step, reason)
        finally:
            self._ask(step, reason)

    def look(self) -> None:
        """Do as another rank has decided. It may be ahead: what it says of steps to come waits for them."""
        asked, self._asked_ahead = [*self._asked_ahead, *self._decisions.news()], []
        for step, reason in asked:
            if step > self._latest:
                self._asked_ahead.append((step, reason))
            else:
                self._ask_here(step, reason)

    def end(self) -> None:
        """No further step is taken. What is held waits for the last decisions of another rank, for `LAST_SECONDS`."""
        self._decisions.end()
        until = monotonic() + LAST_SECONDS
        self.look()
        while self._held and not self._decisions.is_over and monotonic() < until:
            sleep(0.02)
            self.look()
        for step, reason in self._asked_ahead:
            self._ask_here(step, reason)

    def _take(self, entry: Entry) -> None:
        kept = entry.kept
        if kept.reasons:
            self._release(entry.step, kept.reasons[-1], most=kept.before)
        if kept.reasons or kept.is_kept:
            entry.write()
            return
        try:
            kept.arrays()  # what is on a GPU is released there
        except BaseException:  # no one else has it, to release its memory
            kept.done(None)
            raise
        self._held.append(entry)
        self._shrink()

    def _ask_here(self, step: int, reason: str) -> None:
        """Keep the steps that the first rank keeps. Those after them stay."""
        later = [one for one in self._held if one.step > step]
        self._held = deque(one for one in self._held if one.step <= step)
        self._ask(step, reason)
        self._held.extend(later)

    def _ask(self, step: int, reason: str) -> None:
        if self._held and self._held[-1].step >= step:
            latest = self._held.pop()
            latest.kept.ask(reason)
            self._take(latest)
        elif self._held:
            self._release(step, reason, most=self._held[-1].kept.before)

    def close(self) -> None:
        """Drop the steps that are held, since nothing asks for them any more."""
        while self._held:
            self._held.popleft().kept.done(None)

    def _release(self, step: int, reason: str, *, most: int) -> None:
        """Write the latest `most` of the steps that are held, and drop the others."""
        while len(self._held) > most:
            self._held.popleft().kept.done(None)
        while self._held:
            held = self._held.popleft()
            held.kept.ask(f"before step {step}: {reason}")
            held.write()

    def _shrink(self) -> None:
        """Hold no more than is asked for, and than fits into memory: the latest one, and those before it."""
        before = self._held[-1].kept.before
        while len(self._held) > before + 1 + self._decisions.held_longer:
            self._held.popleft().kept.done(None)
        while len(self._held) > 1 and sum(one.kept.size for one in self._held) > MOST_BYTES:
            self._held.popleft().kept.done(None)
            self._note(
                f"Fewer steps than Keep(before={before}) are held in memory, since they would take more than "
                f"{MOST_BYTES >> 20} MB."
            )
