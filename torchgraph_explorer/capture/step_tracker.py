"""Follows a model from step to step: counts its steps, and captures those to be logged."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.call_context import is_in_backward, is_no_step
from torchgraph_explorer.capture.captured_step import CapturedStep, StepOptions, keep_in_loop
from torchgraph_explorer.capture.compiled_calls import CompiledCalls
from torchgraph_explorer.capture.current_step import CurrentStep
from torchgraph_explorer.capture.entrances import Entrances
from torchgraph_explorer.capture.facts.step_facts import StepFactsRecorder
from torchgraph_explorer.capture.facts.units import UnitWindows
from torchgraph_explorer.capture.finite_checks import FiniteChecks
from torchgraph_explorer.capture.forward_passes import PassChoice
from torchgraph_explorer.capture.forward_recorder import ForwardRecorder
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.modules_by_name import ModulesByName, modules_by_name
from torchgraph_explorer.capture.named_tensors import NamedTensors
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.observation import OPTIMIZER, StepListener
from torchgraph_explorer.capture.path_gradients import sequence_number
from torchgraph_explorer.capture.phases import Phase
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.silence import Silence
from torchgraph_explorer.capture.step_admission import NEVER_ENDED, StepAdmission
from torchgraph_explorer.capture.step_counter import StepCounter, StepsAre
from torchgraph_explorer.capture.step_parts import WatchedModules
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.capture.tensor_infos import described
from torchgraph_explorer.capture.tensor_tree import tensors
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.capture.young_garbage import collect_young
from torchgraph_explorer.console import reason
from torchgraph_explorer.schema import ModuleGraph

_NamedAhead: TypeAlias = "tuple[int, weakref.ref[Tensor], AttachedAs]"
"""A tensor that the loop has named before a step: the step, the tensor, and its name."""

MOST_NAMES_AHEAD = 1_000
"""Names that the loop attaches before the step begins."""


class StepTracker:
    """Follows one model, which is not kept alive. One permanent hook is on it, until `close`.

    A step is one update of the model by optimizers, with all passes since the one before it. Where no optimizer moves
    the model, it is a forward pass and its backward pass, or what the training loop marks.

    Attributes:
        silence: Why nothing is recorded, as long as nothing is.
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
        choice: PassChoice | None = None,
        selection: ModuleSelection | None = None,
        with_evaluations: bool = False,
    ) -> None:
        """Watch the passes of `model` in `phase`.

        Args:
            model: The model, or what it is wrapped in.
            listener: Tells which steps are logged, and takes them.
            kinds: Those of `io`, `io_grad`, `params` and `params_grad` that are measured.
            phase: Which passes are counted.
            optimizer: An optimizer of the model; its updates, and those of others, are measured.
            inline: Compiled models stay compiled in logged steps, except in those that are traced.
            by_updates: Steps are counted by the updates of optimizers; else each pass is one.
            choice: Which passes of a step are recorded.
            selection: Which modules are recorded; all without it.
            with_evaluations: Another tracker records the evaluations of a training.
        """
        self._listener, self._kinds = listener, kinds
        self.silence = Silence(expected=not by_updates, with_evaluations=with_evaluations)
        self._choice, self._selection = choice or PassChoice(), selection or ModuleSelection()
        self._measures_updates, self._by_updates = optimizer is not None, by_updates
        self._lock = interrupts.lock()
        self._broken: set[str] = set()
        self._logged, self._windows = -1, UnitWindows()
        self._node_before_update = -1
        self._trained: frozenset[str] = frozenset()
        self._learned: ModuleGraph | None = None
        self._named_ahead: dict[str, _NamedAhead] = {}
        self._called, self._phase = weakref.ref(model), phase
        self.silence.look(model)
        self._module_hooks = ModuleHooks()
        expected = StepsAre.UNKNOWN if optimizer is None else StepsAre.UPDATES
        self._counter = StepCounter(model, phase, steps_are=expected if by_updates else StepsAre.PASSES)
        self._checks = FiniteChecks(listener.not_finite, listener.finite_reader())
        self._current = CurrentStep(
            model, listener, self._module_hooks, is_pass=lambda: self._counter.counts_passes, learn=self._learn
        )
        self._entrances = Entrances(
            self._module_hooks, takes=self._takes_call, enter=self._on_entrance, fail=self._fail
        )
        self._admission = StepAdmission(
            self._counter,
            self._current,
            self._entrances,
            silence=self.silence,
            listener=listener,
            make=self._new_step,
            learn=self._learn_trained,
            asks_once=by_updates,
        )
        self._exits = ExitStack()
        try:
            self._compiled = CompiledCalls(
                model,
                self._current,
                admits=lambda called: self._admission.admits(called, compiled=True),
                stop_waiting=self._entrances.stop,
                note=listener.note,
                fail=self._fail,
                kinds=kinds,
                selection=self._selection,
                inline=inline,
                lock=self._lock,
            )
            self._exits.callback(self._compiled.close)
            process_state.attach_targets.watch_loop(self)
            self._exits.callback(process_state.attach_targets.leave_loop, self)
            process_state.scripting.take_over()
            process_state.recursion_room.hold(self)
            self._exits.callback(process_state.recursion_room.release, self)
            on_forward = Hook(self._on_forward, lambda fault: self._fail("", fault))
            self._exits.callback(model.register_forward_pre_hook(on_forward, with_kwargs=True).remove)
            if by_updates:
                on_output = Hook(self._on_output, self._fail_to_check)
                on = model.register_forward_hook(on_output, with_kwargs=True)
                self._exits.callback(self._module_hooks.remove, on)
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
                if self._admission.has_never_ended(self._called()):
                    self._listener.note(NEVER_ENDED)
                self._current.end()
                self._look_back_for_nan()
            finally:
                self._remove_all()
        interrupts.schedule_calls()  # what an interrupt has left to be done: nothing else asks for it from now on

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """Every module graph so far, with that of the current step once its forward pass is over."""
        with self._lock:
            return self._current.graphs

    @property
    def is_recording(self) -> bool:
        """Whether the step that the training is in, or that is about to begin, is logged."""
        with self._lock:
            self.look_back()
            try:
                return self._admission.is_recording
            except Exception as fault:  # ours, or of the predicate that log_freq is; the user's loop asks
                self._fail("", fault)
                return False

    def look_back(self) -> None:
        """Before the first step, look whether its number is known: the model may have been updated earlier."""
        with self._lock:
            try:
                if (model := self._called()) is not None:
                    self._counter.look_back(model)
            except Exception as fault:
                self._fail("", fault)

    @property
    def is_within(self) -> bool:
        """Whether a step has begun, and what ends it has not come."""
        with self._lock:
            return self._admission.is_within

    @property
    def upcoming(self) -> int:
        """The number of the step that begins next."""
        return self._counter.upcoming

    def attach_in_loop(self, tensor: object, name: AttachedAs) -> None:
        """Keep tensors that the loop has named (for `attach_targets.AttachableLoop`).

        They belong to the latest step until the next one begins. But a name that the loop first attached before the
        first step belongs to the step that begins next: it names batches.
        """
        if interrupts.is_held(self._lock):
            return
        with self._lock:
            try:
                if (model := self._called()) is None:
                    return
                one, is_within, ahead = self._current.one, self._admission.is_within, self._phase.named_ahead
                is_next = self._phase.is_within(model, next_pass=True)
                if is_next and self._counter.has_begun_none and one is None and len(ahead) < MOST_NAMES_AHEAD:
                    ahead.add(name.name)
                if is_within or name.name not in ahead:
                    if one is not None and self._phase.is_within(model):
                        one.attach_in_loop(tensor, name)
                elif not (is_next and self._admission.wants_next):
                    return
                elif keeper := self._listener.keeper_ahead(self._counter.upcoming):
                    with NoDispatch():
                        for info, each in described(tensors(tensor, name.name)):
                            keep_in_loop(keeper, info.path, each, name=name)
                            self._named_ahead[info.path] = self._counter.upcoming, weakref.ref(each), name
            except Exception as fault:  # ours, in the user's loop
                self._listener.note(f"a tensor cannot be attached ({reason(fault)}). Training goes on.")

    def connect(self, source: Tensor | str, target: Tensor | str) -> None:
        """The loop says that `target` is computed from `source`."""
        with self._lock:
            if (one := self._current.one) is not None:
                one.connect(source, target)

    def mark_step(self) -> None:
        """The training loop says that the step is over. From now on, only that ends a step."""
        with self._lock:
            try:
                if (model := self._called()) is not None:
                    self._admission.mark(model)
            except Exception as fault:  # ours, in the user's loop
                self._fail("", fault)

    @property
    def current_step(self) -> int | None:
        """The step that the training is in, see `StepCounter.current`."""
        return self._counter.current

    @property
    def first_step(self) -> int | None:
        """The first step of this watch, once it has ended."""
        return self._counter.first

    @property
    def step(self) -> int:
        """The step that a pass belongs to now."""
        return self._counter.number

    def before_step(self, optimizer: Optimizer) -> None:
        """An optimizer is about to move its parameters (for `optimizer_steps.OptimizerListener`)."""
        self._node_before_update = sequence_number()
        if self._current.one is None and self._counter.sees_updates:
            if self._counter.may_have_passed:
                self._check_gradient(optimizer)
            return
        with self._lock:
            if (model := self._called()) is not None:
                self._admission.before_update(model, optimizer)

    def after_step(self, optimizers: tuple[Optimizer, ...]) -> None:
        """Optimizers have moved their parameters (for `optimizer_steps.OptimizerListener`)."""
        with self._lock:
            if (model := self._called()) is None:
                return
            was_in_closure = sequence_number() != self._node_before_update
            if was_in_closure and self._current.one is None and self._counter.sees_updates:
                for each in optimizers:
                    self._check_gradient(each, is_updated=True)
            is_own = self._admission.after_update(model, optimizers)
            # models of an ensemble, say, that are trained one after the other: this one waits for its turn
            if not self.silence.is_over and (is_own or not process_state.optimizer_steps.are_watched(optimizers)):
                self.silence.update(is_own=is_own)
                self._note_silence()

    def has(self, optimizer: Optimizer) -> bool:
        """Whether it moves the model (for `optimizer_steps.OptimizerListener`)."""
        return self._counter.optimizers.has(optimizer)

    def fail_at_step(self, fault: Exception) -> None:
        """What was recorded of an update failed (for `optimizer_steps.OptimizerListener`): updates are not followed."""
        self._measures_updates = False
        process_state.optimizer_steps.remove(self)
        self._counter.steps_are, self._admission.is_quiet = StepsAre.PASSES, False
        self._listener.fail(OPTIMIZER, fault)

    def interrupted(self, at_work: Sequence[object]) -> None:
        """An interrupt came in our code, in this thread (for `interrupts.Interruptible`)."""
        self._module_hooks.is_walked = False
        own = (self, self._admission, self._counter, self._compiled)
        if any(each is part for each in at_work for part in own):
            self._current.give_up()
        else:
            self._current.interrupted(at_work)
        self._compiled.end_call()

    def settle(self) -> None:
        """Hand over a step after which nothing has happened for a while. For the idle timer's thread.

        Does nothing while another thread has the lock.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._note_silence()
            self._current.leave_abandoned()
            self._compiled.leave_abandoned()
            interrupts.schedule_calls()
            self._current.settle()
        finally:
            self._lock.release()

    def _note_silence(self) -> None:
        if self.silence.is_due():
            self._listener.note(f"no step was recorded in {self.silence.duration()}. {self.silence.reason()}")

    def _on_forward(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """The model is called. On a step that is not logged, this is all that runs.

        Without `kwargs`, this hook was removed by another one that torch has just called: torch iterates over a copy.
        A call in the middle of our work, as by a signal's handler, belongs to no step.
        """
        if self._admission.is_quiet or kwargs is None or interrupts.is_held(self._lock):
            return
        if is_no_step():
            if is_in_backward() and torch.is_grad_enabled():
                self.silence.call_in_backward()
            return
        with self._lock:
            if not self._current.is_inside:
                self._counter.note_call(model)
                known = self._compiled.take()
                if not (self._admission.admits(model) if known is None else known):
                    return
            one = self._current.one
            if one is not None and one.thread == threading.get_ident():
                process_state.attach_targets.enter(one)
                one.begin(args, kwargs)

    def _on_output(self, model: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        """The model has returned. In a step that is not logged, it is looked at whether that is finite.

        `rest` is what it was given by name, and its output; or the output alone, as in `_on_forward`.
        """
        if self._current.one is not None:
            self._checks.forget()
        elif torch.is_grad_enabled():
            kwargs = rest[0] if len(rest) > 1 else {}
            self._checks.look_at_output(rest[-1], self._counter.number, model=model, args=args, kwargs=kwargs)

    def _check_gradient(self, optimizer: Optimizer, *, is_updated: bool = False) -> None:
        try:
            model = self._called()
            if model is not None and self._counter.optimizers.moves(optimizer, model):
                self._checks.look_at_gradient(optimizer, self._counter.number, model=model, is_updated=is_updated)
        except Exception as fault:  # updates are followed all the same
            self._fail_to_check(fault)

    def _look_back_for_nan(self) -> None:
        """The training is over, or an exception has ended it, which NaN may have led to."""
        try:
            model = self._called()
            if model is not None and self._trained:
                has_failed = sys.exc_info()[1] is not None or hasattr(sys, "last_value")
                self._checks.look_back(model, self._counter.number, has_failed=has_failed)
        except Exception as fault:  # the record is finished all the same
            self._fail_to_check(fault)

    def _fail_to_check(self, fault: Exception) -> None:
        """Looking between logged steps has failed."""
        self._checks.stop()
        self._listener.note(
            f"NaN and infinity are no longer looked for between logged steps ({reason(fault)}). Everything else is "
            f"recorded."
        )

    def _takes_call(self, name: str) -> bool:
        """Whether a call of module `name`, while none is open, belongs to training and is no recomputation."""
        model = self._called()
        if model is None or interrupts.is_held(self._lock) or is_no_step():
            return False
        if self._counter.takes(model) or self._is_frozen(model, name):
            return True
        if not self._trained:
            self._entrances.refuse(name)
        self.silence.call()
        return False

    def _is_frozen(self, model: nn.Module, name: str) -> bool:
        """Whether module `name` is a part that is not trained, such as a teacher, of a model in training mode.

        It is, if no module in it was called in the training passes of the logged steps so far. So passes without
        gradients of what is trained, as in a rollout, do not belong to the step, and those of a target network do.
        """
        if not (self._trained and name and model.training) or self._counter.counts_passes:
            return False
        return name not in self._trained

    def _on_entrance(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Module `name` within the model is called in a step that has not begun."""
        with self._lock:
            model, current = self._called(), self._current
            if model is None or current.is_inside:
                return
            is_frozen = not self._counter.takes(model)
            try:
                is_logged = self._admission.admits(model, is_frozen=is_frozen)
            except Exception as fault:  # no hook is on any more that could tell
                self._fail("", fault)
                return
            if is_logged and (one := current.one) is not None:
                process_state.attach_targets.enter(one)
                if isinstance(one.forward, ForwardRecorder) and one.forward.records(name):
                    one.forward.enter(name, args, kwargs)

    def _new_step(self, called: nn.Module, step: int, compiled: bool) -> CapturedStep:
        collect_young()
        model = unwrapped(called)
        inline = self._compiled.forward() if compiled else None
        is_traced = self._current.known.traces > 0 and inline is None
        modules = self._recorded_modules(model)
        measure = self._listener.measure(step)
        self._logged += 1
        facts = (
            StepFactsRecorder(
                model,
                modules,
                optimizers=self._counter.optimizers,
                measure=measure,
                windows=self._windows,
                number=self._logged,
                lock=self._lock,
            )
            if self._by_updates
            else None
        )
        one = CapturedStep(
            model,
            step,
            modules=WatchedModules(
                called=weakref.ref(called),
                by_name=modules,
                hooks=self._module_hooks,
                takes=self._takes_call,
                entered=self._entrances.note,
                note=self._listener.note,
                drop=self._fail,
                lock=self._lock,
            ),
            rows=StepRows(self._kinds, measure, {}, self._listener.keeper(step)),
            trace=self._trace(modules, facts) if is_traced else None,
            options=StepOptions(
                until_update=not self._counter.counts_passes,
                updates=self._measures_updates,
                expects_update=self._counter.has_updates or bool(self._counter.optimizers.known),
                choice=self._choice,
                expected=self._current.passes,
                selection=self._selection,
            ),
            facts=facts,
            forward=inline or ForwardRecorder,
        )
        named, self._named_ahead = self._named_ahead, {}
        if named:
            self._name_ahead(one, named)
        for optimizer in self._counter.moved_by(process_state.optimizer_steps.open_here(), called):
            one.begin_in_closure(optimizer)
        return one

    def _recorded_modules(self, model: nn.Module) -> ModulesByName:
        """The modules that are recorded."""
        modules = modules_by_name(model)
        for name in self._broken & modules.keys():
            del modules[name]
        if self._selection.is_all:
            return modules
        chosen = self._selection.chosen(modules)
        return {name: module for name, module in modules.items() if name in chosen}

    def _name_ahead(self, one: CapturedStep, named: Mapping[str, _NamedAhead]) -> None:
        """Add the tensors that the loop has named before this step to its dependency graph."""
        try:
            for path, (number, tensor, name) in named.items():
                if number == one.step and (alive := tensor()) is not None:
                    one.name_in_loop([(path, alive)], name)
        except Exception as fault:  # ours: the step is recorded all the same
            self._listener.note(f"a tensor is not in the dependency graph ({reason(fault)}).")

    def _trace(self, modules: ModulesByName, facts: StepFactsRecorder | None) -> Trace:
        length, selects = GraphLength(), self._listener.selects()
        trace = Trace(None if selects is None else NamedTensors(selects, modules, length), length, modules)
        trace.lock = self._lock
        if facts is not None:
            trace.look_at = facts.look_at_operation
        return trace

    def _learn(self, ended: CapturedStep, graph: ModuleGraph | None) -> None:
        """A step is over, which had this graph."""
        self._compiled.learn(ended, graph)
        if graph is None or graph is not self._learned:
            self._learned = graph
            self._learn_trained(ended)

    def _learn_trained(self, one: CapturedStep) -> None:
        """What was called in the passes of a step is trained. So it shows which other calls belong to steps, too."""
        self._trained |= one.forward.trained
        if (model := self._called()) is not None:
            self._entrances.look_again(lambda name: self._is_frozen(model, name))

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
            parts.callback(self._current.drop)

    def _remove_all(self) -> None:
        with ExitStack() as parts:
            parts.callback(self._exits.close)
            parts.callback(self._module_hooks.take_off)
