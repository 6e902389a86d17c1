"""Finds the steps that NaN or infinity begins in, so that the tensors of these are kept."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.nonfinite import Traits, are_nonfinite, traits
from torchgraph_explorer.schema import Series

SeriesKey: TypeAlias = "tuple[str, int | None, str, str, str]"


class NonfiniteSteps:
    """Knows whether the step before had NaN or infinity: from then on, each step may have it."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self._was_found = False
        self._known: tuple[tuple[SeriesKey, ...], Traits] | None = None

    def found(self, keys: tuple[SeriesKey, ...], statistics: npt.NDArray[np.float32]) -> str | None:
        """Where a step has NaN or infinity that the one before had not, in words; None if it has none.

        Args:
            keys: The series of the step.
            statistics: The statistics of each, `[n, STATISTICS]`.
        """
        if self._known is None or self._known[0] != keys:
            series = [Series(number, *key) for number, key in enumerate(keys)]  # type: ignore[arg-type]
            self._known = keys, traits(series)
        flags = are_nonfinite(np.arange(len(keys)), statistics, self._known[1])
        was_found, self._was_found = self._was_found, bool(flags.any())
        if was_found or not self._was_found:
            return None
        module, call, role, path, kind = keys[int(np.argmax(flags))]
        place = f"module {module!r}" if module else "the model"
        return f"NaN or infinity in {kind} of {role} {path!r} of {place}{f' (call {call + 1})' if call else ''}"
