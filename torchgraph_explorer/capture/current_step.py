"""The logged step that a model is in: how it begins, and the four ways in which it ends."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from torch import nn

from torchgraph_explorer.capture.captured_step import CapturedStep
from torchgraph_explorer.capture.compiled_entry import until_left
from torchgraph_explorer.capture.known_graphs import KnownGraphs
from torchgraph_explorer.capture.module_hooks import ModuleHooks
from torchgraph_explorer.capture.no_dispatch import NoDispatch
from torchgraph_explorer.capture.observation import Observation, StepListener
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.console import reason
from torchgraph_explorer.schema import ModuleGraph, StepFacts, TensorGraph

INTERRUPTED = (
    "The training was interrupted, for example by Ctrl-C, while a step was being recorded. That step is missing or "
    "incomplete."
)


NO_MODULE_GRAPH = "the module graph of some steps is not known, since tracing it failed"

NO_TENSOR_GRAPH = "the dependency graph of kept tensors is not recorded, since tracing it failed"


class CurrentStep:
    """Holds the step that is being recorded, and hands it over when it ends.

    It ends in one of four ways:

    - `end`: in order, in the training's thread, when the next step begins or the watcher is closed. It is handed over.
    - `settle`: it has come to rest. It is handed over in the idle timer's thread, and its hooks are removed later, by
      `end` in the training's thread: autograd may be iterating over them.
    - `drop`: a fault of ours, or it was none after all. Nothing is handed over.
    - `give_up`: an interrupt came in our code, so that it may be half recorded. Nothing is handed over, and that is
      noted.

    Attributes:
        one: The step; None between logged steps.
        known: The graphs of the model.
        passes: Forward passes through each entrance in the logged step before.
    """

    def __init__(
        self,
        model: nn.Module,
        listener: StepListener,
        module_hooks: ModuleHooks,
        *,
        is_pass: Callable[[], bool],
        learn: Callable[[CapturedStep, ModuleGraph | None], None],
    ) -> None:
        """No step is being recorded.

        Args:
            model: What the training loop calls. It is not kept alive.
            listener: Takes the steps.
            module_hooks: The hooks on the model's modules.
            is_pass: Whether a step of the model is a pass.
            learn: Called with each step that is handed over, and its graph.
        """
        self.one: CapturedStep | None = None
        self.known = KnownGraphs()
        self.passes: Mapping[str, int] = {}
        self._tensor_graphs: dict[int, TensorGraph] = {}
        self._settled: CapturedStep | None = None
        self._was_interrupted = False
        self._called = weakref.ref(model)
        self._listener, self._module_hooks = listener, module_hooks
        self._is_pass, self._learn = is_pass, learn

    @property
    def graphs(self) -> tuple[ModuleGraph, ...]:
        """Every module graph so far, with that of the step once its forward pass is over."""
        if self.one is not None:
            with suppress(Exception), NoDispatch():  # a fault of ours; it is reported when the step is over
                return self.known.with_current(self.one)
        return tuple(self.known.graphs)

    @property
    def is_inside(self) -> bool:
        """Whether the model is being executed in the logged step."""
        return self.one is not None and self.one.forward_open

    def end(self) -> None:
        """Hand over the step, if there is one, and remove its hooks. For the training's thread."""
        self._note_interrupt()
        if self._settled is not None:
            self._release(self._settled)
            self._settled = None
        if (ended := self.one) is not None:
            self._release(ended)
            self.one = None
            self._hand_over(ended)
            ended.close()

    def leave_abandoned(self) -> None:
        """If an interrupt has ended its forward pass: switch off what was switched on for that. For any thread."""
        if self.one is not None:
            self.one.forward.leave_abandoned()

    def settle(self) -> None:
        """Hand over the step if it has come to rest. For the idle timer's thread, which has the lock."""
        if (one := self.one) is not None and one.is_idle():
            self.one, self._settled = None, one
            one.hand_over()
            try:
                one.forward.conclude()
                self._hand_over(one)
            finally:  # its hooks, which stay on for now, read nothing more
                one.close()

    def drop(self) -> None:
        """Remove the hooks of the step, and hand over nothing."""
        ended, self.one = self.one, None
        if ended is not None:
            self._take_down(ended)

    def give_up(self) -> None:
        """Remove everything from the model after an interrupt, and hand over nothing, although no step is over."""
        given_up = self._settled, self.one
        self._settled = self.one = None
        self._was_interrupted = True
        with ExitStack() as parts:
            parts.callback(self._module_hooks.take_off)
            for each in given_up:
                if each is not None:
                    parts.callback(process_state.attach_targets.leave, each)
                    parts.callback(each.give_up)

    def interrupted(self, at_work: Sequence[object]) -> None:
        """An interrupt came in this thread, within methods of the objects `at_work`.

        The step is given up if one of these was working on it. Otherwise, if it is in its forward pass, that has ended.
        """
        one = self.one
        if any(each is self or (one is not None and one.is_done_by(each)) for each in at_work):
            self.give_up()
        elif one is not None and one.thread == threading.get_ident():
            one.forward.abandon()

    def _note_interrupt(self) -> None:
        was_interrupted, self._was_interrupted = self._was_interrupted, False
        if was_interrupted:
            self._listener.note(INTERRUPTED)

    def _release(self, ended: CapturedStep) -> None:
        """Measure what is complete only now, and remove the step's hooks. Each is done, also if another fails."""
        try:
            ended.conclude()
        finally:
            try:
                ended.hand_over()
            finally:
                self._take_down(ended)

    def _take_down(self, ended: CapturedStep) -> None:
        try:
            self._stay_eager(ended)
        finally:
            try:
                ended.finish()
            finally:
                process_state.attach_targets.leave(ended)

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

    def _hand_over(self, ended: CapturedStep) -> None:
        self._report_trace(ended)
        with NoDispatch():
            graph = self.known.add(ended)
        self._learn(ended, graph)
        self.passes = ended.forward.passes.begun
        tensors = None if graph is None else self._tensor_graph(ended, graph)
        training = ended.training_facts()
        if (fault := ended.facts_fault) is not None:
            self._listener.note(f"facts about the training of some steps are not recorded ({reason(fault)}).")
        if (fault := ended.update_fault) is not None:
            self._listener.note(f"the ratios of updates to weights are not recorded in some steps ({reason(fault)}).")
        facts = self._facts(ended)
        self._listener.take(Observation(ended.step, ended.rows, graph, facts, tensors, training))

    def _tensor_graph(self, ended: CapturedStep, graph: ModuleGraph) -> TensorGraph | None:
        """The dependency graph of the first traced step that called its modules in this way."""
        if (named := ended.named) is not None:
            try:
                found = named.finish()
            except Exception as fault:  # ours
                self._listener.note(f"{NO_TENSOR_GRAPH} ({reason(fault)}). Everything else is recorded.")
            else:
                self._tensor_graphs.setdefault(graph.id, found)
        return self._tensor_graphs.get(graph.id)

    def _report_trace(self, ended: CapturedStep) -> None:
        if (trace := ended.forward.trace) is not None and trace.fault is not None:
            self._listener.note(f"{NO_MODULE_GRAPH} ({reason(trace.fault)}). Everything else is recorded.")

    def _facts(self, ended: CapturedStep) -> StepFacts:
        passes = ended.forward.passes
        return StepFacts(
            end=ended.end or ("pass" if self._is_pass() else "unfinished"),
            passes=passes.count,
            recorded_passes=passes.recorded_count,
            optimizers=tuple(ended.optimizers),
        )
