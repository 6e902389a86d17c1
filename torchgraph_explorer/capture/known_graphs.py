"""The module graphs of one model: one for each way in which it calls its modules."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeAlias

from torchgraph_explorer.capture.captured_step import CapturedStep
from torchgraph_explorer.capture.edge_series import with_series
from torchgraph_explorer.capture.graph_merging import (
    is_same,
    lacks_gradient,
    merge,
    with_gradients,
    without_empty_insides,
)
from torchgraph_explorer.capture.module_info import module_facts
from torchgraph_explorer.schema import Call, ModuleGraph, TensorInfo

Signature: TypeAlias = "tuple[tuple[str, int, int | None], ...]"

TRACES_FOR_A_GRAPH = 4
"""Steps that are traced after a step that was not traced called the modules in a new way."""

MOST_GRAPHS = 64
"""Graphs of a model, at most: one that calls its modules in ever new ways is not traced for ever."""


class KnownGraphs:
    """Every graph so far, and whether the next step is traced.

    Attributes:
        graphs: By id, the oldest first.
        traces: Steps that are still to be traced.
    """

    def __init__(self) -> None:
        """Begin with no known graph, so that the first step is traced."""
        self.graphs: list[ModuleGraph] = []
        self.traces = 1
        self._by_signature: dict[Signature, int] = {}
        self._unknown: set[Signature] = set()
        self._reached: set[tuple[bool, ...]] = set()
        self._latest: ModuleGraph | None = None
        self._same: tuple[ModuleGraph | None, list[Call], Mapping[tuple[int, str], TensorInfo]] = None, [], {}

    def add(self, ended: CapturedStep) -> ModuleGraph | None:
        """The graph of a step that is over; None if no step that called its modules in the same way was traced."""
        self._latest = graph = self._graph_of(ended)
        return graph

    def with_current(self, one: CapturedStep) -> tuple[ModuleGraph, ...]:
        """All graphs, and that of a step that is not over, as far as it has come. The last one is not kept."""
        signature = _signature(one.forward.calls.done)
        if not one.forward.is_traced or signature in self._by_signature:
            return tuple(self.graphs)
        return (*self.graphs, self._traced(one))

    def _graph_of(self, ended: CapturedStep) -> ModuleGraph | None:
        calls, attached, trace = ended.forward.calls.done, ended.forward.calls.attached, ended.forward.trace
        if (latest := self._latest) is not None and trace is None and self._is_latest(latest, calls, attached):
            return latest
        signature = _signature(calls)
        at = self._by_signature.get(signature)
        if trace is not None:
            self.traces -= 1
            if trace.fault is None:
                if at is None:
                    return self._keep(self._traced(ended), signature)
                self.graphs[at] = with_gradients(self.graphs[at], self._traced(ended))
        if at is None:
            self._want_trace_of(signature)
            return None
        if trace is None and lacks_gradient(self.graphs[at], calls):
            self._want_gradients_of(calls)
        self.graphs[at] = merged = merge(self.graphs[at], calls, attached)
        self._same = merged, calls, attached
        return merged

    def _is_latest(
        self, latest: ModuleGraph, calls: list[Call], attached: Mapping[tuple[int, str], TensorInfo]
    ) -> bool:
        """Whether the step has the calls of the graph that was found last. Most are the same objects as before."""
        graph, before, attached_before = self._same
        is_merged = graph is latest and calls == before and attached == attached_before
        if is_merged or is_same(latest, calls, attached):
            self._same = latest, calls, attached
            return True
        return False

    def _want_trace_of(self, signature: Signature) -> None:
        """Trace some of the next steps: one may call its modules in this new way again."""
        if signature not in self._unknown and len(self.graphs) < MOST_GRAPHS:
            self._unknown.add(signature)
            self.traces = TRACES_FOR_A_GRAPH

    def _want_gradients_of(self, calls: list[Call]) -> None:
        """Trace some of the next steps: gradient reaches more than in the graph, as after layers were unfrozen."""
        reached = tuple(info.requires_grad for call in calls for info in (*call.inputs, *call.outputs))
        if reached not in self._reached and len(self._reached) < MOST_GRAPHS:
            self._reached.add(reached)
            self.traces = TRACES_FOR_A_GRAPH

    def _keep(self, graph: ModuleGraph, signature: Signature) -> ModuleGraph:
        self.graphs.append(graph)  # first: an interrupt may come between the two
        self._by_signature[signature] = graph.id
        return graph

    def _traced(self, one: CapturedStep) -> ModuleGraph:
        trace = one.forward.trace
        assert trace is not None
        edges = with_series(trace, one.forward.calls.done, one.forward.calls.edges)
        nodes, edges = without_empty_insides(trace.nodes, edges)
        return ModuleGraph(
            id=len(self.graphs),
            first_step=one.step,
            modules=module_facts(
                one.model,
                one.selection,
                begun_with=one.modules,
                printed=one.printed,
                asks=threading.get_ident() == one.thread,
            ),
            calls=tuple(one.forward.calls.done),
            nodes=nodes,
            edges=edges,
        )


def _signature(calls: list[Call]) -> Signature:
    return tuple((call.module, call.call, call.parent) for call in calls)
