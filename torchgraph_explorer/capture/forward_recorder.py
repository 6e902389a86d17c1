"""Records the forward passes of one step, by hooks on the model's modules."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.call_spread import TOO_MANY_CALLS, TOO_MANY_INPUTS, is_recorded
from torchgraph_explorer.capture.call_stack import is_running, users_frame
from torchgraph_explorer.capture.direct_forwards import DirectForwards
from torchgraph_explorer.capture.forward_modes import ForwardModes
from torchgraph_explorer.capture.forward_passes import MOST_FORWARDS
from torchgraph_explorer.capture.gradient_hooks import GradientHook, current_backward
from torchgraph_explorer.capture.graph_length import TOO_LONG
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.step_parts import ForwardParts
from torchgraph_explorer.capture.step_states import Event, State
from torchgraph_explorer.capture.trace import Trace

TOO_MANY_FORWARDS = (
    f"A step had more than {MOST_FORWARDS} forward passes before its backward pass. Later ones are not recorded."
)

MOST_SKIPPED = 64
"""Passes that are not recorded while the hooks of all modules are on. After them, only entrances keep
theirs, and modules that were not called: the loop may enter these later."""


class ForwardRecorder:
    """The forward passes of one step (a `module_hooks.CallListener`).

    Attributes:
        calls: Their calls.
        passes: How many there were, and which of them are recorded.
        trace: Follows the data, in a step whose graph is wanted; else None.
        thread: The thread that the step belongs to.
        until_update: The step ends with an update, not with a backward pass.
        takes_more: Further forward passes may belong to it.
    """

    takes_more = True

    def __init__(self, parts: ForwardParts) -> None:
        """Put hooks on the modules."""
        self.calls, self.passes, self.trace = parts.calls, parts.passes, parts.trace
        self.thread, self.until_update = threading.get_ident(), parts.until_update
        self._modules, self._state, self._ended = parts.modules, parts.state, parts.ended
        self._modes = ForwardModes(parts.trace)
        self._direct = DirectForwards(parts.modules.by_name)
        if parts.trace is not None:
            parts.trace.each = self._look
        self._dropped: set[str] = set()
        self._recorded = frozenset(parts.modules.by_name)
        self._trained: set[int] = set()
        self._skipped = 0
        self._exception_before: BaseException | None = None
        try:
            self._put_on(self._modules.by_name)
        except BaseException:  # no one else has this object, to remove the hooks
            self.remove_hooks()
            raise

    @property
    def is_open(self) -> bool:
        """The model is being executed: its call began, and has neither returned nor been interrupted."""
        return bool(self.calls.open) and is_running(self.calls.open[0].frame, self.thread)

    @property
    def is_traced(self) -> bool:
        """The forward passes so far were traced to their end."""
        return self._tracing is not None and bool(self.passes.recorded_count) and not self.calls.open

    @property
    def trained(self) -> frozenset[str]:
        """The modules that were called in passes with gradients, and those that they are in."""
        trained, names = set(self._trained), set[str]()
        for at, call in enumerate(self.calls.done):
            if at in trained or call.parent in trained:
                trained.add(at)
                parts = call.module.split(".")
                names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return frozenset(names)

    @property
    def may_have_backward(self) -> bool:
        """A backward pass may still come through each forward pass."""
        is_over = self._state.now in {State.FORWARD_OVER, State.BACKWARD}
        return is_over and not self.calls.open and self.passes.all_may_have_backward

    @property
    def _tracing(self) -> Trace | None:
        return self.trace if self.trace is not None and self.trace.fault is None else None

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called: a forward pass begins, or the model calls itself within one."""
        if self._modules.hooks.listener is self:
            self.enter("", args, kwargs)
        else:
            self.passes.miss("")

    def records(self, name: str) -> bool:
        """Whether hooks are on module `name`."""
        return name in self._recorded

    def is_ours(self, name: str) -> bool:
        """Whether a call of `name` belongs to the forward pass, and not to another thread or a recomputation.

        Nor to what has interrupted our work, as a signal's handler does.
        """
        if threading.get_ident() != self.thread or name in self._dropped or interrupts.is_held(self._modules.lock):
            return False
        if self.calls.open:
            return current_backward() == -1
        takes_passes = self._state.is_open and (self.until_update or self._state.now is not State.BACKWARD_OVER)
        return takes_passes and self._modules.takes(name)

    def enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` is called."""
        if (costs := self.calls.costs) is None:
            self._enter(name, args, kwargs)
            return
        costs.pause()
        try:
            self._enter(name, args, kwargs)
        finally:
            costs.resume(self.calls.open)

    def _enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        with self._modules.lock:
            frame = users_frame()
            self.calls.unwind(frame)
            inside = self.calls.open
            if self._is_left_out(name, frame) if inside else not self._begin_pass(name, frame):
                return
            if self._tracing is not None:
                self._look()
            self.calls.begin(name, args, kwargs, frame, self._tracing)

    def leave(self, name: str, output: object) -> None:
        """Module `name` has returned `output`, or raised.

        `enter` was not called if a hook of the user's raised before ours.
        """
        if (costs := self.calls.costs) is None:
            self._leave(output)
            return
        costs.pause()
        try:
            self._leave(output)
        finally:
            costs.resume(self.calls.open)

    def _leave(self, output: object) -> None:
        with self._modules.lock:
            opened = self.calls.pop(users_frame())
            if opened is None or opened.is_skipped:
                return
            if self.calls.costs is not None:
                self.calls.costs.end(opened.index)
            hooks = self.calls.end(opened, output, self._tracing)
            if not self.calls.open:
                self._end_pass(hooks)

    def end_forward(self) -> None:
        """The model has returned, or raised, and recording that failed."""
        self.calls.open.clear()
        self._state.on(Event.FORWARD_ENDS)

    def drop(self, name: str, fault: Exception) -> None:
        """Recording `name` failed: record it no more, and make no graph of this step: it would be incomplete."""
        self._dropped.add(name)
        if self.trace is not None and self.trace.fault is None:
            self.trace.fault = fault
        self._modules.drop(name, fault)

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """Record tensors in `tensor` by this name within the open call of `module`. Does nothing if none is open."""
        if interrupts.is_held(self._modules.lock):
            return
        modules, inside = self._modules.by_name, None
        try:
            inside = next((each for each in reversed(self.calls.open) if modules.get(each.name) is module), None)
            if inside is None or inside.is_skipped or threading.get_ident() != self.thread:
                return
            with self._modules.lock:
                self.calls.attach(tensor, inside, name, self._tracing)
        except Exception as fault:  # ours, in the middle of the user's forward pass
            self.drop("" if inside is None else inside.name, fault)

    def abandon(self) -> None:
        """An interrupt ends the forward pass, if one is being executed. No hook will be called."""
        if self.calls.open:
            self.calls.open.clear()
            self.passes.end((), failed=True)
            self._modes.leave_later()
            self.trace = None
            self._state.on(Event.FORWARD_ENDS)

    def leave_abandoned(self) -> None:
        """If an interrupt has ended the forward pass outside of our code: switch off what was switched on for it.

        For any thread that holds the lock.
        """
        if self.calls.open and not self.is_open:
            self._modes.leave_later()

    def conclude(self) -> None:
        """Say what was seen that is not recorded, and record what only the whole step tells."""
        self.calls.conclude()
        if (sentence := self._direct.sentence()) is not None:
            self._modules.note(sentence)

    def finish(self) -> None:
        """Remove the hooks, and switch off what was switched on. Each is done, also if the other one fails."""
        self._finish(self._modes.leave)

    def give_up(self) -> None:
        """Do the same after an interrupt, which may still be leaving the forward pass."""
        self._finish(self._modes.leave_later)

    def remove_hooks(self) -> None:
        """Remove the hooks on modules."""
        if self._modules.hooks.listener is self:
            self._modules.hooks.take_off()

    def _put_on(self, modules: ModulesByName) -> None:
        if (called := self._modules.called()) is not None:
            hooks = self._modules.hooks
            quickly = self.calls.quickly(self._dropped, hooks.known, self._modules.lock)
            hooks.put_on(self, modules, model=called, quickly=quickly)

    def _finish(self, leave: Callable[[], None]) -> None:
        self.calls.open.clear()
        try:
            leave()
        finally:
            self.remove_hooks()

    def _begin_pass(self, name: str, frame: Any) -> bool:
        """Module `name` is called while no call is open; returns whether the pass is recorded."""
        if not self.passes.begin(name, until_update=self.until_update):
            self._skip(name, frame)
            return False
        self._state.on(Event.FORWARD_BEGINS)
        self._exception_before = sys.exc_info()[1]
        self._modes.enter(frame)
        self._modules.entered(name)
        if name and self._tracing is not None:
            self._direct.look_around(frame)
        if torch.is_grad_enabled():
            self._trained.add(len(self.calls.done))
        return True

    def _is_left_out(self, name: str, frame: Any) -> bool:
        """Whether a call of `name` within another call is not recorded: it is one of very many, or within one."""
        calls = self.calls
        if calls.open[-1].is_skipped:
            if not calls.open[0].is_skipped:
                calls.count(name)
            return True
        if is_recorded(calls.next_number(name)):
            return False
        calls.count(name)
        calls.skip(name, frame)
        self._modules.note(TOO_MANY_CALLS)
        return True

    def _skip(self, name: str, frame: Any) -> None:
        self._state.touch()
        self._skipped += 1
        if not self.until_update:
            self._modules.note(TOO_MANY_FORWARDS)
            self.remove_hooks()
            return
        if self._skipped == MOST_SKIPPED and self.passes.are_first:
            self._put_on({each: one for each, one in self._modules.by_name.items() if self._may_be_entrance(each)})
        self.calls.skip(name, frame)

    def _may_be_entrance(self, name: str) -> bool:
        """Whether a pass of this step began at module `name`, or may do so: it was not called yet."""
        return name in self.passes.begun or not self.calls.next_number(name)

    def _look(self) -> None:
        """An operation is executed, or a module called, in a step that is traced."""
        if self.calls.open and not self.calls.open[-1].is_skipped:  # what that calls would not be found among the open
            self._direct.look(self.calls.open[-1].frame, self.calls.open[-1].name)

    def _end_pass(self, hooks: list[GradientHook]) -> None:
        if self.calls.length.is_over:
            self._modules.note(TOO_LONG)
        if self.calls.lacks_inputs:
            self._modules.note(TOO_MANY_INPUTS)
        self._modes.leave()
        self._ended()
        failed = sys.exc_info()[1] is not self._exception_before
        self._exception_before = None
        self.passes.end(hooks, failed=failed)
        self._state.on(Event.FORWARD_ENDS)
        if not failed and not hooks and not self.until_update:  # if it failed, torch would be iterating over them
            self.remove_hooks()
