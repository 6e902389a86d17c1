"""The forward passes of one step: how many there were, and which of them are recorded."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torchgraph_explorer.capture.gradient_hooks import GradientHook

Which: TypeAlias = Literal["first", "spread", "last"]

PASSES = 4
"""Passes through each entrance that are recorded of a step, by default."""

MOST_FORWARDS = 64
"""Forward passes of a step that is one backward pass; further ones before that are not recorded."""


@dataclass(frozen=True, slots=True)
class PassChoice:
    """Which passes of a step that is one update are recorded.

    Attributes:
        most: How many, of those through each entrance.
        which: The first ones, the last ones, or some that are spread over the step. How many there will be is not known
            before: the latter two go by the number in the logged step before.
    """

    most: int = PASSES
    which: Which = "first"

    def takes(self, number: int, recorded: int, expected: int | None) -> bool:
        """Whether pass `number` is recorded, after `recorded` ones, of some `expected` ones (None: not known)."""
        if recorded >= self.most:
            return False
        if self.which == "first" or expected is None or expected <= self.most:
            return True
        if self.which == "last":
            return number >= expected - self.most
        return number >= recorded * expected // self.most


class ForwardPasses:
    """The forward passes of one step.

    Attributes:
        begun: How many there were through each entrance, by the name of its module.
        recorded: How many of those are recorded.
        is_missed: One was not recorded.
    """

    def __init__(self, choice: PassChoice, expected: Mapping[str, int]) -> None:
        """None has begun. `expected` is `begun` of the logged step before."""
        self.begun: dict[str, int] = {}
        self.recorded: dict[str, int] = {}
        self.is_missed = False
        self._choice, self._expected = choice, expected
        self._without_backward = 0
        self._results: list[weakref.ref[GradientHook]] = []

    def begin(self, name: str, *, until_update: bool) -> bool:
        """One begins at module `name`; returns whether it is recorded."""
        number = self.begun.get(name, 0)
        recorded = self.recorded.get(name, 0)
        self.begun[name] = number + 1
        if until_update:
            is_recorded = self._choice.takes(number, recorded, self._expected.get(name))
        else:
            is_recorded = recorded < MOST_FORWARDS
        self.recorded[name] = recorded + is_recorded
        self.is_missed = self.is_missed or not is_recorded
        return is_recorded

    def miss(self, name: str) -> None:
        """One begins at module `name`, and cannot be recorded."""
        self.begun[name] = self.begun.get(name, 0) + 1
        self.is_missed = True

    @property
    def are_first(self) -> bool:
        """Whether the first ones are recorded, so that none of those that come after them is."""
        return self._choice.which == "first"

    def end(self, results: Iterable[GradientHook], *, failed: bool) -> None:
        """One is over, and has these hooks on its results, by which a backward pass may come; or it has `failed`."""
        found = [weakref.ref(hook) for hook in results]
        self._results += found
        if failed or not found:
            self._without_backward += 1

    @property
    def all_may_have_backward(self) -> bool:
        """Whether a backward pass may still come through each that is over."""
        return not self._without_backward and all(hook() is not None for hook in self._results)

    @property
    def count(self) -> int:
        """How many forward passes have begun."""
        return sum(self.begun.values())

    @property
    def recorded_count(self) -> int:
        """How many forward passes are recorded."""
        return sum(self.recorded.values())
