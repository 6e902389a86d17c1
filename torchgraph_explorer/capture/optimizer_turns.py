"""Optimizers that take turns, as those of a GAN: which of them make the next step, and whether theirs was logged.

Where two of them alternate, every 50th step would otherwise always be a step of the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Makers: TypeAlias = "frozenset[str]"
"""The names of the optimizers that make a step."""

MOST_ROWS = 1_000
"""Rows of steps that are remembered."""

MOST_ADDED = 8
"""Steps that are logged besides one that the schedule selects."""


_Row: TypeAlias = "tuple[Makers, int]"
"""A number of steps, one after the other, that the same optimizers made."""


def _followed_by(row: _Row, makers: Makers) -> _Row:
    return makers, min(row[1] + 1, MOST_ROWS) if makers == row[0] else 1


class OptimizerTurns:
    """The turns of a model's optimizers. The next step is expected to be made by those that followed last time."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self._latest: Makers = frozenset()
        self._before: _Row = frozenset(), 0
        self._next: dict[_Row, Makers] = {}
        self._selected = 0  # steps that the schedule has selected
        self._logged: dict[Makers, int] = {}  # how many it had selected when a step of theirs was last logged
        self._is_logged = self._was_logged = False  # the step that has begun, and the latest that was made
        self._added = 0

    def begin_step(self, *, is_selected: bool, is_logged: bool) -> None:
        """A step begins, which the schedule has selected or not, and which is logged or not.

        Not every step that is not logged is seen to begin.
        """
        self._note_logged()
        if is_selected:
            self._selected, self._added = self._selected + 1, 0
        elif is_logged:
            self._added += 1
        self._is_logged = is_logged

    def update(self, optimizers: Iterable[str], *, is_another: bool) -> None:
        """Optimizers of these names have made an update: another one, or together with others the latest one."""
        if not is_another:
            self._latest |= frozenset(optimizers)
            return
        self._note_logged()
        self._learn()
        self._latest, self._was_logged, self._is_logged = frozenset(optimizers), self._is_logged, False

    @property
    def is_due(self) -> bool:
        """Whether optimizers will make the next step of whom none was logged for too long.

        That is for as many selected steps as there are optimizers that take turns: enough to select each of them once.
        """
        following = self._next.get(_followed_by(self._before, self._latest)) if self._next else None
        if following is None or not self._selected or self._added >= MOST_ADDED:
            return False
        if self._was_logged and following == self._latest:
            return False
        logged = self._logged.get(following)
        return logged is None or self._selected - logged >= len({self._latest, *self._next.values()})

    def _note_logged(self) -> None:
        """It is known who made the latest step."""
        if self._was_logged and (self._latest in self._logged or len(self._logged) < MOST_ROWS):
            self._logged[self._latest] = self._selected
        self._was_logged = False

    def _learn(self) -> None:
        """Remember who made the latest step after the row before it, where that was not as before."""
        row = _followed_by(self._before, self._latest)
        if row[1] > 1:
            self._next.pop(self._before, None)
        elif self._latest and len(self._next) < MOST_ROWS:
            self._next[self._before] = self._latest
        self._before = row
