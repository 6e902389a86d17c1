"""Which of several evaluations at one step is recorded: a record has one of each step."""

from __future__ import annotations


class EvaluationTurns:
    """Lets evaluations with different labels take turns. Of one evaluation, the first pass is recorded.

    Attributes:
        have_met: A label was refused, since an evaluation with another one was recorded at the same step.
    """

    def __init__(self) -> None:
        """Begin before the first evaluation."""
        self._recorded: tuple[int, str | None] = -1, None
        self._asked = -1
        self._waiting: list[str | None] = []
        self.have_met = False

    def takes(self, step: int, label: str | None) -> bool:
        """Whether a pass at `step`, of an evaluation with this label, is recorded. May be asked again."""
        self._begin(step)
        if self._recorded[0] == step:
            if label != self._recorded[1]:
                self.have_met = True
                self._wait(label)
            return False
        if self._waiting and label != self._waiting[0]:
            self._wait(label)
            return False
        return True

    def note(self, step: int, label: str | None) -> None:
        """Note that the evaluation with this label is recorded."""
        self._recorded = step, label
        if label in self._waiting:
            self._waiting.remove(label)

    def _begin(self, step: int) -> None:
        """A label whose turn it was at the step before, and which did not come there, is waited for no more."""
        if step != self._asked:
            if self._waiting and self._recorded[0] != self._asked:
                del self._waiting[0]
            self._asked = step

    def _wait(self, label: str | None) -> None:
        if label not in self._waiting:
            self._waiting.append(label)
