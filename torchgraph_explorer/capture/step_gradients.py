"""The gradients of one step: of its tensors, of the parameters after its backward passes, and around its update."""

from __future__ import annotations

import threading
from collections.abc import Callable

from torch import Tensor

from torchgraph_explorer.capture import native_calls
from torchgraph_explorer.capture.backward_passes import BackwardPasses
from torchgraph_explorer.capture.gradient_hooks import GradientHooks, SeriesKey, current_backward
from torchgraph_explorer.capture.parameters import Parameters
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.capture.step_states import Event, State, StepState


class StepGradients:
    """Follows the backward passes of one step, and measures the parameters' gradients when they are complete.

    Attributes:
        hooks: The hooks on tensors.
        passes: The backward passes.
    """

    def __init__(
        self,
        rows: StepRows,
        state: StepState,
        parameters: Parameters,
        *,
        lock: threading.RLock,
        drop: Callable[[str, Exception], None],
        is_within_forward: Callable[[], bool],
        begun: Callable[[], None],
        measured: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """No backward pass has begun.

        Args:
            rows: Where measured gradients go.
            state: The step's state, which changes with its backward passes.
            parameters: Those of the model.
            lock: Held while gradients are read.
            drop: Called with a module's name and the exception raised in reading its gradients.
            is_within_forward: Whether a forward pass is being executed.
            begun: Called when a backward pass begins.
            measured: Called when one has ended that belongs to the step.
            ended: Called after each backward pass.
        """
        self.passes = BackwardPasses(self._end_backward, lambda fault: drop("", fault))
        self.hooks = GradientHooks(self._read, self._begin_backward, drop, lock)
        makers, measure = native_calls.makers(), rows.measure.native
        if makers is not None and measure is not None and "io_grad" in rows.kinds:
            kept = native_calls.keeping(rows.keeper)
            self.hooks.quickly = makers.gradients((lock.acquire, lock.release, measure.norms, rows.rows, *kept))
        self._rows = rows
        self._kinds, self._state, self._parameters = rows.kinds, state, parameters
        self._is_within_forward, self._begun, self._measured, self._ended = is_within_forward, begun, measured, ended
        self._are_complete = False

    @property
    def are_unread(self) -> bool:
        """Whether a backward pass has begun, after whose end those of the parameters were not measured."""
        return self.passes.have_begun and self._state.now is not State.BACKWARD_OVER

    def before_update(self, moved: list[Tensor], *, is_missed: bool, measures_update: bool) -> None:
        """An optimizer is about to move the parameters in `moved`. If `is_missed`, not all passes were recorded."""
        if self.hooks.closed or not self._rows.uses("params_grad"):
            return
        if self.are_unread and current_backward() == -1:
            self.hooks.end_all()  # the backward pass ended in an exception
        if self._state.is_open:  # of several optimizers that make an update, the first one
            self._are_complete = not is_missed and self._state.now is State.BACKWARD_OVER
        if not self._are_complete or self._parameters.are_settled:  # others than were measured, if any were
            self._parameters.measure_gradients_of(moved, "grad")
        else:
            self._parameters.measure_missing_gradients_of(moved)
        if measures_update:
            self._parameters.measure_gradients_of(moved, "optimizer_grad")
            self.copy_parameters(moved)

    def copy_parameters(self, moved: list[Tensor]) -> None:
        """The parameters in `moved` are about to be moved, and how far is measured after it."""
        if "params_grad" in self._kinds:
            self._parameters.before_update(moved)

    def after_closure(self, moved: list[Tensor], *, is_missed: bool, measures_update: bool) -> None:
        """An optimizer has called the model itself, and moved the parameters in `moved`."""
        if self.hooks.closed or not self._rows.uses("params_grad"):
            return
        if is_missed or self._state.now is not State.BACKWARD_OVER:
            self._parameters.measure_gradients_of(moved, "grad")
        if measures_update:
            self._parameters.measure_gradients_of(moved, "optimizer_grad")

    def after_update(self) -> None:
        """Optimizers have moved their parameters."""
        if not self.hooks.closed and self._rows.uses("params_grad"):
            self._parameters.after_update()

    def conclude(self) -> None:
        """Nothing more will come: measure the gradients of a backward pass that ended in an exception."""
        if self.hooks.closed or not self._state.is_open:
            return
        if self._rows.uses("params"):
            self._parameters.measure_remaining()
        if self.are_unread:
            self.hooks.end_all()
            self._measure()

    def _begin_backward(self) -> None:
        if self.passes.begin():
            self._begun()
        if self._state.now is State.FORWARD_OVER:
            self._state.on(Event.BACKWARD_BEGINS)

    def _end_backward(self, task: int) -> None:
        with self.hooks.lock:
            if self.hooks.closed:
                return
            self.hooks.end_backward(task)
            if not self.passes.end(task) or self._is_within_forward():
                return  # it was one within the forward pass, or within another backward pass
            self.passes.forget()
            if self._state.is_open:
                self._measure()
                self._measured()
            self._state.on(Event.BACKWARD_ENDS)
        self._ended()

    def _read(self, keys: tuple[SeriesKey, ...], gradient: Tensor) -> None:
        """Measure and keep a gradient, of the tensors of these series."""
        if "io_grad" in self._kinds:
            row = self._rows.measure.norms(gradient)
            for key in keys:
                self._rows.rows[key] = row
        if (keeper := self._rows.keeper) is not None:
            for key in keys:
                keeper.take(key, gradient)

    def _measure(self) -> None:
        if self._rows.uses("params_grad"):
            self._parameters.measure_gradients()
