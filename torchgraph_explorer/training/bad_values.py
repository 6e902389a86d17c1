"""Notes the first values that are not finite between recorded steps, so that the next step is recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain
from torchgraph_explorer.schema import NotFinite, NotFiniteOrigin, titled

MOST_NAMES = 1000
"""Scalars that are told apart. Values of further ones are not looked at."""


class BadValues:
    """What has had NaN or infinity: scalars that were logged, and what was seen of the model.

    Attributes:
        asks_for_step: The next step is to be recorded.
    """

    def __init__(self) -> None:
        """Begin without a value that is not finite."""
        self.asks_for_step = False
        self._names: set[str] = set()
        self._first: NotFinite | None = None

    def look(self, step: int | None, scalars: Mapping[str, object], label: str | None = None) -> None:
        """Look at values that were logged at a step. The first bad one of each scalar asks for the next step."""
        for name, value in scalars.items():
            if _is_bad(value) and len(self._names) < MOST_NAMES and (title := titled(name, label)) not in self._names:
                self._names.add(title)
                self.note(step, f"scalar {title}")

    def note(self, step: int | None, what: str, origin: NotFiniteOrigin | None = None) -> None:
        """Something was not finite at a step (None: not known) that may not be recorded: the next one is to be."""
        self.asks_for_step = True
        if step is not None and (self._first is None or step < self._first.step):
            self._first = NotFinite(step, what, origin)

    def take(self) -> NotFinite | None:
        """The first one since this was last asked."""
        first, self._first = self._first, None
        return first


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
