"""One logged step of a model: a forward pass and its backward pass, or all passes up to an update."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.edge_gradients import InsideGradients
from torchgraph_explorer.capture.facts.pending import PendingFacts
from torchgraph_explorer.capture.facts.step_facts import StepFactsRecorder
from torchgraph_explorer.capture.forward_passes import ForwardPasses, PassChoice
from torchgraph_explorer.capture.forward_recorder import ForwardRecorder
from torchgraph_explorer.capture.gradient_hooks import series_key
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.module_info import Rows, printed_by_users
from torchgraph_explorer.capture.module_selection import ModuleSelection
from torchgraph_explorer.capture.named_tensors import NamedTensors
from torchgraph_explorer.capture.no_dispatch import NoDispatch, plain
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.optimizer_steps import parameters_of
from torchgraph_explorer.capture.parameters import Parameters
from torchgraph_explorer.capture.recorded_calls import RecordedCalls
from torchgraph_explorer.capture.sampled_updates import SampledUpdates
from torchgraph_explorer.capture.step_gradients import StepGradients
from torchgraph_explorer.capture.step_parts import Forward, ForwardParts, WatchedModules
from torchgraph_explorer.capture.step_rows import Keeper, StepRows
from torchgraph_explorer.capture.step_states import Event, State, StepState
from torchgraph_explorer.capture.tensor_infos import described, differentiable, hookable
from torchgraph_explorer.capture.tensor_tree import tensors
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.schema import Call, NamedTensor, StepEnd

SECONDS_IDLE = 0.5
SECONDS_FOR_FIRST_UPDATE = 1.0
SECONDS_FOR_BACKWARD = SECONDS_FOR_UPDATE = 60.0
"""Seconds after which a step is handed over although the next one has not begun: the training may have ended.

