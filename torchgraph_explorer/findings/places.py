"""Where the modules, calls and tensors of a record are: in the order of execution, and which tensor goes where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from torchgraph_explorer.schema import Call, Edge, Module, ModuleGraph, Role, Series, TensorInfo

TORCH = "torch."
"""The beginning of the qualified names of torch's classes."""

MOST_NAMED_ON_A_WAY = 64
"""How many edges between named tensors are followed for each edge of the graph, on average."""


class Weight(NamedTuple):
    """A parameter of a module."""

    module: Module
    info: TensorInfo

    @property
    def name(self) -> str:
        """Its name, as in `named_parameters()`."""
        return f"{self.module.name}.{self.info.path}".removeprefix(".")

    @property
    def size(self) -> int:
        """How many elements it has; dimensions that vary count as 1."""
        return math.prod(size or 1 for size in self.info.shape)


class Places:
    """The module graphs of a model, looked up by name. The order of execution is that of the latest graph.

    Attributes:
        graph: The latest graph; None if the record has none.
        modules: Every module of any graph by name, as it was last seen.
        called: The names of those that are called in any graph.
        differentiable: Of these, those with an output that requires a gradient in any.
    """

    def __init__(self, graphs: Sequence[ModuleGraph]) -> None:
        self.graph = graphs[-1] if graphs else None
        self.modules = {one.name: one for graph in graphs for one in graph.modules}
        self._calls: dict[tuple[str, int | None], int] = {}
        self._first: dict[str, int] = {}
        self.called = {call.module for graph in graphs for call in graph.calls}
        self.differentiable = {
            call.module for graph in graphs for call in graph.calls if any(one.requires_grad for one in call.outputs)
        }
        for number, call in enumerate(self.calls):
            self._calls.setdefault((call.module, call.call), number)
            self._first.setdefault(call.module, number)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of the latest graph, in the order in which they began."""
        return self.graph.calls if self.graph else ()

    @property
    def root(self) -> Call | None:
        """The first call of the model itself; None if the training loop calls parts of it only."""
        return next((one for one in self.calls if not one.module), None)

    @property
    def classes(self) -> int:
        """The classes of an output `[samples, classes]` of the model; 0 if it has another shape."""
        shapes = [one.shape for one in self.root.outputs] if self.root is not None else []
        return (shapes[0][1] or 0) if shapes and len(shapes[0]) == 2 else 0

    def order(self, module: str | None, call: int | None = None) -> int:
        """Where a call of a module, by default its first, stands in the order of execution; last if it has none."""
        if module is None:
            return -1
        found = self._calls.get((module, call)) if call is not None else None
        return self._first.get(module, len(self.calls)) if found is None else found

    def class_of(self, module: str) -> str:
        """The class of a module; empty if it is not known."""
        return self.modules[module].class_name if module in self.modules else ""

    def torch_class_of(self, module: str) -> str:
        """The class of a module if it is torch's own, or is derived from a recurrent layer of torch; else empty.

        Many people call a model of their own `LSTM`, which has such a layer among others.
        """
        known = self.modules.get(module)
        is_torch = known is not None and (
            known.class_path.startswith(TORCH) or any(param.path.startswith("weight_ih") for param in known.params)
        )
        return known.class_name if known is not None and is_torch else ""

    def option(self, module: str, name: str) -> str | None:
        """A value of a module's `extra_repr`."""
        rows = self.modules[module].extra_repr if module in self.modules else ()
        return next((value for key, value in rows if key == name), None)

    def tensor(self, series: Series) -> TensorInfo | None:
        """The tensor of an input's or output's series, or parameter."""
        if series.role == "param":
            return self._params.get((series.module, series.path))
        return self._tensors.get((series.module, series.call, series.role, series.path))

    @cached_property
    def _params(self) -> dict[tuple[str, str], TensorInfo]:
        return {(one.module.name, one.info.path): one.info for one in self.weights()}

    @cached_property
    def _tensors(self) -> dict[tuple[str, int | None, Role, str], TensorInfo]:
        found: dict[tuple[str, int | None, Role, str], TensorInfo] = {}
        for call in self.calls:
            found.update({(call.module, call.call, "input", one.path): one for one in call.inputs})
            found.update({(call.module, call.call, "output", one.path): one for one in call.outputs})
        return found

    def weights(self) -> Iterator[Weight]:
        """Every parameter of every module."""
        for module in self.modules.values():
            yield from (Weight(module, info) for info in module.params)

    @cached_property
    def parents(self) -> frozenset[int]:
        """The calls that other calls happened within."""
        return frozenset(call.parent for call in self.calls if call.parent is not None)

    def is_leaf(self, call: int) -> bool:
        """Whether no other call happened within this one."""
        return call not in self.parents

    def ancestors(self, call: int) -> Iterator[int]:
        """The calls within which a call happened, from the inside out."""
        here = self.calls[call].parent
        while here is not None and here < call:  # a record may be crafted
            yield here
            call, here = here, self.calls[here].parent

    @cached_property
    def sources(self) -> dict[int, tuple[int, ...]]:
        """The calls beside each call whose outputs it takes, by number of the call."""
        found: dict[int, list[int]] = {}
        for source, target, _ in self._beside:
            found.setdefault(target, []).append(source)
        return {call: tuple(before) for call, before in found.items()}

    @cached_property
    def taken(self) -> dict[int, frozenset[int]]:
        """The nodes of the graph that each call takes tensors from, by number of the call."""
        found: dict[int, set[int]] = {}
        nodes = self.graph.nodes if self.graph else ()
        for edge in self.edges:
            target = nodes[edge.target].call
            if target is not None:
                found.setdefault(target, set()).add(edge.source)
        return {call: frozenset(before) for call, before in found.items()}

    def is_computed_with_weights(self, call: int) -> bool:
        """Whether a frozen layer with weights computed what a call takes: only data comes from there."""
        todo, seen = [call, *self.ancestors(call)], set[int]()
        while todo:
            before = self._silent_sources.get(todo.pop(), frozenset()) - seen
            if any(self._has_weights(one) for one in before):
                return True
            seen |= before
            todo += before
        return False

    def _has_weights(self, call: int) -> bool:
        within = self.calls[call : self._last_inside[call] + 1]
        return any(self.modules[one.module].params for one in within if one.module in self.modules)

    @cached_property
    def _silent_sources(self) -> dict[int, frozenset[int]]:
        """The calls beside each call from which it takes only data, by number of the call."""
        found: dict[int, set[int]] = {}
        for source, target, has_gradient in self._beside:
            if not has_gradient:
                found.setdefault(target, set()).add(source)
        return {call: frozenset(before) for call, before in found.items()}

    @cached_property
    def _beside(self) -> list[tuple[int, int, bool]]:
        """Pairs of calls, by number, of which the second takes data from the first; and whether gradient flows back."""
        nodes = self.graph.nodes if self.graph else ()
        ends = ((nodes[edge.source].call, nodes[edge.target].call, edge.gradient) for edge in self.edges)
        return [(source, target, flows) for source, target, flows in ends if source is not None and target is not None]

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The edges of the graph without the nodes of `attach`: an edge leads through such a node to the next one."""
        if self.graph is None:
            return ()
        nodes, named = self.graph.nodes, dict[int, list[Edge]]()
        for edge in self.graph.edges:
            if nodes[edge.target].kind == "attached":
                named.setdefault(edge.target, []).append(edge)
        if not named:
            return self.graph.edges
        found: dict[Edge, None] = {}
        left = len(self.graph.edges) * MOST_NAMED_ON_A_WAY  # a record may be crafted
        for edge in self.graph.edges:
            if nodes[edge.target].kind == "attached":
                continue
            todo = [(edge.source, edge.gradient)]
            seen = {*todo}
            while todo:
                source, flows = todo.pop()
                if nodes[source].kind != "attached":
                    found[Edge(source, edge.target, flows)] = None
                    continue
                before = named.get(source, []) if left > 0 else []
                left -= len(before)
                new = {(one.source, flows and one.gradient) for one in before} - seen
                seen |= new
                todo += new
        return (*found,)

    def leads_to(self, first: int, later: int) -> bool:
        """Whether data may come from one call to another, along the edges of the smallest inside that has both."""
        if first == later or not (0 <= first < len(self.calls) and 0 <= later < len(self.calls)):
            return True
        chains = [[*reversed([*self.ancestors(one)]), one] for one in (first, later)]
        at = next((number for number, pair in enumerate(zip(*chains, strict=False)) if pair[0] != pair[1]), None)
        if at is None:
            return True  # one is within the other
        source, target = (self._node_of.get(chain[at]) for chain in chains)
        return source is None or target is None or target in self._behind(source)

    def is_reached(self, source: int, target: int) -> bool:
        """Whether data goes from one node of the graph to another, along the edges of the inside that has both."""
        return target in self._behind(source)

    @cached_property
    def _node_of(self) -> dict[int, int]:
        """The node that stands for each call."""
        nodes = self.graph.nodes if self.graph else ()
        return {one.call: number for number, one in enumerate(nodes) if one.call is not None}

    def _behind(self, node: int) -> set[int]:
        """The nodes that can be reached from this one along edges."""
        todo, seen = [node], set[int]()
        while todo:
            new = self._edges.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    @cached_property
    def _edges(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {}
        for edge in self.graph.edges if self.graph else ():
            found.setdefault(edge.source, set()).add(edge.target)
        return found

    def producer(self, call: int) -> int | None:
        """The call that made what this one takes; None if that is not known.

        It is the last call before this one from which data comes. If other calls happened within that, it is the last
        of these.
        """
        before = [one for one in self.sources.get(call, ()) if one < call]
        if not before:
            return None
        source = max(before)
        last = self._last_inside[source]
        return last if last < call else source

    @cached_property
    def _last_inside(self) -> list[int]:
        """The last call that happened within each call, by number; the call itself if none did."""
        last = list(range(len(self.calls)))
        for number in reversed(last.copy()):
            parent = self.calls[number].parent
            if parent is not None and parent < number:  # a record may be crafted
                last[parent] = max(last[parent], last[number])
        return last

    def numbered(self, module: str, call: int | None) -> int | None:
        """The number of a call in the graph; None if the graph does not have it."""
        return self._calls.get((module, call))


def is_one_number(info: TensorInfo) -> bool:
    """Whether a tensor has one number for each sample."""
    return bool(info.shape) and all(size == 1 for size in info.shape[1:])


def dimensions(info: TensorInfo | None) -> int:
    """How many dimensions a tensor has; 0 if it is not known."""
    return len(info.shape) if info else 0
