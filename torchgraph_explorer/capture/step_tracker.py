"""Follows a model from step to step: counts its steps, captures those to be logged, and keeps its graphs."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.captured_step import MOST_FORWARDS, CapturedStep
from torchgraph_explorer.capture.compiled_entry import CompiledCall, CompiledEntries, EntryCall, until_left
from torchgraph_explorer.capture.entrances import Entrances
from torchgraph_explorer.capture.inline.capture import InlineCapture, saw_nothing, window_for
from torchgraph_explorer.capture.inline.registry import ProbeSite
from torchgraph_explorer.capture.inline.step import InlineStep
from torchgraph_explorer.capture.known_graphs import KnownGraphs
from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.observation import OPTIMIZER, Observation, StepListener
from torchgraph_explorer.capture.optimizer_steps import parameters_of
from torchgraph_explorer.capture.phases import Phase
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.silence import Silence
from torchgraph_explorer.capture.step_counter import MOST_WITHOUT_UPDATE, StepCounter
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import ModuleGraph

TOO_MANY_FORWARDS = (
    f"A step had more than {MOST_FORWARDS} forward passes before its backward pass; those beyond are not recorded."
)

INTERRUPTED = (
    "The training was interrupted, as by Ctrl-C, while a step was being recorded: that step is missing, or incomplete."
)

NOT_INLINE = (
    "compiled='inline' found no way into the compiled model: it was compiled, and called, before it was watched, or "
    "its compiled code is that of another model just like it. Logged steps run uncompiled instead. Call watch() first."
)


NO_UPDATE = (
    f"No optimizer has moved the model's parameters in {MOST_WITHOUT_UPDATE} passes. From now on, each forward pass "
    f"with its backward pass is a step, until one does."
)


class StepTracker:
    """Follows one model, which is not kept alive. One permanent hook is on it, until `close`.

    A step is one update of the model by optimizers, with all passes since the one before it. Where no optimizer moves
    the model, it is a forward pass and its backward pass.
    """

    def __init__(
        self,
        model: nn.Module,
        listener: StepListener,
        *,
        kinds: frozenset[str],
        phase: Phase,
        optimizer: Optimizer | None = None,
        inline: bool = False,
        by_updates: bool = True,
    ) -> None:
        """Watch the passes of `model` in `phase`.

        If `by_updates`, steps are counted by the updates of optimizers, of which `optimizer` is one whose updates are
        measured. `kinds` are those of `io`, `io_grad`, `params` and `params_grad` that are measured. If `inline`,
        compiled models stay compiled in logged steps, except in those that are traced.
        """
        self._listener, self._kinds = listener, kinds
        self.silence = Silence(expected=not by_updates)
        self._counter = StepCounter(model, phase, by_updates=None if by_updates and optimizer is None else by_updates)
        self._measures_updates = optimizer is not None
        self._asks_once = by_updates
        self._wanted: tuple[int, bool] | None = None
        self._lock = interrupts.lock()
        self._current: CapturedStep | None = None
        self._settled: CapturedStep | None = None
        self._known = KnownGraphs()
        self._broken: set[str] = set()
        self._was_interrupted = False
        self._called = weakref.ref(model)
        self._compiled = CompiledCall()
        self._module_hooks = ModuleHooks()

        self._entrances = Entrances(
            self._module_hooks, takes=self._takes_call, enter=self._on_entrance, fail=self._fail
        )

        def fail(fault: Exception) -> None:
            self._fail("", fault)

        self._exits = ExitStack()
        self._inline: InlineCapture | None = None
        try:
            self._inline = InlineCapture(model, self._show, kinds=kinds, fail=self._fail) if inline else None
            entries = CompiledEntries(model, before=self._before_compiled, after=self._after_compiled, fail=fail)
            self._exits.callback(entries.close)
            on_forward = model.register_forward_pre_hook(Hook(self._on_forward, fail), with_kwargs=True)
            self._exits.callback(on_forward.remove)
            if by_updates:
                process_state.optimizer_steps.add(self)
                self._exits.callback(process_state.optimizer_steps.remove, self)
                self._entrances.wait(unwrapped(model))
        except BaseException:  # no one else will have this object, to remove the hooks
            self._remove_all()
            raise
        interrupts.subscribe(self)

    def close(self) -> None:
        """Hand over the current step and remove everything from the model. May be called again."""
        with self._lock:
            try:
                self._end_step()
            finally:
                self._remove_all()

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """Every module graph so far, with that of the current step once its forward pass is over."""
        with self._lock:
            if (one := self._current) is not None:
                with suppress(Exception), NoDispatch():  # a fault of ours; it is reported when the step is over
                    return self._known.with_current(one)
            return tuple(self._known.graphs)

    @property
    def is_recording(self) -> bool:
        """Whether the step that the training is in, or that is about to begin, is logged."""
        with self._lock:
            one = self._current
            by_passes = self._counter.by_updates is False
            if self._counter.is_begun and (not by_passes or (one is not None and one.awaits_backward)):
                return one is not None
            return self._wants(self._counter.upcoming)

    def before_step(self, optimizer: Optimizer) -> None:
        """An optimizer is about to move its parameters (for `optimizer_steps.OptimizerListener`)."""
        with self._lock:
            model, one = self._called(), self._current
            if model is None or (one is None and self._counter.sees_updates):
                return
            if self._counter.moved_by([optimizer], model) and one is not None:
                one.before_update(parameters_of(optimizer))

    def after_step(self, optimizers: tuple[Optimizer, ...]) -> None:
        """Optimizers have moved their parameters (for `optimizer_steps.OptimizerListener`)."""
        with self._lock:
            if (model := self._called()) is None:
                return
            own = self._counter.moved_by(optimizers, model)
            if not self.silence.is_over:
                self.silence.update(is_own=bool(own))
                self._note_silence()
            if own:
                self._end_update(model, own)

    def _end_update(self, model: nn.Module, optimizers: Sequence[Optimizer] = ()) -> None:
        """The parameters were moved: by `optimizers`, or by something that torch's hooks did not show."""
        if self._current is not None:
            self._current.after_update([parameter for each in optimizers for parameter in parameters_of(each)])
        if not optimizers or self._counter.is_update(optimizers):
            self._counter.end_step()
            if self._entrances.are_within and self._wants(self._counter.upcoming):
                self._entrances.wait(unwrapped(model))

    def _note_silence(self) -> None:
        if self.silence.is_due():
            self._listener.note(f"nothing is recorded so far. {self.silence.reason()}")

    def fail_at_step(self, fault: Exception) -> None:
        """What was recorded of an update failed (for `optimizer_steps.OptimizerListener`): updates are not followed."""
        self._measures_updates = False
        process_state.optimizer_steps.remove(self)
        self._counter.by_updates = False
        self._listener.fail(OPTIMIZER, fault)

    def _wants(self, step: int) -> bool:
        """Whether `step` is to be logged. The listener is asked once for each step of training."""
        if self._wanted is None or self._wanted[0] != step or not self._asks_once:
            self._wanted = step, self._listener.wants(step)
        return self._wanted[1]

    def interrupted(self, at_work: Sequence[object]) -> None:
        """An interrupt came in our code, in this thread (for `interrupts.Interruptible`).

        A step that our code was working on is given up, since it may be half done. Otherwise, if the step is in its
        forward pass, that has ended.
        """
        one = self._current
        self._module_hooks.is_walked = False
        if any(each is self or (one is not None and one.is_done_by(each)) for each in at_work):
            self._was_interrupted = True
            self._give_up()
        elif one is not None and one.thread == threading.get_ident():
            one.abandon()
        self._compiled.end()

    def settle(self) -> None:
        """Hand over a step after which nothing has happened for a while. For the idle timer's thread.

        Its hooks are removed later, in the training's thread: autograd may be iterating over them. Does nothing while
        another thread has the lock.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._note_silence()
            if self._current is not None:
                self._current.leave_abandoned()
            interrupts.schedule_calls()
            if self._current is not None and self._current.is_idle():
                ended, self._current = self._current, None
                self._hand_over(ended)
                self._settled = ended
                ended.close()
        finally:
            self._lock.release()

    def _on_forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """The model is called. On a step that is not logged, this is all that runs.

        Without `kwargs`, this hook was removed by another one that torch has just called: torch iterates over a copy.
        """
        if kwargs is None or is_no_step():
            return
        with self._lock:
            if not self._is_inside():
                self._counter.note_call(model)
                known = self._compiled.take()
                if not (self._admits(model) if known is None else known):
                    return
            one = self._current
            if one is not None and one.thread == threading.get_ident():
                process_state.attach_targets.enter(one)
                one.begin(args, kwargs)

    def _takes_call(self) -> bool:
        """Whether a call of a module, while none is open, belongs to training and is no recomputation."""
        model = self._called()
        if model is None or is_no_step():
            return False
        if not (is_taken := self._counter.takes(model)):
            self.silence.call()
        return is_taken

    def _on_entrance(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` within the model is called in a step that has not begun."""
        with self._lock:
            model = self._called()
            if model is not None and not self._is_inside() and self._admits(model) and self._current is not None:
                process_state.attach_targets.enter(self._current)
                self._current.enter(name, args, kwargs)

    def _is_inside(self) -> bool:
        """Whether the model is being executed in a logged step."""
        return self._current is not None and self._current.forward_open

    def _admits(self, model: nn.Module, *, compiled: bool = False) -> bool:
        """Count a call of the model, which begins, and put on or remove hooks; returns whether it is logged."""
        if not self._counter.takes(model):
            return self._passes_by()
        if self._counter.begin_pass(model):
            self._end_update(model)
        if self._counter.by_updates is False:
            return self._admits_pass(model, compiled=compiled)
        if not self._counter.is_begun:
            self._end_step()
            return self._begin_step(model, compiled=compiled)
        return self._admits_another(model, compiled=compiled)

    def _passes_by(self) -> bool:
        """A call of another phase begins. Where a step is a pass, it ends that, unless a backward pass may come."""
        self.silence.call()
        one = self._current
        if self._counter.by_updates is False and not (one is not None and one.awaits_backward):
            self._end_step()
        return False

    def _admits_another(self, model: nn.Module, *, compiled: bool) -> bool:
        """Admit a further pass before an update."""
        one = self._current
        if (one is None or one.have_gradients) and self._counter.stops_waiting():
            self._listener.note(NO_UPDATE)
            return self._admits_pass(model, compiled=compiled)
        if isinstance(one, InlineStep):
            one.miss()
            return False
        if one is not None:
            one.continue_here()
        return one is not None

    def _admits_pass(self, model: nn.Module, *, compiled: bool) -> bool:
        """Admit a pass where a step is a forward pass and its backward pass."""
        one = self._current
        if one is not None:
            one.end_with_backward()
        if one is not None and one.awaits_backward and not one.is_over:
            here = one.thread == threading.get_ident()  # a call in another thread is not part of it
            if here:
                self._counter.next_step()
            return here
        self._end_step()
        return self._begin_step(model, compiled=compiled)

    def _begin_step(self, model: nn.Module, *, compiled: bool) -> bool:
        """Count a step, which begins with a call of the model; returns whether it is logged."""
        step, self.silence.is_over = self._counter.next_step(), True
        if not self._wants(step) or is_captured():
            self._entrances.stop()
            return False
        self._current = self._new_step(model, step, compiled=compiled)
        return True

    def _new_step(self, model: nn.Module, step: int, *, compiled: bool) -> CapturedStep:
        inline = self._inline.step_class() if compiled and self._inline is not None else None
        trace = Trace() if self._known.traces > 0 and inline is None else None
        make: Callable[..., CapturedStep] = inline or CapturedStep
        return make(
            unwrapped(model),
            step,
            called=model,
            kinds=self._kinds,
            measure=self._listener.measure(step),
            trace=trace,
            fail=self._fail,
            too_many=lambda: self._listener.note(TOO_MANY_FORWARDS),
            lock=self._lock,
            module_hooks=self._module_hooks,
            takes=self._takes_call,
            entered=self._entrances.note,
            until_update=self._counter.by_updates is not False,
            updates=self._measures_updates,
            is_first=not self._counter.has_updates,
            skip=frozenset(self._broken),
        )

    def _show(self, site: ProbeSite, what: int, tensor: Tensor) -> None:
        """An operation that is compiled into the model shows a tensor."""
        if isinstance(one := self._current, InlineStep):
            one.see(site, what, tensor)

    def _before_compiled(self, model: nn.Module, entry_call: EntryCall) -> None:
        """Something compiled that runs the model is called. On a step to be logged, it runs as it was written."""
        if is_no_step():
            return
        with self._lock:
            if self._is_inside() or self._compiled.is_within_another(id(entry_call.compiled)):
                return
            logged, window = self._admits(model, compiled=True), None
            if not logged:  # hooks on modules would be compiled, too
                self._entrances.stop()
            if logged and isinstance(one := self._current, InlineStep):
                window = window_for(one, model, entry_call)
            self._compiled.begin(id(entry_call.compiled), logged=logged, window=window)

    def _after_compiled(self, model: nn.Module, entry_call: EntryCall) -> None:
        """The compiled code has returned, or raised."""
        with self._lock:
            was_inline = self._compiled.end_at(id(entry_call.compiled))
            one = self._current
            if one is not None and not one.calls:
                self._drop_step()  # the compiled code did not call the model
            if was_inline and isinstance(one, InlineStep) and saw_nothing(one, model, entry_call):
                self._drop_step()
                self._close_inline()
                self._listener.note(NOT_INLINE)

    def _close_inline(self) -> None:
        inline, self._inline = self._inline, None
        if inline is not None:
            inline.close()

    def _end_step(self) -> None:
        self._note_interrupt()
        if self._settled is not None:
            self._release(self._settled)
            self._settled = None
        if (ended := self._current) is not None:
            self._release(ended)
            self._current = None
            self._hand_over(ended)

    def _note_interrupt(self) -> None:
        was_interrupted, self._was_interrupted = self._was_interrupted, False
        if was_interrupted:
            self._listener.note(INTERRUPTED)

    def _give_up(self) -> None:
        """Remove everything of the step from the model, and hand over nothing, although the step is not over."""
        given_up = self._settled, self._current
        self._settled = self._current = None
        with ExitStack() as parts:
            parts.callback(self._module_hooks.take_off)
            for one in given_up:
                if one is not None:
                    parts.callback(process_state.attach_targets.leave, one)
                    parts.callback(one.give_up)

    def _release(self, ended: CapturedStep) -> None:
        """Remove a step's hooks. Each part is done, also if another one fails."""
        with ExitStack() as parts:
            parts.callback(process_state.attach_targets.leave, ended)
            parts.callback(ended.finish)
            parts.callback(ended.conclude)
            parts.callback(self._stay_eager, ended)

    def _hand_over(self, ended: CapturedStep) -> None:
        self._report_trace(ended.trace)
        with NoDispatch():
            graph = self._known.add(ended)
        if self._inline is not None and not isinstance(ended, InlineStep):
            self._inline.learn(graph, ended.rows)
        self._listener.take(Observation(ended.step, ended.rows, graph))

    def _report_trace(self, trace: Trace | None) -> None:
        if trace is not None and trace.fault is not None:
            self._listener.fail("", trace.fault)

    def _fail(self, module: str, fault: Exception) -> None:
        """Capture `module` no more; if it is the model itself, capture nothing."""
        with self._lock:
            self._broken.add(module)
            if module == "":
                self._stop()
            self._listener.fail(module, fault)

    def _stop(self) -> None:
        """Remove everything from the model and hand over nothing."""
        with ExitStack() as parts:
            parts.callback(self._remove_all)
            parts.callback(self._drop_step)

    def _drop_step(self) -> None:
        ended, self._current = self._current, None
        if ended is not None:
            with ExitStack() as parts:
                parts.callback(process_state.attach_targets.leave, ended)
                parts.callback(ended.finish)
                parts.callback(self._stay_eager, ended)

    def _stay_eager(self, ended: CapturedStep) -> None:
        """If the step ends within its forward pass, keep the eager stance until that pass is over.

        Compiled code must not run in the second half of a forward pass that began eagerly. And what only the executing
        thread can remove is removed there, when the pass is over.
        """
        called = self._called()
        if ended.forward_open and called is not None:
            holder, held = object(), ExitStack()
            held.callback(process_state.eager.release, holder)
            held.callback(ended.finish)
            process_state.eager.hold(holder)
            until_left(called, held, ended.thread)

    def _remove_all(self) -> None:
        with ExitStack() as parts:
            parts.callback(self._exits.close)
            parts.callback(self._module_hooks.take_off)
            parts.callback(self._close_inline)
            parts.callback(self._compiled.end_if_left)


def is_captured() -> bool:
    """Whether a CUDA graph is being captured, which must contain nothing of ours."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_no_step() -> bool:
    """Whether the model is not called to compute something: it is compiled or traced, or a checkpoint runs it again."""
    if torch.compiler.is_compiling():  # first and alone: dynamo would break the graph at what follows
        return True
    return torch._C._current_graph_task_id() != -1 or torch._C._get_tracing_state() is not None
