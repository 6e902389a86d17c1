"""Decides for each pass of a model which step it belongs to, and whether that is logged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.call_context import is_captured
from torchgraph_explorer.capture.captured_step import CapturedStep
from torchgraph_explorer.capture.current_step import CurrentStep
from torchgraph_explorer.capture.entrances import Entrances
from torchgraph_explorer.capture.observation import StepListener
from torchgraph_explorer.capture.optimizer_turns import OptimizerTurns
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.silence import Silence
from torchgraph_explorer.capture.skipped_updates import is_skipped
from torchgraph_explorer.capture.step_counter import MOST_WITHOUT_UPDATE, StepCounter, StepsAre
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import StepEnd

NO_UPDATE = (
    f"No optimizer has updated the model's parameters in {MOST_WITHOUT_UPDATE} passes. Until one does, each forward "
    f"pass with its backward pass is a step. If something else updates them, call watcher.step_done() after it."
)

IN_CLOSURE = (
    "{} has called the model in more than {} passes of one `step`. Until that returns, each forward pass with its "
    "backward pass is a step."
)

NEVER_ENDED = (
    "The whole training was taken for one step: no optimizer has the model's parameters, and the loop calls modules "
    "within the model, or model.forward(x). Call model(x), or watcher.step_done() after each update."
)

EVAL_UPDATES = 2
"""Updates, one after the other, with passes in eval mode only before each, after which such passes are recorded."""


class StepAdmission:
    """Begins and ends the steps of one model, as its passes and updates come. Called under the step's lock.

    Attributes:
        is_quiet: Nothing is to be done at a call of the model: it is a further one in a step that is not logged, and
            whose end an optimizer will show.
    """

    def __init__(
        self,
        counter: StepCounter,
        current: CurrentStep,
        entrances: Entrances,
        *,
        silence: Silence,
        listener: StepListener,
        make: Callable[[nn.Module, int, bool], CapturedStep],
        learn: Callable[[CapturedStep], None],
        asks_once: bool,
    ) -> None:
        """Nothing has come.

        Args:
            counter: Counts the steps.
            current: The step that is logged.
            entrances: Where the model is entered.
            silence: Notes what is seen before the first step.
            listener: Tells which steps are logged.
            make: Makes a logged step of this model and number. The last argument is whether compiled code is called.
            learn: Called with the first step when it is over, before the second one is waited for.
            asks_once: The listener is asked once for each number.
        """
        self._counter, self._current, self._entrances = counter, current, entrances
        self._silence, self._listener, self._make = silence, listener, make
        self._learn, self._asks_once = learn, asks_once
        self._wanted: tuple[int, bool] | None = None
        self._eval_passes = self._eval_updates = 0
        self._turns = OptimizerTurns()
        self.is_quiet = False

    @property
    def is_recording(self) -> bool:
        """Whether the step that the training is in, or that is about to begin, is logged."""
        one = self._current.one
        is_over = self._counter.counts_passes and not (one is not None and one.awaits_backward)
        if self._counter.is_begun and not is_over:
            return one is not None
        return self.wants_next

    @property
    def is_within(self) -> bool:
        """Whether a step has begun, and what ends it has not come."""
        one = self._current.one
        if not self._counter.is_begun or (one is not None and one.is_updated):
            return False
        if one is None or not self._counter.may_count_passes:
            return not self._counter.counts_passes
        return one.forward_open or one.awaits_backward

    @property
    def wants_next(self) -> bool:
        """Whether the step that begins next is logged."""
        return self._selects(self._counter.upcoming) or self._adds(self._counter.upcoming)

    def has_never_ended(self, model: nn.Module | None) -> bool:
        """Whether the first step goes on after many calls and a backward pass, and no optimizer of `model` is there."""
        one, counter = self._current.one, self._counter
        if model is None or one is None or counter.steps_are is not StepsAre.UNKNOWN or counter.first is not None:
            return False
        is_long = one.forward.passes.count > MOST_WITHOUT_UPDATE and one.have_gradients
        return is_long and not counter.optimizers.exist(model)

    def admits(self, model: nn.Module, *, compiled: bool = False, is_frozen: bool = False) -> bool:
        """Count a call of the model, which begins, and put on or remove hooks; returns whether it is logged.

        Args:
            model: What the training loop calls.
            compiled: It calls compiled code.
            is_frozen: It calls a part that is not trained, which belongs to a step although no gradient is enabled.
        """
        is_own = is_frozen or self._counter.takes(model)
        self._counter.note_pass(is_own=is_own)
        if not is_own:
            return self._passes_by()
        if (ended := self._counter.begin_pass(model)) is not None:
            end, optimizers = ended
            self.end_update(model, optimizers, end=end)
        if self._counter.counts_passes:
            return self._admits_pass(model, compiled=compiled)
        if not self._counter.is_begun:
            self._current.end()
            return self._begin_step(model, compiled=compiled)
        return self._admits_another(model, compiled=compiled)

    def before_update(self, model: nn.Module, optimizer: Optimizer) -> None:
        """An optimizer is about to move its parameters."""
        one = self._current.one
        known = self._counter.upcoming
        is_own = bool(self._counter.moved_by([optimizer], model))
        if is_own and one is not None and one.is_updated and self._is_of_another_step(optimizer):
            self._current.end()
        elif is_own and one is not None:
            one.step += self._counter.upcoming - known  # it began before the earlier updates were known
            one.before_update(optimizer)
        elif one is not None:
            one.before_update_of_others(optimizer)

    def _is_of_another_step(self, optimizer: Optimizer) -> bool:
        """Whether the update that comes is that of another step than the one that is over.

        Its passes were not seen, or are still to come: it is given a closure that calls the model.
        """
        return self._counter.would_be_update([optimizer]) or self._counter.has_made_latest(optimizer)

    def after_update(self, model: nn.Module, optimizers: Sequence[Optimizer]) -> bool:
        """Optimizers have stepped; returns whether one of them has parameters of the model."""
        own = self._counter.moved_by(optimizers, model)
        if own:
            self._note_eval_mode()
            one = self._current.one
            if one is not None and one.is_updated and self._counter.would_be_update(own):
                self._current.end()  # a closure has called the model, in a step whose passes were not seen
            self.end_update(model, own, end="skipped" if all(map(is_skipped, own)) else "update")
        return bool(own)

    def _note_eval_mode(self) -> None:
        """An update comes. If all passes before it were in eval mode, and so it was at the last one, go by those."""
        is_by_eval = self._eval_passes and not self._counter.is_begun
        self._eval_updates = self._eval_updates + 1 if is_by_eval else 0
        self._eval_passes = 0
        if self._eval_updates == EVAL_UPDATES:
            self._counter.take_eval_mode()

    def end_update(self, model: nn.Module, optimizers: Sequence[Optimizer] = (), *, end: StepEnd) -> None:
        """An update has come, or was skipped: by `optimizers`, or by something that torch's hooks did not show."""
        is_over, self.is_quiet = not self._counter.counts_marks, False
        self._note_update(optimizers, end)
        if (one := self._current.one) is not None:
            names = [self._counter.optimizers.name_of(each) for each in optimizers]
            one.after_update(optimizers, names)
            if is_over:
                one.end_as(end)
            if not self._counter.has_updates:
                self._learn(one)
        if not is_over:
            return
        is_another = not optimizers or self._counter.is_update(optimizers)
        self._turns.update(map(self._counter.optimizers.name_of, optimizers), is_another=is_another)
        if is_another:
            if not self._counter.is_begun:
                self._entrances.note_update()
            self._counter.end_step()
            self._wait(model)

    def _note_update(self, optimizers: Sequence[Optimizer], end: StepEnd) -> None:
        known = self._counter.optimizers
        if end == "skipped":
            known.skipped_updates += 1
        else:
            known.witnesses.note(optimizers)

    def mark(self, model: nn.Module) -> None:
        """The training loop says that the step is over."""
        self.is_quiet = False
        if (one := self._current.one) is not None and one.end is None:
            one.end_as("mark")
        self._counter.mark()
        self._wait(model)

    def _wait(self, model: nn.Module) -> None:
        """If the next step is logged and may be entered at a module within the model, put hooks there."""
        if self._entrances.are_within and self.wants_next:
            self._entrances.wait(unwrapped(model))

    def _selects(self, step: int) -> bool:
        """Whether the schedule selects `step`. The listener is asked once for each step of training."""
        if self._wanted is None or self._wanted[0] != step or not self._asks_once:
            self._wanted = step, self._listener.wants(step)
        return self._wanted[1]

    def _adds(self, step: int) -> bool:
        """Whether `step` is logged although the schedule leaves it out, as it does with those of its optimizers."""
        return self._turns.is_due and self._listener.wants_turn(step)

    def _passes_by(self) -> bool:
        """A call of another phase begins. Where a step is a pass, it ends that, unless a backward pass may come."""
        self._silence.call()
        self._eval_passes += torch.is_grad_enabled()
        one = self._current.one
        if self._counter.counts_passes and not (one is not None and one.awaits_backward):
            self._current.end()
        return False

    def _admits_another(self, model: nn.Module, *, compiled: bool) -> bool:
        """Admit a further pass before an update."""
        one = self._current.one
        if (one is None or one.have_gradients) and self._counter.stops_waiting():
            self._listener.note(self._why_passes_count())
            return self._admits_pass(model, compiled=compiled)
        if one is None:
            return False
        if is_captured():
            one.forward.passes.miss("")
            self._current.end()
            return False
        if not one.forward.takes_more:
            one.forward.passes.miss("")
            return False
        one.continue_here()
        return True

    def _why_passes_count(self) -> str:
        """A sentence for a model that has had no update in so many passes, perhaps since the first one goes on."""
        stepping = process_state.optimizer_steps.open_here()
        own = [type(each).__name__ for each in stepping if self._counter.optimizers.has(each)]
        return IN_CLOSURE.format(own[0], MOST_WITHOUT_UPDATE) if own else NO_UPDATE

    def _admits_pass(self, model: nn.Module, *, compiled: bool) -> bool:
        """Admit a pass where a step is a forward pass and its backward pass."""
        if (thread := self._awaits_backward_in()) is None or is_captured():
            self._current.end()
            return self._begin_step(model, compiled=compiled)
        here = thread == threading.get_ident()  # a call in another thread is not part of it
        if here:
            self._counter.next_step()
        return here

    def _awaits_backward_in(self) -> int | None:
        """The thread of the step, if a backward pass may still come through it. No update is waited for any more."""
        if (one := self._current.one) is None:
            return None
        one.end_with_backward()
        return one.thread if one.awaits_backward and not one.is_updated else None

    def _begin_step(self, model: nn.Module, *, compiled: bool) -> bool:
        """Count a step, which begins with a call of the model; returns whether it is logged."""
        self._listener.between_steps()
        step, self._silence.is_over = self._counter.next_step(), True
        is_selected = self._selects(step)
        is_logged = is_selected or self._adds(step)
        self._turns.begin_step(is_selected=is_selected, is_logged=is_logged)
        if not is_logged or is_captured():
            self._entrances.stop()
            self.is_quiet = self._counter.shows_ends
            return False
        self._current.one = self._make(model, step, compiled)
        return True
