"""Refers to numbers that were measured on a device, and are known once its memory has been copied to the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.schema import TrainingFacts

PendingFacts: TypeAlias = "Callable[[npt.NDArray[np.float32]], TrainingFacts]"
"""Gives the facts from the statistics of all rows of the step. For the writer's thread."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the step's statistics that belongs to no series.

    Attributes:
        number: As `Measure` numbered it.
    """

    number: int

    def __call__(self, statistics: npt.NDArray[np.float32], name: str) -> float:
        """The statistic called `name`."""
        return float(statistics[self.number, COLUMN[name]])
