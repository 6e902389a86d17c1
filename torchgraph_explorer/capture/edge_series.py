"""The series of the gradients that come back along the edges of the module graph, in one step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torchgraph_explorer.capture.edge_gradients import Ends, InsideGradients, Place
from torchgraph_explorer.capture.gradient_hooks import GradientHooks, SeriesKey, series_key
from torchgraph_explorer.capture.open_call import OpenCall
from torchgraph_explorer.capture.path_gradients import Edge as GradientEdge
from torchgraph_explorer.capture.tensor_infos import Differentiable
from torchgraph_explorer.capture.trace import Trace
from torchgraph_explorer.schema import Call, Edge, Node
from torchgraph_explorer.schema import SeriesKey as KeyOfSeries


class EdgeSeries:
    """Finds the series of each edge when a call is over, and puts hooks where an edge needs one of its own.

    Attributes:
        known: By the number of a call and the ends of an edge in it: the series of what comes back along that. Together
            they are the gradient, if several tensors come along the edge.
    """

    def __init__(self, calls: Sequence[Call], hooks: GradientHooks, *, are_named: bool) -> None:
        """No call was made. `calls` are those of the step, which grow. `known` is filled if edges `are_named`."""
        self.known: dict[tuple[int, Ends], tuple[SeriesKey, ...]] = {}
        self._calls, self._hooks, self._are_named = calls, hooks, are_named

    def enter(self, outer: OpenCall, opened: OpenCall, inputs: Sequence[Differentiable]) -> None:
        """`opened`, inside of `outer`, is given `inputs`."""
        inside = outer.inside
        if inside is None:
            inside = outer.inside = InsideGradients(outer.walk.first, outer.edges)
        stale = {each.path for each in inputs if each.is_stale}
        for edge, paths in opened.edges.items():
            if paths[0] not in stale:
                inside.take(opened.index, edge, paths[0])

    def attach(self, outer: OpenCall, found: Sequence[Differentiable]) -> None:
        """Tensors in `outer` were given names."""
        if (inside := outer.inside) is None:
            inside = outer.inside = InsideGradients(outer.walk.first, outer.edges)
        for path, edge in _edges(found):
            inside.take(("attached", path), edge, path)
            inside.give(("attached", path), edge)

    def leave(self, outer: OpenCall | None, opened: OpenCall, outputs: Sequence[Differentiable]) -> None:
        """`opened`, inside of `outer`, has returned `outputs`."""
        given = _edges(outputs)
        if outer is not None and outer.inside is not None:
            for _, edge in given:
                outer.inside.give(opened.index, edge)
            outer.inside.end(opened.index, opened.walk.first)
        inside, opened.inside = opened.inside, None
        if inside is not None:
            for path, edge in given:
                inside.take(("output", path), edge, path)
            if self._are_named or inside.needs_hooks:
                self._name(opened, inside)

    def _name(self, opened: OpenCall, inside: InsideGradients) -> None:
        """Give the gradients along the edges inside of `opened` their series."""
        named: dict[Ends, tuple[SeriesKey, ...]] = {}
        for ends, found in inside.found(are_named=self._are_named).items():
            keys = []
            for number, where in enumerate(found, start=1):
                if isinstance(where, str):
                    if self._are_named:
                        keys.append(self._key_of(opened, ends[1], where))
                    continue
                more = f" #{number}" if number > 1 else ""
                path = f"{self._name_of(opened, ends[0])} -> {self._name_of(opened, ends[1])}{more}"
                keys.append(series_key(opened.name, opened.call, "edge", path, "grad_norm"))
                self._hooks.on_path(where, keys[-1])
            named[ends] = tuple(keys)
        if not self._are_named:
            return
        onward = inside.onward()
        for ends in onward:
            seen, to = {ends}, onward[ends]
            while to in onward and to not in seen:
                seen.add(to)
                to = onward[to]
            if to in named:
                named[ends] = named[to]
        self.known.update({(opened.index, ends): keys for ends, keys in named.items()})

    def _key_of(self, opened: OpenCall, target: Place, path: str) -> SeriesKey:
        """The series of a tensor that a place inside of `opened` was given."""
        if isinstance(target, int):
            call = self._calls[target]
            return series_key(call.module, call.call, "input", path, "grad_norm")
        return series_key(opened.name, opened.call, target[0], path, "grad_norm")

    def _name_of(self, opened: OpenCall, place: Place) -> str:
        """The name of a place inside of `opened`, which no other one has there."""
        if not isinstance(place, int):
            role, path = place
            return f"@{path}" if role == "attached" else f":{path}"
        call = self._calls[place]
        number = f"#{call.call + 1}" if call.call else ""
        prefix = f"{opened.name}." if opened.name else ""
        return f"{call.module.removeprefix(prefix) if call.module.startswith(prefix) else f'/{call.module}'}{number}"


def _edges(found: Sequence[Differentiable]) -> list[tuple[str, GradientEdge]]:
    """Where the gradients of tensors are delivered; without stale views, of which that is not known."""
    return [(each.path, each.edge) for each in found if not each.is_stale]


def with_series(trace: Trace, calls: Sequence[Call], series: EdgeSeries) -> tuple[Edge, ...]:
    """The edges of `trace`, with the series of the gradients along them."""
    found = []
    for edge in trace.edges:
        source, target = trace.nodes[edge.source], trace.nodes[edge.target]
        keys: tuple[SeriesKey, ...] = ()
        if target.inside is not None:
            keys = series.known.get((target.inside, (_place(source), _place(target))), ())
        elif target.call is not None:
            call = calls[target.call]
            paths = trace.handed_over.get((edge.source, edge.target), ())
            keys = tuple(series_key(call.module, call.call, "input", path, "grad_norm") for path in paths)
        named = cast("tuple[KeyOfSeries, ...]", keys)
        found.append(Edge(edge.source, edge.target, edge.gradient, named) if edge.gradient else edge)
    return tuple(found)


def _place(node: Node) -> Place:
    if node.call is not None:
        return node.call
    return node.kind, node.tensor.path if node.tensor is not None else ""
