"""Which of the named tensors of one traced step are computed from which: the dependency graph of kept tensors.

Inside `forward`, the operations of the trace say where data came from, and autograd whether gradient goes back there.
Outside of it, nothing of ours is on, and edges come from autograd, and from `connect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from torch import Tensor

from torchgraph_explorer.capture.by_tensor import ByStorage, ByTensor
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.path_gradients import Edge, edge_of, has_edge, is_stale
from torchgraph_explorer.schema import NamedTensor, TensorEdge, TensorGraph

Numbers: TypeAlias = "frozenset[int]"
"""Named tensors, as indices in `TensorGraph.tensors`."""

EdgeKey: TypeAlias = "tuple[int, int]"
"""Identifies an edge of the autograd graph without keeping the graph alive."""

MOST_NODES = 100_000
"""Autograd nodes that are looked at for one tensor."""

NO_NUMBERS: Numbers = frozenset()


class NamedTensors:
    """The named tensors of one step. They and the autograd graph are not kept alive.

    No method but `finish` raises; after a fault of ours, nothing more is noted.
    """

    def __init__(
        self,
        selects: Callable[[str, str, str], bool],
        modules: ModulesByName,
        length: GraphLength,
    ) -> None:
        """Begin with the parameters of `modules`; `selects` says which tensors of modules have names."""
        self._length = length
        self._fault: Exception | None = None
        self._selects = selects
        self._tensors: list[NamedTensor] = []
        self._numbers: dict[object, int] = {}
        self._edges: dict[tuple[int, int], bool] = {}
        self._parameters: dict[int, Numbers] = {}
        self._labels: dict[EdgeKey, list[int]] = {}
        self._labelled: set[int] = set()
        self._names: ByTensor[list[int]] = ByTensor()
        self._origins: ByTensor[tuple[int, Numbers]] = ByTensor()
        self._written: ByStorage[tuple[int, Numbers]] = ByStorage()
        self._inputs: dict[int, list[tuple[Tensor, int, tuple[int, Numbers] | None]]] = {}
        self._time = 0
        self._guarded(lambda: self._add_parameters(modules))

    def note(self, tensors: Iterable[Tensor], written: Iterable[Tensor], results: Iterable[Tensor]) -> None:
        """An operation was given `tensors`, has written into some, and has returned `results`."""
        self._guarded(lambda: self._note(tensors, list(written), results))

    def enter(self, call: int, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        """Call number `call` begins with these tensors: within it, they go by their names as its inputs."""
        self._guarded(lambda: self._enter(call, found))

    def leave(self, call: int, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        """Call number `call` has returned these tensors."""
        self._guarded(lambda: self._leave(call, found))

    def name(self, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        """These tensors were given names with `attach`."""
        self._guarded(lambda: self._name_all(found))

    def connect(self, source: Tensor | str, target: Tensor | str) -> None:
        """`target` is computed from `source`, which nothing shows."""
        self._guarded(lambda: self._connect(source, target))

    def finish(self) -> TensorGraph:
        """The graph. The step is over: what was noted of its tensors is released.

        Raises:
            Exception: Something went wrong while it was noted.
        """
        for each in (self._names, self._origins, self._written, self._inputs, self._labels, self._parameters):
            each.clear()
        if self._fault is not None:
            raise self._fault
        edges = (TensorEdge(*ends, gradient) for ends, gradient in sorted(self._edges.items()))
        return TensorGraph(tuple(self._tensors), tuple(edges))

    def _guarded(self, act: Callable[[], object]) -> None:
        if self._fault is None:
            try:
                act()
            except Exception as fault:  # ours, in the middle of the user's operation or loop
                self._fault = fault

    def _add_parameters(self, modules: ModulesByName) -> None:
        for name, module in modules.items():
            for path, parameter in module._parameters.items():
                if parameter is not None:
                    number = self._number(NamedTensor(name, None, "param", path, "parameter"))
                    self._parameters[id(parameter)] = self._parameters.get(id(parameter), NO_NUMBERS) | {number}

    def _number(self, named: NamedTensor) -> int:
        number = self._numbers.setdefault(named.key, len(self._tensors))
        if number == len(self._tensors):
            self._tensors.append(named)
        return number

    def _note(self, tensors: Iterable[Tensor], written: list[Tensor], results: Iterable[Tensor]) -> None:
        sources = frozenset[int]().union(*(self._sources(each) for each in tensors))
        self._time += 1
        for tensor in written:
            self._origins[tensor] = self._written[tensor] = self._time, sources
        for tensor in results:
            if not any(tensor is one for one in written):
                self._origins[tensor] = self._time, sources

    def _enter(self, call: int, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        before = []
        for named, tensor in found:
            if self._is_named(named):
                known = self._origins.get(tensor)
                self._name(named, tensor)
                before.append((tensor, self._time, known))
        self._inputs[call] = before

    def _leave(self, call: int, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        """Outside of the call, its inputs go by their earlier names again, unless it has written into them."""
        pairs = [(named, tensor, self._sources(tensor)) for named, tensor in found]
        for tensor, time, known in reversed(self._inputs.pop(call, [])):
            if (self._origins.get(tensor) or (0, NO_NUMBERS))[0] == time:
                if known is None:
                    del self._origins[tensor]
                else:
                    self._origins[tensor] = known
        for named, tensor, sources in pairs:
            if self._is_named(named):
                self._name(named, tensor, sources=sources)

    def _name_all(self, found: Iterable[tuple[NamedTensor, Tensor]]) -> None:
        for named, tensor in found:
            self._name(named, tensor)

    def _is_named(self, named: NamedTensor) -> bool:
        return named.kind == "input" or self._selects(named.module, named.role, named.path)

    def _name(self, named: NamedTensor, tensor: Tensor, *, sources: Numbers | None = None) -> None:
        number = self._number(named)
        self._arrive(tensor, number, self._sources(tensor) if sources is None else sources)
        self._time += 1
        self._origins[tensor] = self._time, frozenset((number,))
        self._names[tensor] = [*(self._names.get(tensor) or ()), number]
        if has_edge(tensor) and not self._length.is_over and not is_stale(tensor):
            self._labels.setdefault(_edge_key(edge_of(tensor)), []).append(number)
            self._labelled.add(number)

    def _arrive(self, tensor: Tensor, number: int, sources: Numbers) -> None:
        """Add the edges along which `tensor` came to its name."""
        is_too_long = tensor.requires_grad and self._length.is_over
        flowing, first = (sources, sources) if is_too_long else self._reached(tensor)
        if not sources:
            sources = first
        overshot = bool(flowing - sources)
        for source in sources - {number}:
            gradient = source in flowing or (overshot and source not in self._labelled and not self._is_leaf(source))
            self._edges[source, number] = self._edges.get((source, number), False) or gradient

    def _is_leaf(self, number: int) -> bool:
        return self._tensors[number].role == "param"

    def _connect(self, source: Tensor | str, target: Tensor | str) -> None:
        sources = self._numbers_of(source)
        if isinstance(target, Tensor) and target not in self._names:
            self._time += 1
            self._origins[target] = self._time, self._sources(target) | sources
            return
        for number in self._numbers_of(target):
            for each in sources - {number}:
                self._edges.setdefault((each, number), False)

    def _numbers_of(self, one: Tensor | str) -> Numbers:
        if isinstance(one, Tensor):
            names = self._names.get(one)
            return self._sources(one) or self._reached(one)[1] if names is None else self._outer(names)
        return frozenset(
            at for at, each in enumerate(self._tensors) if one in (each.node_name, each.node_key, each.path)
        )

    def _sources(self, tensor: Tensor) -> Numbers:
        """The named tensors that `tensor` was computed from; its memory may have been written to since."""
        noted, found = self._origins.get(tensor) or (0, self._parameters.get(id(tensor), NO_NUMBERS))
        if not self._written:
            return found
        since, written = self._written.get(tensor) or (0, NO_NUMBERS)
        return found | written if since > noted else found

    def _reached(self, tensor: Tensor) -> tuple[Numbers, Numbers]:
        """The named tensors that gradient from `tensor` reaches first; and these without further names of the same."""
        if not has_edge(tensor) or self._length.is_over or is_stale(tensor):
            return NO_NUMBERS, NO_NUMBERS
        todo, seen = [edge_of(tensor)], set[Edge]()
        found: set[int] = set()
        first: set[int] = set()
        while todo and len(seen) < MOST_NODES:
            edge = todo.pop()
            if edge in seen:
                continue
            seen.add(edge)
            here = self._names_at(edge)
            if here:
                found.update(here)
                first |= self._outer(here)
            else:
                todo += [(source, slot) for source, slot in edge[0].next_functions if source is not None]
        return frozenset(found), frozenset(first)

    def _names_at(self, edge: Edge) -> Sequence[int]:
        """The named tensors whose gradient is delivered at an edge of the autograd graph."""
        variable = getattr(edge[0], "variable", None)
        if variable is None:
            return self._labels.get(_edge_key(edge), ())
        return sorted(self._parameters.get(id(variable), ())) or self._names.get(variable) or ()

    def _outer(self, names: Sequence[int]) -> Numbers:
        """Which of several names of one tensor is the one outside of the calls that it went into."""
        if self._is_leaf(names[0]):
            return frozenset(names)
        others = [number for number in names if self._tensors[number].role != "input"]
        return frozenset((others[-1] if others else names[0],))


def _edge_key(edge: Edge) -> EdgeKey:
    return edge[0]._sequence_nr(), edge[1]
