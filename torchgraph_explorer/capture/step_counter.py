"""Counts the steps of a model: the updates of its parameters, its passes, or what the training loop marks."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.gradient_hooks import current_backward
from torchgraph_explorer.capture.look_again import LookAgain
from torchgraph_explorer.capture.optimizer_steps import ModelOptimizers, ParameterWrites
from torchgraph_explorer.capture.path_gradients import sequence_number
from torchgraph_explorer.capture.phases import Phase
from torchgraph_explorer.capture.resumed_steps import ResumedSteps, updates_by
from torchgraph_explorer.schema import StepEnd

MOST_WITHOUT_UPDATE = 100
"""Passes without an update, after which each is taken for a step, although there is an optimizer."""


class StepsAre(Enum):
    """What a step of the model is."""

    UNKNOWN = "not known: no update has come so far, and no second pass"
    UPDATES = "an update of its parameters, with all passes since the one before"
    PASSES = "a forward pass and its backward pass"
    MARKS = "all passes between two calls of `step_done`"


class StepCounter:
    """The number of the step that each pass of one model in one phase belongs to.

    Attributes:
        steps_are: What a step is.
        is_begun: A pass of a step was seen that nothing has ended.
        has_updates: An update was seen.
        sees_updates: Torch's hooks show the updates.
        first: The first step, once it has ended; until then, its number may become that of a resumed training.
        optimizers: Those of the model.
    """

    def __init__(self, model: nn.Module, phase: Phase, *, steps_are: StepsAre) -> None:
        """Count the steps of `model` in `phase`."""
        self.steps_are = steps_are
        self.is_begun = self.has_updates = self.sees_updates = False
        self.first: int | None = None
        self._latest, self._ended_at = 0, -1
        self.optimizers = ModelOptimizers(model)
        self._phase = phase
        self._resumed = ResumedSteps(phase)
        self._again = LookAgain()
        self._writes = ParameterWrites()
        self._was_called = self._has_looked = False
        self._passes = self._earlier = 0
        self._updated_by: set[int] = set()
        self._updated_at = sequence_number(), -1

    @property
    def upcoming(self) -> int:
        """The number of the step that begins next."""
        return self._phase.step

    @property
    def current(self) -> int | None:
        """The step that the training is in; None for the first one.

        After an update and before the next pass, it is the one that has ended. Where the passes of a step that is not
        logged are not seen, the next one has begun if autograd has made a node since.
        """
        if self.first is None:
            return None
        is_unseen = not self.is_begun and not self._was_called and sequence_number() != self._ended_at
        if is_unseen or self.is_begun:
            return self.number
        return self._latest

    @property
    def number(self) -> int:
        """The number of the step that a pass belongs to now."""
        return self._phase.latest if self.is_begun else self._phase.step

    @property
    def shows_ends(self) -> bool:
        """Whether torch's hooks on optimizers show the end of each step."""
        is_shown = self.sees_updates and self.steps_are is StepsAre.UPDATES
        return is_shown and not self.optimizers.may_skip

    @property
    def counts_passes(self) -> bool:
        """Whether each pass is a step."""
        return self.steps_are is StepsAre.PASSES

    @property
    def has_begun_none(self) -> bool:
        """Whether no step has begun so far."""
        return self.first is None and not self.is_begun

    @property
    def may_count_passes(self) -> bool:
        """Whether a step is a pass, or may turn out to be: no optimizer of the model is known."""
        return self.counts_passes or (self.steps_are is StepsAre.UNKNOWN and not self.optimizers.known)

    @property
    def counts_marks(self) -> bool:
        """Whether a step is what the training loop marks."""
        return self.steps_are is StepsAre.MARKS

    def takes(self, model: nn.Module) -> bool:
        """Whether a pass that begins now is one of the phase."""
        return self._phase.takes(model)

    def note_pass(self, *, is_own: bool) -> None:
        """A pass begins, of the phase or not."""
        self._phase.note_pass(is_own=is_own)

    def take_eval_mode(self) -> None:
        """The model is trained in eval mode."""
        self._phase.take_eval_mode()

    def next_step(self) -> int:
        """A step begins, which has this number."""
        self._note_end()
        number = self._phase.next_step()  # first: after an interrupt in between, the next pass begins another step
        self.is_begun = True
        return number

    def _note_end(self) -> None:
        if self.is_begun:
            self._latest = self.number
            self.first = self._latest if self.first is None else self.first

    def look_back(self, model: nn.Module) -> None:
        """Before the first step, look for updates that were made earlier."""
        if self.counts_passes or self.has_updates or self.is_begun:
            return
        if self._again.is_due(model):
            self._look(model)
            self._again.end()
        else:
            self._note_updates(model)

    def _look(self, model: nn.Module) -> None:
        """Find the optimizers of the model, and the updates that they have made so far."""
        self.optimizers.look(model)
        self._note_updates(model)

    def _note_updates(self, model: nn.Module) -> None:
        self._resumed.note(self.optimizers.known, model, begun=int(self.is_begun))

    def begin_pass(self, model: nn.Module) -> tuple[StepEnd, list[Optimizer]] | None:
        """A pass begins; returns what ended the step before it, and whose update, if no hook has shown it."""
        if not self._has_looked:  # the first pass
            self._has_looked = True
            self._look(model)
        if self.counts_passes:
            return None
        if self.steps_are is StepsAre.UNKNOWN and self.is_begun:  # no update has come between: will one come?
            self.steps_are = StepsAre.UPDATES if self.optimizers.exist(model) else StepsAre.PASSES
        self._passes += 1
        was_moved = not self.sees_updates and self.is_begun and self._writes.are_update()
        if not self.sees_updates:
            self._earlier = self._writes.take_earlier()
            self._writes.note(model)
        skipped = self.optimizers.skipped()
        if self.counts_marks or not self.is_begun or not (was_moved or skipped):
            return None
        return ("update", []) if was_moved else ("skipped", skipped)

    def note_call(self, model: nn.Module) -> None:
        """The model itself is called, so that its passes are seen in every step."""
        self._was_called = self._was_called or self._phase.takes(model)

    def moved_by(self, optimizers: Sequence[Optimizer], model: nn.Module) -> list[Optimizer]:
        """Those of `optimizers` that have parameters of the model."""
        own = [each for each in optimizers if self.optimizers.moves(each, model)]
        if own and not (self.sees_updates or self._resumed.is_known) and any(map(updates_by, own)):
            self._look(model)  # it was loaded after the first pass
        self.sees_updates = self.sees_updates or bool(own)
        return own

    def is_update(self, optimizers: Sequence[Optimizer]) -> bool:
        """Whether `optimizers`, which have stepped, have made an update of their own, not a part of the latest one."""
        is_another = self.would_be_update(optimizers)
        self._updated_at = sequence_number(), current_backward()
        if is_another:
            self._updated_by.clear()
        self._updated_by.update(map(id, optimizers))
        self._resumed.after_update(optimizers, is_another=is_another)
        return is_another

    @property
    def may_have_passed(self) -> bool:
        """Whether there may have been a pass since the latest update; else an optimizer calls the model itself."""
        return self.is_begun or self._updated_at[0] != sequence_number()

    def has_made_latest(self, optimizer: Optimizer) -> bool:
        """Whether `optimizer` has made the latest update, or a part of it."""
        return id(optimizer) in self._updated_by

    def would_be_update(self, optimizers: Sequence[Optimizer]) -> bool:
        """Whether a step of `optimizers` makes an update of its own.

        Several of them make one update if no pass was between them. Where the passes of a step that is not logged are
        not seen, there was none if autograd made no node.
        """
        node, backward = self._updated_at
        if current_backward() not in {-1, backward}:
            return True
        if current_backward() != -1:
            return False
        is_repeated = any(map(self.has_made_latest, optimizers))
        return self.is_begun or (node != sequence_number() and (is_repeated or not self._was_called))

    def end_step(self, *, is_marked: bool = False) -> None:
        """The step is over; if none of its passes was seen, it is counted now.

        Earlier updates that were not known as such count with it: their passes were taken for passes of this step.
        """
        if not self.is_begun:
            self._phase.next_step()
            self.is_begun = True
        self._note_end()
        self._phase.pass_over(self._earlier)
        self.is_begun, self._passes, self._ended_at = False, 0, sequence_number()
        self._earlier = 0
        if not is_marked:
            self.has_updates, self.steps_are = True, StepsAre.UPDATES

    def mark(self) -> None:
        """The training loop says that the step is over. From now on, only that ends a step."""
        was_marked, self.steps_are = self.counts_marks, StepsAre.MARKS
        if self.is_begun or was_marked:
            self.end_step(is_marked=True)

    def stops_waiting(self) -> bool:
        """Whether so many passes have come without any update that none is waited for; from then on, passes count."""
        if self.has_updates or self.counts_marks or self._passes <= MOST_WITHOUT_UPDATE:
            return False
        self.steps_are = StepsAre.PASSES
        return True
