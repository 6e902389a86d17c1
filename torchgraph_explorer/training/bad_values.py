"""Sees the first value of a logged scalar that is not finite, so that the next step is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain

MOST_NAMES = 1000
"""Scalars that are told apart. Values of further ones are not looked at."""


class BadValues:
    """Which scalars have had NaN or infinity.

    Attributes:
        asks_for_step: The next step is to be recorded.
    """

    def __init__(self) -> None:
        """None has."""
        self.asks_for_step = False
        self._names: set[str] = set()

    def look(self, scalars: Mapping[str, object]) -> None:
        """Look at values that were logged. The first bad one of each scalar asks for the next step."""
        for name, value in scalars.items():
            if _is_bad(value) and name not in self._names and len(self._names) < MOST_NAMES:
                self._names.add(name)
                self.asks_for_step = True


def _is_bad(value: object) -> bool:
    """Whether it is not finite. Of a tensor that is not in host memory, that cannot be seen without waiting: False."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Tensor):
        with NoDispatch():
            if plain(value) is not value or not is_readable(value):  # torch.func has wrapped it, or it has no value
                return False
            if type(value) is Tensor and value.is_cpu and value.numel() == 1 and value.is_floating_point():
                return not math.isfinite(value.item())
    return False
