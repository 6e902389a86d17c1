"""The calls of modules in the forward passes of one step, with what they were given and what they returned."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from torch import Tensor

from torchgraph_explorer.capture import native_calls
from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.call_costs import CallCosts
from torchgraph_explorer.capture.call_spread import INPUTS_AT_AN_END, has_too_many_inputs
from torchgraph_explorer.capture.call_stack import is_caller
from torchgraph_explorer.capture.edge_series import EdgeSeries
from torchgraph_explorer.capture.facts.step_facts import StepFactsRecorder
from torchgraph_explorer.capture.gradient_hooks import GradientHook, GradientHooks, series_key
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.module_hooks import CallFunctions, KnownCalls
from torchgraph_explorer.capture.no_dispatch import NoDispatch, is_readable, plain, untransformed
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.parameters import Parameters
from torchgraph_explorer.capture.path_gradients import Edge, edge_and_staleness, has_edge, sequence_number
from torchgraph_explorer.capture.step_rows import StepRows
from torchgraph_explorer.capture.tensor_infos import (
    Described,
    Differentiable,
    described,
    differentiable,
    hookable,
    infos,
)
from torchgraph_explorer.capture.tensor_tree import attribute_tensors, input_tensors, tensors
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.schema import Call, NamedTensor, Role, TensorInfo, TensorKind


def named_tensors(
    opened: OpenCall, role: Role, found: Described, *, attached: AttachedAs | None = None
) -> list[tuple[NamedTensor, Tensor]]:
    """The tensors of a call as those of the dependency graph."""
    kind: TensorKind = "input" if role == "input" and not opened.name else "intermediate"
    node = ""
    if attached is not None:
        kind, node = attached.kind or kind, attached.node
    return [(NamedTensor(opened.name, opened.call, role, info.path, kind, node), tensor) for info, tensor in found]


class RecordedCalls:
    """The calls of one step. Values are measured as they are seen; hooks are put where gradients will arrive.

    Attributes:
        done: The calls so far, also those that are open, a parent before its children.
        attached: Tensors that were given a name, by call and path.
        open: The calls that are being executed, the innermost last.
        edges: The series of gradients along edges.
        length: How long the autograd graph is.
        costs: Measures how long calls take; None if that is not recorded, and in a step that is traced, which is slow.
        lacks_inputs: Some inputs are not recorded: a call had very many.
    """

    def __init__(
        self,
        rows: StepRows,
        hooks: GradientHooks,
        parameters: Parameters,
        *,
        length: GraphLength,
        facts: StepFactsRecorder | None = None,
        is_traced: bool = True,
    ) -> None:
        """There are none. Only in a step that `is_traced` the edges of a graph get their series."""
        self._facts, self.length, self._is_traced = facts, length, is_traced
        self.lacks_inputs = False
        self.costs = CallCosts() if "cost" in rows.kinds and not is_traced else None
        self.done: list[Call] = []
        self.attached: dict[tuple[int, str], TensorInfo] = {}
        self.open: list[OpenCall] = []
        self._rows, self._hooks, self._parameters = rows, hooks, parameters
        self._measures_gradients = "io_grad" in rows.kinds
        self._uses_gradients, self._uses_parameters = rows.uses("io_grad"), rows.uses("params")
        self._hooks_results = self._uses_gradients or "params_grad" in rows.kinds
        self._counts: dict[str, int] = {}
        self.edges = EdgeSeries(self.done, hooks, are_named=is_traced)

    def conclude(self) -> None:
        """Nothing more will come: measure what the calls have cost."""
        if self.costs is not None:
            self.costs.measure(self.done, self._rows)

    def quickly(self, dropped: set[str], known: KnownCalls, lock: threading.RLock) -> CallFunctions | None:
        """What notes ordinary calls in place of this; None where `calls.c` was not built, and where it would not do.

        Modules in `dropped` are not recorded. `known` is what is known of calls from earlier steps.
        """
        makers, measure = native_calls.makers(), self._rows.measure.native
        keeper = self._rows.keeper
        needed = {"io", "io_grad"} if keeper is None else {"io", "io_grad", "params"}
        if makers is None or measure is None or self._is_traced or not self._rows.kinds >= needed:
            return None
        unmeasured = self._parameters.unmeasured if self._uses_parameters else {}
        facts = self._facts
        looked_at = ((), ()) if facts is None else facts.looked_at
        costs = (None,) * 3 if self.costs is None else (self.costs.pause, self.costs.end, self.costs.resume)
        objects = (
            *(self.open, self.done, self._counts, self._rows.rows, dropped),
            *(cast("Any", lock)._is_owned, lock.acquire, lock.release, measure.values),
            *self._hooks.parts,
            *(self.length, unmeasured, self._measure_parameters, self._begin_facts, self._end_facts, *looked_at),
            *(self._observe_one, self._hooks.on_path, self._leave_edges, *native_calls.keeping(keeper), known, *costs),
        )
        return CallFunctions(*makers.calls(objects, self.length.most))

    def _measure_parameters(self, name: str) -> None:
        with NoDispatch():
            self._parameters.measure_values(name)

    def _begin_facts(self, name: str, number: int, inputs: Described) -> None:
        if self._facts is not None:
            self._facts.begin_call(name, number, inputs)

    def _end_facts(self, name: str, number: int, outputs: Described) -> None:
        if self._facts is not None:
            self._facts.end_call(name, number, outputs)

    def _observe_one(  # noqa: PLR0917  # called by calls.c
        self, opened: OpenCall, role: str, info: TensorInfo, tensor: Tensor
    ) -> None:
        with NoDispatch():
            self._observe(opened, role, [(info, tensor)])

    def _leave_edges(self, outer: OpenCall, opened: OpenCall, made: Sequence[tuple[str, Tensor, Edge]]) -> None:
        self.edges.leave(outer, opened, [Differentiable(*each, is_stale=False) for each in made])

    def unwind(self, frame: Any) -> None:
        """Forget the calls that `frame` is not within: an exception has ended them, and torch called no hook."""
        while self.open and not is_caller(self.open[-1].frame, frame):
            self.open.pop()

    def next_number(self, name: str) -> int:
        """How often module `name` was called so far."""
        return self._counts.get(name, -1) + 1

    def count(self, name: str) -> int:
        """Module `name` is called once more; returns how often it was before."""
        number = self._counts[name] = self.next_number(name)
        return number

    def skip(self, name: str, frame: Any) -> None:
        """Module `name` is called, which is not recorded, nor is what it calls."""
        skipped = OpenCall(-1, name, -1, frame, sequence_number())
        skipped.is_skipped = True
        self.open.append(skipped)

    def begin(  # noqa: PLR0917  # called for every call
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: Any, tracing: Trace | None
    ) -> None:
        """Module `name` is called."""
        number = self.count(name)
        if not self.open:
            self.length.begin_pass()
        with NoDispatch():
            found = input_tensors(args, kwargs)
            if has_too_many_inputs(number, len(found)):
                found, self.lacks_inputs = [*found[:INPUTS_AT_AN_END], *found[-INPUTS_AT_AN_END:]], True
            inputs = described(found)
            parent = self.open[-1].index if self.open else None
            opened = OpenCall(len(self.done), name, number, frame, sequence_number())
            given = differentiable(inputs) if self._uses_gradients and not self.length.is_over else []
            for path, _, edge, _ in given:
                opened.edges.setdefault(edge, []).append(path)
            self.done.append(Call(name, number, parent, infos(inputs), ()))
            if self._measures_gradients and self.open:
                self.edges.enter(self.open[-1], opened, given)
            self.open.append(opened)
            self._observe(opened, "input", inputs)
            if self._facts is not None:
                self._facts.begin_call(name, number, inputs)
            if self._uses_parameters:
                self._parameters.measure_values(name)
            if tracing is not None:
                tracing.enter(opened.index, inputs, within=parent, name=name)
                if tracing.named is not None:
                    tracing.named.enter(opened.index, named_tensors(opened, "input", inputs))

    def pop(self, frame: Any) -> OpenCall | None:
        """Remove and return the open call of `frame`, if there is one. Calls within it are over, too."""
        for at in reversed(range(len(self.open))):
            if self.open[at].is_of(frame):
                opened = self.open[at]
                del self.open[at:]
                return opened
        return None

    def end(self, opened: OpenCall, output: object, tracing: Trace | None) -> list[GradientHook]:
        """The module has returned `output`, or raised; returns the hooks on its results."""
        with NoDispatch():
            outputs = described(tensors(output, "output"))
            call = self.done[opened.index]
            self.done[opened.index] = Call(call.module, call.call, call.parent, call.inputs, infos(outputs))
            self._observe(opened, "output", outputs)
            if self._facts is not None:
                self._facts.end_call(opened.name, opened.call, outputs)
            is_too_long = self.length.is_over
            # Without a hook on the results of the whole forward pass, the backward pass would not be noticed.
            is_hooked = self._hooks_results and not (is_too_long and self.open)
            made = differentiable(outputs) if is_hooked else []
            hooks = self._hook(opened, "output", made)
            if is_too_long:
                made = []
            elif not self.open and made and all(each.is_stale for each in made):
                made = differentiable(outputs)  # the hooks have made torch use the views
            if self._uses_gradients:
                self._hook_inputs(opened, made, [] if is_too_long else _hidden_edges(output))
            if self._measures_gradients:
                self.edges.leave(self.open[-1] if self.open else None, opened, made)
            if tracing is not None:
                tracing.leave(opened.index, outputs)
                if tracing.named is not None:
                    tracing.named.leave(opened.index, named_tensors(opened, "output", outputs))
        return hooks

    def attach(self, tensor: object, inside: OpenCall, named: AttachedAs, tracing: Trace | None) -> None:  # noqa: PLR0917
        """Record the tensors in `tensor` by a name within the open call `inside`."""
        inside.attached = counts = inside.attached or {}
        name = named.name
        counts[name] = times = counts.get(name, 0) + 1
        with NoDispatch():
            found = described(tensors(tensor, name if times == 1 else f"{name} #{times}"))
            self.attached.update({(inside.index, info.path): info for info, _ in found})
            self._observe(inside, "attached", found)
            if (keeper := self._rows.keeper) is not None:
                for info, _ in found:
                    key = series_key(inside.name, inside.call, "attached", info.path, "value")
                    keeper.describe(key, named.kind, named.node)
            named_here = differentiable(found) if self._hooks_results and not self.length.is_over else []
            self._hook(inside, "attached", named_here)
            if self._measures_gradients:
                self.edges.attach(inside, named_here)
            if tracing is not None:
                tracing.attach(inside.index, found)
                if tracing.named is not None:
                    tracing.named.name(named_tensors(inside, "attached", found, attached=named))

    def _observe(self, opened: OpenCall, role: str, found: Described) -> None:
        if "io" in self._rows.kinds:
            for info, tensor in found:
                if is_readable(values := plain(tensor)):
                    key = series_key(opened.name, opened.call, role, info.path, "value")
                    self._rows.rows[key] = self._rows.measure.values(values)
        if (keeper := self._rows.keeper) is not None:
            for info, tensor in found:
                keeper.take(series_key(opened.name, opened.call, role, info.path, "value"), plain(tensor))

    def _is_kept(self, module: str, role: str, path: str) -> bool:
        return (keeper := self._rows.keeper) is not None and keeper.selects(module, role, path)

    def _hook(self, opened: OpenCall, role: str, found: list[Differentiable]) -> list[GradientHook]:
        """Put hooks where the gradients of these tensors arrive, and return them."""
        hooks = []
        for path, tensor, edge, is_stale in hookable(found, are_results=not self.open):
            is_read = self._measures_gradients or self._is_kept(opened.name, role, path)
            key = series_key(opened.name, opened.call, role, path, "grad_norm") if is_read else None
            hooks.append(self._hooks.on_tensor(tensor, key, edge=None if is_stale else edge))
        return hooks

    def _hook_inputs(self, opened: OpenCall, outputs: list[Differentiable], hidden: list[Edge]) -> None:
        """Put hooks where the gradient of each input comes back through this call.

        `hidden` are edges of further results, that are not recorded.
        """
        own = [each.edge for each in outputs]
        made = own + hidden
        opened.walk.run(opened.edges, made)
        for edge, paths in opened.edges.items():
            consumers = opened.walk.crossing.get(edge)
            for path in paths:
                if not (self._measures_gradients or self._is_kept(opened.name, "input", path)):
                    continue
                key = series_key(opened.name, opened.call, "input", path, "grad_norm")
                if consumers:
                    self._hooks.on_path(consumers, key)
                elif edge in own:  # returned as it came: the gradient of the tensor comes through this call
                    self._hooks.on_tensor(outputs[own.index(edge)].tensor, key)
        if self.open:
            self.open[-1].walk.add_child(opened.walk, made)


def _hidden_edges(output: object) -> list[Edge]:
    """Those of what a module returns within objects, which is not recorded: gradient comes back through it, too."""
    found = [tensor for tensor in map(untransformed, attribute_tensors(output)) if has_edge(tensor)]
    return [edge for edge, is_stale in map(edge_and_staleness, found) if not is_stale]
