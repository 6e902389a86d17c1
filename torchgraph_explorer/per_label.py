"""`PerLabel`: a schedule for each kind of step, so that rare kinds are not missed."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real

from torchgraph_explorer.errors import OptionError

MOST_LABELS = 1 << 10
"""Labels that have a schedule of their own. Steps with further ones are not selected."""


@dataclass(frozen=True, slots=True)
class PerLabel:
    """A schedule for each label that `watcher.label` gives, instead of a number in `log_freq=`.

    Attributes:
        every: How many steps are between two selected steps of one label.
        backoff: The factor by which that distance grows after each selected step of the label; 1 or more.

    Example:
        >>> watcher = watch(model, log_freq=PerLabel(every=10), backend="none")
        >>> watcher.label("long sequences")
        >>> watcher.close()
    """

    every: int = 10
    backoff: float = 1.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            OptionError: One of them is not allowed.
        """
        if not isinstance(self.every, Integral) or isinstance(self.every, bool) or self.every < 1:
            raise OptionError(
                f"PerLabel(every={self.every!r}) is not a distance. Pass a whole number of steps, 1 or more."
            )
        is_number = isinstance(self.backoff, Real) and not isinstance(self.backoff, bool)
        if not is_number or not 1 <= float(self.backoff) < float("inf"):
            raise OptionError(f"PerLabel(backoff={self.backoff!r}) is not a factor. Pass a number, 1 or more.")


class LabelSchedule:
    """Which steps a `PerLabel` selects. A label is due from the first step on that has it."""

    def __init__(self, per_label: PerLabel) -> None:
        """No step was selected."""
        self._per_label = per_label
        self._due: dict[str | None, tuple[float, float]] = {}

    def note(self, label: str | None) -> None:
        """There are steps with this label."""
        if len(self._due) < MOST_LABELS:
            self._due.setdefault(label, (0.0, float(self._per_label.every)))

    def may_select(self, step: int) -> bool:
        """Whether a step whose label is not known yet may be selected: some label is due."""
        return not self._due or any(step >= due for due, _ in self._due.values())

    def selects(self, step: int, label: str | None) -> bool:
        """Whether a step with this label is selected."""
        known = self._due.get(label)
        return len(self._due) < MOST_LABELS if known is None else step >= known[0]

    def take(self, step: int, label: str | None) -> bool:
        """Like `selects`; if the step is selected, the next one with its label is due later."""
        if not self.selects(step, label):
            return False
        _, distance = self._due.get(label, (0.0, float(self._per_label.every)))
        self._due[label] = step + distance, distance * self._per_label.backoff
        return True