They are counted from the latest event. The longer ones apply while a backward pass or an update may still come.
"""


MOST_UPDATES_WITHIN = 16
"""Updates that a forward pass makes itself, up to which it is recorded. A whole training within a pass makes more."""


@dataclass(frozen=True, slots=True)
class StepOptions:
    """How a step is recorded.

    Attributes:
        until_update: The step ends with an update, not with a backward pass.
        updates: Measure how the update moves the parameters.
        expects_update: One was seen before, or there is an optimizer that would make it.
        choice: Which passes are recorded.
        expected: Forward passes through each entrance in the logged step before.
        selection: Which modules are recorded.
    """

    until_update: bool = False
    updates: bool = False
    expects_update: bool = False
    choice: PassChoice = field(default_factory=PassChoice)
    expected: Mapping[str, int] = field(default_factory=dict)
    selection: ModuleSelection = field(default_factory=ModuleSelection)


def keep_in_loop(keeper: Keeper, path: str, tensor: Tensor, *, name: AttachedAs) -> None:
    """Keep a tensor that the training loop has named."""
    key = series_key("", None, "attached", path, "value")
    keeper.take(key, plain(tensor))
    keeper.describe(key, name.kind, name.node)


class CapturedStep:
    """One logged step: its forward passes, its gradients, and its update. `finish` removes its hooks.

    Attributes:
        model: The watched model, until `close`.
        step: Its number: how many steps of training were before it.
        state: How far it has come.
        rows: The row of each series.
        selection: Which modules are recorded.
        modules: Those that it began with, by name.
        printed: What they print by code of the user's, by their ids; None before its first forward pass is over.
        forward: Its forward passes.
        end: What has ended it, so far as is known.
        optimizers: The names of those that have moved the model's parameters in it.
    """

    def __init__(
        self,
        model: nn.Module,
        step: int,
        *,
        modules: WatchedModules,
        rows: StepRows,
        trace: Trace | None,
        options: StepOptions,
        facts: StepFactsRecorder | None = None,
        forward: Callable[[ForwardParts], Forward] = ForwardRecorder,
    ) -> None:
        """Put hooks on the modules.

        Args:
            model: The watched model.
            step: Number of the step.
            modules: The model's modules.
            rows: What is measured.
            trace: To be entered while the model's forward pass runs, or None.
            options: How it is recorded.
            facts: Finds out what only the live training knows of it.
            forward: What makes the part that records the forward passes.
        """
        self.model, self.step, self.rows = model, step, rows.rows
        self.selection = options.selection
        self.state, self.optimizers = StepState(), dict[str, None]()
        self.end: StepEnd | None = None
        self.printed: Mapping[int, Rows] | None = None
        self._facts = facts
        self.modules, self._options, self._keeper = modules.by_name, options, rows.keeper
        self._measure = rows.measure
        self._passes_before_update = self._updates_within = 0
        self._moved: list[Tensor] = []
        self._note = modules.note
        self._parameters = Parameters(modules.by_name, rows)
        self._updates: SampledUpdates | None = None
        if rows.kinds >= {"params", "params_grad"} and not options.updates:
            self._updates = SampledUpdates(rows, self._parameters.named)
        self._gradients = StepGradients(
            rows,
            self.state,
            self._parameters,
            lock=modules.lock,
            drop=self._drop,
            is_within_forward=lambda: bool(self.forward.calls.open),
            begun=self._on_backward_begin,
            measured=self._on_gradients,
            ended=self._on_backward_end,
        )
        self._measures_parameters = rows.uses("params")
        self._is_traced = trace is not None
        self._length = GraphLength() if trace is None else trace.length
        calls = RecordedCalls(
            rows, self._gradients.hooks, self._parameters, length=self._length, facts=facts, is_traced=self._is_traced
        )
        passes = ForwardPasses(options.choice, options.expected)
        self.forward = forward(
            ForwardParts(
                modules=modules,
                state=self.state,
                rows=rows,
                gradients=self._gradients,
                calls=calls,
                passes=passes,
                trace=trace,
                until_update=options.until_update,
                ended=self._on_forward_end,
            )
        )
        try:
            if self._measures_parameters:
                self._parameters.measure_sharded()
        except BaseException:  # no one else has this step, to remove the hooks
            self.forward.remove_hooks()
            raise

    @property
    def thread(self) -> int:
        """The thread that the step belongs to."""
        return self.forward.thread

    @property
    def forward_open(self) -> bool:
        """Whether the model is being executed in this step."""
        return self.forward.is_open

    @property
    def awaits_backward(self) -> bool:
        """Whether further forward passes belong to it, since a backward pass may still come through earlier ones."""
        return self.forward.takes_more and self.forward.may_have_backward

    @property
    def have_gradients(self) -> bool:
        """Whether a backward pass has come through the step."""
        return self._gradients.passes.have_begun

    @property
    def is_updated(self) -> bool:
        """Whether an update has ended the step."""
        return self.state.now is State.UPDATED

    def is_idle(self) -> bool:
        """Whether nothing has happened for so long that the step may be handed over.

        False before the model is called, and after a backward pass that failed: its gradients are measured at the end.
        """
        if self.state.now in {State.ARMED, State.FORWARD} or self.forward.calls.open or self._gradients.passes.are_on:
            return False
        return time.monotonic() - self.state.since > self._patience()

    def _patience(self) -> float:
        """The seconds after which it is idle."""
        if self.is_updated:
            return SECONDS_IDLE
        if self.forward.may_have_backward:
            return SECONDS_FOR_BACKWARD
        if self.end is not None or not self.forward.until_update:
            return SECONDS_IDLE
        return SECONDS_FOR_UPDATE if self._options.expects_update else SECONDS_FOR_FIRST_UPDATE

    def is_done_by(self, one: object) -> bool:
        """Whether `one` is this step or a part of it."""
        forward = self.forward
        parts = (self, self._facts, forward, forward.calls, forward.passes, forward.trace, self.state, self._gradients)
        if isinstance(
            one, (Call, OpenCall, InsideGradients)
        ):  # `calls.c` makes one: no function of the parts is called
            return True
        return one is not None and any(one is part for part in (*parts, self._gradients.hooks, self._gradients.passes))

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The model is called: a forward pass begins, or the model calls itself within one."""
        self.forward.begin(args, kwargs)

    def attach(self, tensor: object, module: nn.Module, name: AttachedAs) -> None:
        """Give the tensors in `tensor` a name within the open call of `module`; see `attach_targets.Attachable`."""
        self.forward.attach(tensor, module, name)

    def attach_in_loop(self, tensor: object, name: AttachedAs) -> None:
        """Keep the tensors in `tensor` under a name, and their gradients if the backward pass is still to come."""
        if self._gradients.hooks.closed:
            return
        with NoDispatch():
            found = described(tensors(tensor, name.name))
            self.name_in_loop([(info.path, each) for info, each in found], name)
            if (keeper := self._keeper) is None:
                return
            for info, each in found:
                keep_in_loop(keeper, info.path, each, name=name)
            for path, each, *_ in hookable(differentiable(found), are_results=False) if self.state.is_open else ():
                if keeper.selects("", "attached", path):
                    self._gradients.hooks.on_tensor(each, series_key("", None, "attached", path, "grad_norm"))
            if not self.forward.calls.open:
                self._gradients.hooks.forget_graph()

    def name_in_loop(self, found: Iterable[tuple[str, Tensor]], name: AttachedAs) -> None:
        """Add tensors that the loop has named to the dependency graph, if this step is traced."""
        if (named := self.named) is not None:
            kind = name.kind or "intermediate"
            with NoDispatch():
                named.name((NamedTensor("", None, "attached", path, kind, name.node), each) for path, each in found)

    @property
    def named(self) -> NamedTensors | None:
        """The named tensors, if it is traced and tensors are kept."""
        return None if self.forward.trace is None else self.forward.trace.named

    def connect(self, source: Tensor | str, target: Tensor | str) -> None:
        """`target` is computed from `source`, which nothing shows."""
        if (named := self.named) is not None:
            with NoDispatch():
                named.connect(source, target)

    def continue_here(self) -> None:
        """The next pass comes in this thread, which may be another one than that of the passes before."""
        self.forward.thread = threading.get_ident()

    def end_with_backward(self) -> None:
        """No update is waited for any more."""
        self.forward.until_update = False

    def begin_in_closure(self, optimizer: Optimizer) -> None:
        """It begins within a step of `optimizer`, which has not moved its parameters so far."""
        moved = parameters_of(optimizer)
        if self._options.updates:
            self._gradients.copy_parameters(moved)
        if self._updates is not None:
            self._updates.before_update(moved)

    def before_update(self, optimizer: Optimizer) -> None:
        """`optimizer` is about to move its parameters."""
        if self._gradients.hooks.closed:
            return
        is_missed = self.forward.passes.is_missed
        self._moved = moved = parameters_of(optimizer)
        self._gradients.before_update(moved, is_missed=is_missed, measures_update=self._options.updates)
        self._passes_before_update = self.forward.passes.count
        if self._updates is not None:
            self._updates.before_update(moved)
        if self._facts is not None:
            self._facts.before_update(optimizer, is_missed=is_missed)

    def before_update_of_others(self, optimizer: Optimizer) -> None:
        """`optimizer`, which has no parameter of the model, is about to step."""
        if self._facts is not None and not self._gradients.hooks.closed:
            self._facts.before_update_of_others(optimizer)

    def after_update(self, optimizers: Sequence[Optimizer], names: Sequence[str]) -> None:
        """Optimizers of these names have moved their parameters."""
        if self._gradients.hooks.closed:
            return
        if self.forward.passes.count > self._passes_before_update:
            self._after_closure(optimizers)
        self._gradients.after_update()
        if self._updates is not None:
            self._updates.after_update()
        if self._facts is not None:
            self._facts.after_update(optimizers, names)
        self.optimizers.update(dict.fromkeys(names))

    def _after_closure(self, optimizers: Sequence[Optimizer]) -> None:
        """Optimizers have called the model themselves, so what they got is known only now."""
        is_missed = self.forward.passes.is_missed
        moved = [parameter for each in optimizers for parameter in parameters_of(each)]
        self._gradients.after_closure(moved, is_missed=is_missed, measures_update=self._options.updates)
        if self._facts is not None:
            for each in optimizers:
                self._facts.after_closure(each, is_missed=is_missed)

    def end_as(self, end: StepEnd) -> None:
        """Something has ended it. All that may follow is other optimizers.

        If that is an update within its forward pass, as of a layer that trains itself, the pass is recorded to its end.
        """
        if self._gradients.hooks.closed:
            return
        self.end = end
        if self.forward_open and end != "mark":
            self._updates_within += 1
            if self._updates_within <= MOST_UPDATES_WITHIN:
                with NoDispatch():
                    self._parameters.settle(self._moved)
                return
            self._note(
                f"a forward pass makes more than {MOST_UPDATES_WITHIN} updates itself. What it calls after update "
                f"{MOST_UPDATES_WITHIN + 1} is not recorded. If it is a whole training, pass the model that is trained "
                f"in it to watch()."
            )
        self.state.on(Event.UPDATE)
        self.forward.remove_hooks()
        self._measure.forget()
        if self._keeper is not None:
            self._keeper.forget()

    def conclude(self) -> None:
        """Nothing more will come: measure what is complete only now."""
        self._gradients.conclude()
        self.forward.conclude()

    def training_facts(self) -> PendingFacts | None:
        """What only the live training knows of the step; None if it is not known. To be called once, at the end."""
        return None if self._facts is None else self._facts.conclude(self.forward.calls.done)

    @property
    def facts_fault(self) -> Exception | None:
        """Why the facts about the step are not known."""
        return None if self._facts is None else self._facts.fault

    @property
    def update_fault(self) -> Exception | None:
        """Why it is not known how far the update moved the weights."""
        return None if self._updates is None else self._updates.fault

    def hand_over(self) -> None:
        """What it has recorded is complete, and is about to be handed over."""
        self.state.on(Event.HAND_OVER)

    def close(self) -> None:
        """Record nothing more and release the model. For any thread that holds the lock."""
        self._gradients.hooks.closed = True
        self.modules.clear()
        self._parameters.forget()
        self._moved = []
        self._updates = None
        del self.model

    def finish(self) -> None:
        """Remove every hook. Each part is done, also if another one fails."""
        self._finish(self.forward.finish)

    def give_up(self) -> None:
        """Remove every hook after an interrupt, which may still be leaving the forward pass."""
        self._finish(self.forward.give_up)

    def _finish(self, finish_forward: Callable[[], None]) -> None:
        try:
            finish_forward()
        finally:
            try:
                self._gradients.hooks.remove()
            finally:
                self.state.on(Event.LOSE)  # unless it was handed over

    def _drop(self, name: str, fault: Exception) -> None:
        self.forward.drop(name, fault)

    def _on_forward_end(self) -> None:
        self._gradients.hooks.forget_graph()
        if self._is_traced and self.printed is None:
            with NoDispatch():
                self.printed = printed_by_users(self.modules.values())
        if self._measures_parameters:
            self._parameters.measure_remaining()

    def _on_backward_begin(self) -> None:
        if self._facts is not None and self.state.is_open:
            self._facts.begin_backward(is_missed=self.forward.passes.is_missed)

    def _on_gradients(self) -> None:
        if self._facts is not None:
            self._facts.after_backward(self.forward.calls.done)

    def _on_backward_end(self) -> None:
        self._length.end_backward()
        if not self.forward.until_update:
            self.forward.remove_hooks()
