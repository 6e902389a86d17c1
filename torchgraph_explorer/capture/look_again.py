"""When to look again for the optimizers of a model, while a program asks for the step and nothing is trained yet."""

from __future__ import annotations

import sys
import time

from torch import nn

from torchgraph_explorer.capture.modules_by_name import parameters_within

MOST_SIGNS = 16
"""How many signs of a new optimizer are believed."""

SPACING = 20
"""Without a sign, the next look comes after so many times what the last one took."""


class LookAgain:
    """To find the optimizers takes 0.2 s in a large program, and an agent may ask at each of its first moves.

    An optimizer refers to the parameters that it moves. So there may be a new one where they have other numbers of
    references than at any earlier look.
    """

    def __init__(self) -> None:
        """Begin before the first search."""
        self._signs: set[tuple[int, ...]] = set()
        self._next = 0.0
        self._begun = 0.0

    def is_due(self, model: nn.Module) -> bool:
        """Whether to look now. If so, `end` is called afterwards."""
        self._begun = time.perf_counter()
        if len(self._signs) < MOST_SIGNS:
            sign = tuple(sys.getrefcount(parameter) for parameter in parameters_within(model))
            if sign not in self._signs:
                self._signs.add(sign)
                return True
        return self._begun >= self._next

    def end(self) -> None:
        """Note that the search is over."""
        now = time.perf_counter()
        self._next = now + SPACING * (now - self._begun)
