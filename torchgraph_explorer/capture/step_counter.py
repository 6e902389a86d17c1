"""Counts the steps of a model: the updates of its parameters, or its passes where no optimizer moves them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.gradient_hooks import current_backward
from torchgraph_explorer.capture.optimizer_steps import ModelOptimizers, ParameterWrites
from torchgraph_explorer.capture.path_gradients import sequence_number
from torchgraph_explorer.capture.phases import Phase

MOST_WITHOUT_UPDATE = 100
"""Passes without an update, after which each is taken for a step, although there is an optimizer."""


class StepCounter:
    """The number of the step that each pass of one model in one phase belongs to.

    Attributes:
        by_updates: A step is an update. False: it is a pass. None while that is not known: in the first step.
        is_begun: A pass of a step was seen that no update has ended.
        has_updates: An update was seen.
        sees_updates: Torch's hooks show the updates.
    """

    def __init__(self, model: nn.Module, phase: Phase, *, by_updates: bool | None) -> None:
        """Count the steps of `model` in `phase`."""
        self.by_updates = by_updates
        self.is_begun = self.has_updates = self.sees_updates = False
        self._phase = phase
        self._optimizers = ModelOptimizers(model)
        self._writes = ParameterWrites()
        self._was_called = False
        self._passes = 0
        self._updated_by: set[int] = set()
        self._updated_at = sequence_number(), -1

    @property
    def upcoming(self) -> int:
        """The number of the step that begins next."""
        return self._phase.step

    def takes(self, model: nn.Module) -> bool:
        """Whether a pass that begins now is one of the phase."""
        return self._phase.takes(model)

    def next_step(self) -> int:
        """A step begins, which has this number."""
        number = self._phase.next_step()  # first: after an interrupt in between, the next pass begins another step
        self.is_begun = True
        return number

    def begin_pass(self, model: nn.Module) -> bool:
        """A pass begins; returns whether an update has ended the step before it that torch's hooks did not show."""
        if self.by_updates is None and self.is_begun:  # no update has come between: will one come?
            self.by_updates = self._optimizers.exist(model)
        self._passes += 1
        if self.by_updates is False or self.sees_updates:
            return False
        was_moved = self.is_begun and self._writes.are_new()
        self._writes.note(model)
        return was_moved

    def note_call(self, model: nn.Module) -> None:
        """The model itself is called, so that its passes are seen in every step."""
        self._was_called = self._was_called or self._phase.takes(model)

    def moved_by(self, optimizers: Sequence[Optimizer], model: nn.Module) -> list[Optimizer]:
        """Those that have parameters of the model, and are stepping now."""
        own = [each for each in optimizers if self._optimizers.moves(each, model)]
        self.sees_updates = self.sees_updates or bool(own)
        return own

    def is_update(self, optimizers: Sequence[Optimizer]) -> bool:
        """Whether `optimizers` have made an update of their own, and not a part of the latest one.

        Several of them make one update if no pass was between them. Where the passes of a step that is not logged are
        not seen, there was none if autograd made no node.
        """
        backward, node = current_backward(), sequence_number()
        before, self._updated_at = self._updated_at, (node, backward)
        if backward != -1 and backward == before[1]:
            return False
        is_repeated = any(id(each) in self._updated_by for each in optimizers)
        is_another = self.is_begun or (node != before[0] and (is_repeated or not self._was_called))
        if is_another:
            self._updated_by.clear()
        self._updated_by.update(map(id, optimizers))
        return is_another

    def end_step(self) -> None:
        """An update ends the step; if none of its passes was seen, it is counted now."""
        if not self.is_begun:
            self._phase.next_step()
        self.by_updates = self.has_updates = True
        self.is_begun, self._passes = False, 0

    def stops_waiting(self) -> bool:
        """Whether so many passes have come without any update that none is waited for; from then on, passes count."""
        if self.has_updates or self._passes <= MOST_WITHOUT_UPDATE:
            return False
        self.by_updates = False
        return True
