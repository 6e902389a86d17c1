"""What the training loop logged, and how its record ended."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema.training_facts import NotFinite


@dataclass(frozen=True, slots=True)
class Noted:
    """Something is not recorded. `Finished.notes` will have it, too.

    Attributes:
        time: When that was found, in seconds since the epoch.
        text: What, and why, in sentences.
    """

    time: float
    text: str


@dataclass(frozen=True, slots=True)
class StepNote:
    """A sentence that the training loop noted at a step.

    Attributes:
        step: The step.
        time: Seconds since the epoch.
        text: The sentence.
    """

    step: int
    time: float
    text: str


def titled(name: str, label: str | None) -> str:
    """A scalar as a sentence calls it: `loss`, or `loss (eval)` with its label."""
    return name if label is None else f"{name} ({label})"


@dataclass(frozen=True, slots=True)
class Logged:
    """What the training loop logged in a stretch of time: values of scalars, and notes.

    Attributes:
        names: Names of scalars; those that were logged with several labels once for each of them.
        name: Index in `names` of each value's scalar, `[n]` uint32.
        steps: Step of each value, `[n]` int64, in the order of logging.
        times: When each was logged, in seconds since the epoch, `[n]` float64.
        values: `[n]` float64; may be NaN or infinite.
        notes: In the order of noting.
        labels: Label of each of `names`, None without; empty if none has one.
    """

    names: tuple[str, ...]
    name: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    notes: tuple[StepNote, ...] = ()
    labels: tuple[str | None, ...] = ()

    @property
    def scalars(self) -> tuple[tuple[str, str | None], ...]:
        """Each of `names` with its label."""
        return tuple(zip(self.names, self.labels or (None,) * len(self.names), strict=True))


@dataclass(frozen=True, slots=True)
class Finished:
    """The session was closed in order.

    Attributes:
        time: Seconds since the epoch.
        notes: What was not recorded, in sentences; empty when all went well.
        steps: How many steps it had counted, which is the number of the next one; None if that is not known.
        not_finite: The first thing since the last recorded step that was seen not to be finite; None if none was.
    """

    time: float
    notes: tuple[str, ...] = field(default=())
    steps: int | None = None
    not_finite: NotFinite | None = None
