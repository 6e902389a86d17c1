"""One logged step of a model: a forward pass and its backward pass, or all passes up to an update."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from torch import Tensor, nn

from torchgraph_explorer.capture.backward_passes import BackwardPasses
from torchgraph_explorer.capture.call_stack import is_caller, is_running, users_frame
from torchgraph_explorer.capture.forward_modes import ForwardModes
from torchgraph_explorer.capture.gradient_hooks import (
    GradientHook,
    GradientHooks,
    Measure,
    SeriesKey,
    current_backward,
    series_key,
)
from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.parameters import Parameters
from torchgraph_explorer.capture.path_gradients import edge_of
from torchgraph_explorer.capture.tensor_infos import Described, described, hookable, infos, note_edges
from torchgraph_explorer.capture.tensor_tree import input_tensors, tensors
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.schema import Call, TensorInfo

SECONDS_IDLE = 0.5
SECONDS_FOR_FIRST_UPDATE = 1.0
SECONDS_FOR_BACKWARD = SECONDS_FOR_UPDATE = 60.0
"""Seconds after which a step is handed over although the next one has not begun: the training may have ended.

They are counted from the end of the last pass. The longer ones apply while a backward pass or an update may still come.
"""

MOST_FORWARDS = 64
"""Forward passes of a step that is one backward pass; further ones before that are not captured."""

PASSES = 4
"""Passes through each entrance that are recorded of a step that is one update."""

MOST_SKIPPED = 64
"""Passes that are not recorded although the hooks are on. After them, the hooks are removed until the next step."""


class CapturedStep:
    """The calls, tensors and gradients of one step. Puts hooks on the model's submodules; `finish` removes them.

    Attributes:
        model: The watched model, until `close`.
        thread: The thread that the step belongs to.
        step: Its number: how many steps of training were before it.
        calls: So far, a parent before its children.
        attached: Tensors that were given a name, by call and path.
        rows: The row of each series.
        trace: Follows the data, in a step whose graph is wanted; else None.
        backward_ended: A backward pass through the model has ended, and no forward pass has begun since.
        is_over: An update has ended it.
    """

    def __init__(
        self,
        model: nn.Module,
        step: int,
        *,
        called: nn.Module,
        kinds: frozenset[str],
        measure: Measure,
        trace: Trace | None,
        fail: Callable[[str, Exception], None],
        too_many: Callable[[], None],
        lock: threading.RLock,
        module_hooks: ModuleHooks,
        takes: Callable[[], bool],
        entered: Callable[[str], None],
        until_update: bool = False,
        updates: bool = False,
        is_first: bool = False,
        skip: frozenset[str] = frozenset(),
    ) -> None:
        """Put hooks on `model`.

        Args:
            model: The watched model.
            called: What the training loop calls: the model, or what it is wrapped in.
            step: Number of the step.
            kinds: Of `io`, `io_grad`, `params`, `params_grad`.
            measure: Turns tensors into rows.
            trace: To be entered while the model's forward pass runs, or None.
            fail: Called with a module's name and the exception that was raised in capturing it.
            too_many: Called when more forward passes come than one step may have.
            lock: Held while gradients are read and while the step is handed over.
            module_hooks: The hooks on the model's modules.
            takes: Whether a call of a module, while none is open, belongs to the step.
            entered: Called with the name of each module that is called so.
            until_update: The step ends with an update, not with a backward pass.
            updates: Measure how the update moves the parameters.
            is_first: No update was seen before.
            skip: Modules that are not captured, since that failed before.
        """
        self.step = step
        self.calls: list[Call] = []
        self.attached: dict[tuple[int, str], TensorInfo] = {}
        self.rows: dict[SeriesKey, int] = {}
        self.trace = trace
        self.backward_ended = False
        self.kinds = kinds
        self.model, self._measure, self._fail = model, measure, fail
        self._too_many = too_many
        self._dropped: set[str] = set()
        self.is_over = False
        self._until_update, self._updates, self._is_first = until_update, updates, is_first
        self._takes, self._entered = takes, entered
        self._passes: dict[str, int] = {}
        self._skipped = self._missed = self._forwards_before_update = 0
        self.thread = threading.get_ident()
        self._stack: list[OpenCall] = []
        self._counts: dict[str, int] = {}
        self._alive: list[weakref.ref[GradientHook]] = []
        self._forwards = 0
        self._without_backward = 0
        self._backward_passes = BackwardPasses(self._end_backward, lambda fault: self.drop("", fault))
        self._gradient_hooks = GradientHooks(
            measure, self.rows.__setitem__, self._backward_passes.begin, self.drop, lock
        )
        self._idle_since = time.monotonic()
        self._exception_before: BaseException | None = None
        self._modes = ForwardModes(trace)
        self._names = {module: name for name, module in model.named_modules() if name not in skip}
        self._module_hooks = module_hooks
        self._parameters = Parameters(self._names, measure, self.rows.__setitem__)
        try:
            self._put_on_hooks(called)
            if "params" in kinds:
                self._parameters.measure_sharded()
        except BaseException:  # no one else has this step, to remove the hooks
            self._remove_module_hooks()
            raise

    @property
    def forward_open(self) -> bool:
        """The model is being executed: its call began, and has neither returned nor been interrupted."""
        return bool(self._stack) and is_running(self._stack[0].frame, self.thread)

    @property
    def is_traced(self) -> bool:
        """Its forward passes so far were traced to their end."""
        return self._tracing is not None and self._forwards > 0 and not self._stack

    @property
    def awaits_backward(self) -> bool:
        """A backward pass may still come through each of its forward passes."""
        alive = all(hook() is not None for hook in self._alive)
        abandoned = bool(self._stack) or bool(self._without_backward)
        return not self.backward_ended and alive and not abandoned and self._forwards > 0

    @property
    def have_gradients(self) -> bool:
        """A backward pass has come through it."""
        return self._backward_passes.have_begun

    def is_idle(self) -> bool:
        """Whether nothing has happened for so long that the step may be handed over.

        False before the model is called, and after a backward pass that failed: its gradients are measured at the end.
        """
        if self._stack or self._forwards == 0:
            return False
        if self.is_over:
            return self._idle_for(SECONDS_IDLE)
        if self.awaits_backward:
            return self._idle_for(SECONDS_FOR_BACKWARD)
        if not self._until_update:
            return self._idle_for(SECONDS_IDLE)
        return self._idle_for(SECONDS_FOR_FIRST_UPDATE if self._is_first else SECONDS_FOR_UPDATE)

    def _idle_for(self, seconds: float) -> bool:
        return not self._backward_passes.are_on and time.monotonic() - self._idle_since > seconds

    def close(self) -> None:
        """Capture nothing more and release the model. For any thread that holds the lock."""
        self._gradient_hooks.closed = True
        self._names.clear()
        self._parameters.forget()
        del self.model

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called: a forward pass begins, or the model calls itself within one."""
        if self._module_hooks.listener is self:
            self.enter("", args, kwargs)
        else:
            self._missed += 1

    def _begin_pass(self, name: str, frame: Any) -> bool:
        """Module `name` is called while no call is open; returns whether the pass is recorded."""
        self._idle_since = time.monotonic()
        passes = self._passes[name] = self._passes.get(name, 0) + 1
        if passes > (PASSES if self._until_update else MOST_FORWARDS):
            self._skip(name, frame)
            return False
        self._forwards += 1
        self.backward_ended = False
        self._exception_before = sys.exc_info()[1]
        self._modes.enter(frame)
        self._entered(name)
        return True

    def _skip(self, name: str, frame: Any) -> None:
        self._missed += 1
        self._skipped += 1
        if not self._until_update:
            self._too_many()
        if not self._until_update or self._skipped > MOST_SKIPPED:
            self._remove_module_hooks()
            return
        skipped = OpenCall(-1, name, -1, frame)
        skipped.is_skipped = True
        self._stack.append(skipped)

    def attach(self, tensor: object, module: nn.Module, name: str) -> None:
        """Record tensors in `tensor` as `name` within the open call of `module`. Does nothing if none is open."""
        try:
            self._attach(tensor, module, name)
        except Exception as fault:  # ours, in the middle of the user's forward pass
            self.drop(self._names.get(module, ""), fault)

    def _attach(self, tensor: object, module: nn.Module, name: str) -> None:
        own = self._names.get(module)
        inside = next((each for each in reversed(self._stack) if each.name == own), None)
        if inside is None or inside.is_skipped or threading.get_ident() != self.thread:
            return
        inside.attached = counts = inside.attached or {}
        counts[name] = times = counts.get(name, 0) + 1
        with self._gradient_hooks.lock, NoDispatch():
            found = described(tensors(tensor, name if times == 1 else f"{name} #{times}"))
            self.attached.update({(inside.index, info.path): info for info, _ in found})
            self._observe_values(inside, "attached", found)
            self._hook_tensors(inside, "attached", found)
            if self._tracing is not None:
                self._tracing.attach(inside.index, found)

    def finish(self) -> None:
        """Remove every hook. Each part is done, also if another one fails."""
        self._finish(self._modes.leave)

    def give_up(self) -> None:
        """Remove every hook after an interrupt, which may still be leaving the forward pass."""
        self._finish(self._modes.leave_later)

    def _finish(self, leave: Callable[[], None]) -> None:
        with ExitStack() as parts:
            parts.callback(self._remove_module_hooks)
            parts.callback(self._gradient_hooks.remove)
            parts.callback(leave)
            self._stack.clear()

    def _put_on_hooks(self, called: nn.Module) -> None:
        self._module_hooks.put_on(self, self._names, model=called)

    def is_ours(self, name: str) -> bool:
        """Whether a call of `name` belongs to the forward pass, and not to another thread or a recomputation."""
        if threading.get_ident() != self.thread or name in self._dropped:
            return False
        if self._stack:
            return current_backward() == -1
        return not self.is_over and (self._until_update or not self.backward_ended) and self._takes()

    def end_forward(self) -> None:
        """The model has returned, or raised, and capturing that failed."""
        self._stack.clear()

    def is_done_by(self, one: object) -> bool:
        """Whether `one` is this step or a part of it."""
        parts = (self, self._gradient_hooks, self._backward_passes, self.trace)
        return one is not None and any(one is part for part in parts)

    def abandon(self) -> None:
        """An interrupt ends the forward pass, if one is being executed. No hook will be called."""
        if self._stack:
            self._stack.clear()
            self._without_backward += 1
            self._modes.leave_later()
            self.trace = None

    def leave_abandoned(self) -> None:
        """If an interrupt has ended the forward pass outside of our code: switch off what was switched on for it.

        For any thread that holds the lock.
        """
        if self._stack and not self.forward_open:
            self._modes.leave_later()

    def drop(self, name: str, fault: Exception) -> None:
        """Capturing `name` failed: capture it no more, and make no graph of this step: it would be incomplete."""
        self._dropped.add(name)
        if self.trace is not None and self.trace.fault is None:
            self.trace.fault = fault
        self._fail(name, fault)

    @property
    def _tracing(self) -> Trace | None:
        return self.trace if self.trace is not None and self.trace.fault is None else None

    def enter(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` is called."""
        with self._gradient_hooks.lock:
            frame = users_frame()
            self._unwind(frame)
            if self._stack[-1].is_skipped if self._stack else not self._begin_pass(name, frame):
                return
            self._enter(name, args, kwargs, frame)

    def _enter(  # noqa: PLR0917  # called for every call
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: Any
    ) -> None:
        number = self._counts[name] = self._counts.get(name, -1) + 1
        with NoDispatch():
            inputs = described(input_tensors(args, kwargs))
            parent = self._stack[-1].index if self._stack else None
            opened = OpenCall(len(self.calls), name, number, frame)
            if "io_grad" in self.kinds:
                note_edges(opened.edges, inputs)
            self.calls.append(Call(name, number, parent, infos(inputs), ()))
            self._stack.append(opened)
            self._observe_values(opened, "input", inputs)
            if "params" in self.kinds:
                self._parameters.measure_values(name)
            if (tracing := self._tracing) is not None:
                tracing.enter(opened.index, inputs, within=parent)

    def _unwind(self, frame: Any) -> None:
        """Forget the calls that `frame` is not within: an exception has ended them, and torch called no hook."""
        while self._stack and not is_caller(self._stack[-1].frame, frame):
            self._stack.pop()

    def leave(self, name: str, output: object) -> None:
        """Module `name` has returned `output`, or raised.

        `enter` was not called if a hook of the user's raised before ours.
        """
        with self._gradient_hooks.lock:  # to the end: without an open call the step could be handed over
            opened = self._pop(users_frame())
            if opened is not None and not opened.is_skipped:
                self._leave(opened, output)

    def _leave(self, opened: OpenCall, output: object) -> None:
        with NoDispatch():
            outputs = described(tensors(output, "output"))
            call = self.calls[opened.index]
            self.calls[opened.index] = Call(call.module, call.call, call.parent, call.inputs, infos(outputs))
            self._observe_values(opened, "output", outputs)
            hooks = self._hook_tensors(opened, "output", outputs)
            if "io_grad" in self.kinds:
                self._hook_inputs(opened, outputs)
            if (tracing := self._tracing) is not None:
                tracing.leave(opened.index, outputs)
        if not self._stack:
            self._end_forward(hooks)

    def _pop(self, frame: Any) -> OpenCall | None:
        """Remove and return the open call of `frame`, if there is one. Calls within it are over, too."""
        for at in reversed(range(len(self._stack))):
            if self._stack[at].is_of(frame):
                opened = self._stack[at]
                del self._stack[at:]
                return opened
        return None

    def _end_forward(self, hooks: list[GradientHook]) -> None:
        self._modes.leave()
        self._gradient_hooks.forget_graph()
        self._measure_remaining()
        self._idle_since = time.monotonic()
        failed = sys.exc_info()[1] is not self._exception_before
        self._exception_before = None
        self._alive += [weakref.ref(hook) for hook in hooks]
        if failed or not hooks:
            self._without_backward += 1
            if not failed and not self._until_update:  # torch would be iterating over these hooks
                self._remove_module_hooks()

    def _hook_inputs(self, opened: OpenCall, outputs: Described) -> None:
        """Put hooks where the gradient of each input comes back through this call."""
        made = [edge_of(tensor) for _, tensor in outputs if tensor.requires_grad]
        opened.walk.run(opened.edges, made)
        for edge, paths in opened.edges.items():
            consumers = opened.walk.crossing.get(edge)
            for path in paths:
                key = series_key(opened.name, opened.call, "input", path, "grad_norm")
                if consumers:
                    self._gradient_hooks.on_path(consumers, key)
                elif edge in made:  # returned as it came: the gradient of the tensor comes through this call
                    tensor = next(t for _, t in outputs if t.requires_grad and edge_of(t) == edge)
                    self._gradient_hooks.on_tensor(tensor, key)
        if self._stack:
            self._stack[-1].walk.add_child(opened.walk, made)

    def _hook_tensors(self, opened: OpenCall, role: str, found: Described) -> list[GradientHook]:
        """Put hooks where the gradients of these tensors arrive, and return them."""
        wanted = "io_grad" in self.kinds
        if not wanted and "params_grad" not in self.kinds:
            return []
        hooks = []
        for info, tensor in hookable(found, are_results=not self._stack):
            key = series_key(opened.name, opened.call, role, info.path, "grad_norm") if wanted else None
            hooks.append(self._gradient_hooks.on_tensor(tensor, key))
        return hooks

    def _observe_values(self, opened: OpenCall, role: str, found: Described) -> None:
        if "io" in self.kinds:
            for info, tensor in found:
                if is_readable(tensor):
                    key = series_key(opened.name, opened.call, role, info.path, "value")
                    self.rows[key] = self._measure.values(tensor)

    def end_with_backward(self) -> None:
        """No update is waited for any more."""
        self._until_update = False

    def continue_here(self) -> None:
        """The next pass comes in this thread, which may be another one than that of the passes before."""
        self.thread = threading.get_ident()

    def miss(self) -> None:
        """A pass belongs to the step, and is not recorded."""
        self._missed += 1

    def before_update(self, moved: list[Tensor]) -> None:
        """An optimizer is about to move the parameters in `moved`."""
        if self._gradient_hooks.closed or "params_grad" not in self.kinds:
            return
        if self._backward_passes.have_begun and not self.backward_ended and current_backward() == -1:
            self._gradient_hooks.end_all()  # it ended in an exception
        if self._missed or not self.backward_ended:  # these gradients are not those that were measured, if any were
            self._parameters.measure_gradients_of(moved, "grad")
        if self._updates:
            self._parameters.measure_gradients_of(moved, "optimizer_grad")
            self._parameters.before_update(moved)
        self._forwards_before_update = self._forwards

    def after_update(self, moved: list[Tensor]) -> None:
        """Optimizers have moved the parameters in `moved`: the step is over, but for what other optimizers move."""
        if self._gradient_hooks.closed:
            return
        if self._updates and "params_grad" in self.kinds:
            if self._forwards > self._forwards_before_update:  # in a closure, which the optimizer has called
                self._parameters.measure_gradients_of(moved, "optimizer_grad")
            self._parameters.after_update()
        self.is_over, self._idle_since = True, time.monotonic()
        self._remove_module_hooks()

    def _measure_remaining(self) -> None:
        if "params" in self.kinds:
            self._parameters.measure_remaining()

    def _measure_gradients(self) -> None:
        if "params_grad" in self.kinds:
            self._parameters.measure_gradients()

    def _end_backward(self, task: int) -> None:
        with self._gradient_hooks.lock:
            if self._gradient_hooks.closed:
                return
            self._gradient_hooks.end_backward(task)
            if not self._backward_passes.end(task) or self._stack:
                return  # it was one within the forward pass, or within another backward pass
            self._backward_passes.forget()
            if not self.is_over:
                self._measure_gradients()
            self._idle_since = time.monotonic()
            self.backward_ended = True
        if not self._until_update:
            self._remove_module_hooks()

    def conclude(self) -> None:
        """Nothing more will come: measure the gradients of a backward pass that ended in an exception."""
        if not self._gradient_hooks.closed and not self.is_over:
            self._measure_remaining()
        has_gradients = self._backward_passes.have_begun and not self.backward_ended and not self.is_over
        if has_gradients and not self._gradient_hooks.closed:
            self._gradient_hooks.end_all()
            self._measure_gradients()

    def _remove_module_hooks(self) -> None:
        """Remove the hooks on modules; those on gradients stay."""
        if self._module_hooks.listener is self:
            self._module_hooks.take_off()
