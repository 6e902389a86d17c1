"""Traces the data of one step through the module calls, and makes the module graph of that.

A `TorchDispatchMode` sees every operation below autograd: views, in-place and integer operations, custom ones, and
those under `no_grad`. For each live tensor it remembers, level by level, which nodes of the graph it was computed
from. Whether gradient flows along an edge is read from the autograd graph.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.named_tensors import NamedTensors, storage_of
from torchgraph_explorer.capture.path_gradients import Edge as GradientEdge
from torchgraph_explorer.capture.path_gradients import edge_of, is_stale, made_within, reached, sequence_number
from torchgraph_explorer.capture.tensor_tree import tensor_info, tensors
from torchgraph_explorer.schema import Edge, Node, TensorInfo

Level: TypeAlias = "int | None"
"""A call, by number, whose inside is meant; None for the outside of the model."""

Origins: TypeAlias = "dict[Level, frozenset[int]]"
"""For one tensor: the nodes that it was computed from, on each level."""

TimedOrigins: TypeAlias = "tuple[int, Origins]"
"""When the origins were noted, counted in operations, and the origins."""


NOT_AN_ARGUMENT = "(not an argument)"
"""Path of a placeholder for a tensor that a call used although it was no argument, e.g. kept in an attribute."""


@dataclass(slots=True)
class _Inside:
    """A call that is being executed, and what is known of its inside.

    Attributes:
        first: Autograd nodes made in it are numbered from here.
        labels: For each edge, the nodes whose tensors deliver their gradient there. They are several if a call
            returned one of its arguments.
        labelled: All nodes in `labels`.
        stale: Stale views, which have no edge before they are used; their versions; their nodes.
        spans: For each call that is over: the numbers of the autograd nodes made in it, from and to, and its node.
    """

    level: Level
    node: int
    first: int
    labels: dict[GradientEdge, list[int]] = field(default_factory=dict)
    labelled: set[int] = field(default_factory=set)
    stale: list[tuple[Tensor, int, list[int]]] = field(default_factory=list)
    spans: list[tuple[int, int, int]] = field(default_factory=list)

    def label(self, tensor: Tensor, nodes: list[int]) -> None:
        """From now on, the edge of `tensor` belongs to `nodes`."""
        if is_stale(tensor):
            self.stale.append((tensor, tensor._version, nodes))
            return
        self.labels.setdefault(edge_of(tensor), []).extend(nodes)
        self.labelled.update(nodes)

    def label_stale(self) -> None:
        """Label the stale views that have been used since."""
        stale, self.stale = self.stale, []
        for tensor, version, nodes in stale:
            if tensor._version == version:
                self.label(tensor, nodes)


class Trace(TorchDispatchMode):
    """Sees the operations of one step from `enter` of the model's call to its `leave`.

    Attributes:
        nodes: The nodes so far, as `ModuleGraph.nodes`.
        fault: The exception that was raised in tracing, if there was one; nothing is traced after it.
        over: Nothing more is traced, even while the mode is still on.
        each: Called for each operation.
        named: The named tensors; None if no tensor is kept.
        length: How long the autograd graph is.
        handed_over: By source and target of an edge between calls of the model itself: the paths of the inputs that
            come along it alone.
    """

    supports_higher_order_operators = True

    def __init__(self, named: NamedTensors | None, length: GraphLength) -> None:
        """Begin with an empty graph. Nothing is traced until the mode is on."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes: list[Node] = []
        self.fault: Exception | None = None
        self.over = False
        self.named, self.length = named, length
        self.each: Callable[[], None] = _do_nothing
        self.handed_over: dict[tuple[int, int], list[str]] = {}
        self._edges: dict[tuple[int, int], bool] = {}
        self._parents: dict[int, tuple[Level, int]] = {}
        self._stack = [_Inside(None, -1, 0)]
        self._origins: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
        self._written: dict[int, TimedOrigins] = {}
        self._time = 0

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges so far, by source and target."""
        return tuple(Edge(*ends, gradient) for ends, gradient in sorted(self._edges.items()))

    def enter(self, call: int, inputs: Iterable[tuple[TensorInfo, Tensor]], *, within: int | None) -> None:
        """Call number `call` begins inside the open call `within`. Other calls inside of that are over."""
        outer = self._open(within)
        inside = _Inside(call, self._add(Node("call", outer.level, call=call)), sequence_number())
        self._parents[call] = (outer.level, inside.node)
        placeholders: dict[int, tuple[Tensor, list[int]]] = {}
        for info, tensor in inputs:
            sources = self._connect(tensor, inside.node, outer)
            if outer.level is None and len(sources) == 1:
                self.handed_over.setdefault((min(sources), inside.node), []).append(info.path)
            placeholder = self._add(Node("input", call, tensor=info))
            placeholders.setdefault(id(tensor), (tensor, []))[1].append(placeholder)
        self._stack.append(inside)
        for tensor, nodes in placeholders.values():  # the same tensor may be given twice
            self._mark(tensor, nodes, inside)

    def leave(self, call: int, outputs: Sequence[tuple[TensorInfo, Tensor]]) -> None:
        """The open call number `call` has returned `outputs`. Calls within it are over, too."""
        inside = self._open(call)
        for info, tensor in outputs:
            self._connect(tensor, self._add(Node("output", inside.level, tensor=info)), inside)
        self._stack.pop()
        for _, tensor in outputs:
            self._mark(tensor, [inside.node], self._stack[-1])
        self._stack[-1].spans.append((inside.first, sequence_number(), inside.node))
        inside.labels.clear()
        inside.stale.clear()

    def _open(self, level: Level) -> _Inside:
        """The open call `level`. An exception has ended those within it."""
        while self._stack[-1].level != level:
            self._stack.pop()
        return self._stack[-1]

    def attach(self, call: int, tensors: Iterable[tuple[TensorInfo, Tensor]]) -> None:
        """Tensors of the open call `call` were given names; each becomes a node of its inside."""
        inside = next(each for each in reversed(self._stack) if each.level == call)
        for info, tensor in tensors:
            node = self._add(Node("attached", call, tensor=info))
            self._connect(tensor, node, inside)
            self._mark(tensor, [node], inside)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether dynamo may compile below this mode: only for `torch.cond` and the like, which need it."""
        operators = sys.modules.get("torch._higher_order_ops.utils")
        return bool(getattr(operators, "_in_hop_compile", lambda: True)())

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing dynamo, which takes seconds."""
        return False

    @interrupts.entry
    def __torch_dispatch__(  # noqa: PLR0917  # torch's signature
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation as it is, then note where its results came from."""
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
            if self.fault is None and not self.over:
                try:
                    self._note(func, (args, kwargs), result)
                except Exception as fault:  # ours, in the middle of the user's operation, where it must not be raised
                    self.fault = fault
        except Exception:
            raise
        except BaseException:
            interrupts.restore_all()
            raise
        return result

    def _note(self, func: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]], result: Any) -> None:
        self.each()
        inside = self._stack[-1]
        args, kwargs = arguments
        sources: frozenset[int] = frozenset()
        for _, tensor in tensors([args, kwargs], ""):
            sources |= self._sources(tensor, inside)
        written = [t for place in _written_arguments(func) for _, t in tensors(_argument(place, args, kwargs), "")]
        if self.named is not None:
            results = [tensor for _, tensor in tensors(result, "")]
            given = [tensor for _, tensor in tensors([args, kwargs], "")]
            self.named.note(given, written, results, in_new_memory=not _returns_view(func))
        self._time += 1
        for tensor in written:
            self._origins[tensor] = noted = (self._time, {inside.level: sources})
            if (key := storage_of(tensor)) is not None:
                self._written[key] = noted
        for _, tensor in tensors(result, ""):
            if not any(tensor is one for one in written):
                self._note_new(func, tensor, {inside.level: sources})

    def _note_new(self, func: Any, tensor: Tensor, origins: Origins) -> None:
        """`tensor` is a result of `func`. Unless it is a view, its memory is new, too."""
        self._origins[tensor] = (self._time, origins)
        if not _returns_view(func) and (key := storage_of(tensor)) is not None:
            self._written.pop(key, None)

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _mark(self, tensor: Tensor, nodes: list[int], inside: _Inside) -> None:
        """From now on, `tensor` comes from `nodes` alone on the level of `inside`."""
        _, known = self._origins.get(tensor) or (0, {})
        self._time += 1
        self._origins[tensor] = (self._time, known | {inside.level: frozenset(nodes)})
        if inside.level is None:  # this level outlives the forward pass, and must not keep the autograd graph alive
            return
        if tensor.requires_grad and not self.length.is_over:
            inside.label(tensor, nodes)

    def _connect(self, tensor: Tensor, target: int, inside: _Inside) -> frozenset[int]:
        """Add the edges along which `tensor` came to `target`; returns their sources.

        The operations say where data came from; autograd says whether gradient goes back there. A node whose results
        have no gradient function of their own, as in a reentrant checkpoint or where it wrote into its input, is
        missed by the walk of the autograd graph, which then arrives at a node further back. Of a graph that is too long
        to be walked, gradient is assumed to go where data came from.
        """
        if tensor.requires_grad and self.length.is_over:
            sources = self._sources(tensor, inside)
            self._edges.update(((source, target), True) for source in sources)
            return sources
        if inside.level is None and tensor.requires_grad:
            # What other calls have not returned, the training loop has computed from that.
            sources = self._sources(tensor, inside) or made_within(edge_of(tensor), inside.spans)
            self._edges.update(((source, target), True) for source in sources)
            return sources
        flowing: set[int] = set()
        inside.label_stale()
        if tensor.requires_grad:
            flowing, passed = reached(edge_of(tensor), inside.labels, inside.first)
            numbers = sorted(passed)
            spans = inside.spans if numbers else ()
            flowing |= {node for start, end, node in spans if bisect_left(numbers, start) < bisect_left(numbers, end)}
        sources = self._sources(tensor, inside) or frozenset(flowing)
        overshot = bool(flowing - sources)
        for source in sources:
            gradient = source in flowing or (overshot and source not in inside.labelled)
            self._edges[source, target] = self._edges.get((source, target), False) or gradient
        return sources

    def _sources(self, tensor: Tensor, inside: _Inside) -> frozenset[int]:
        """The nodes of `inside` from which `tensor` was computed.

        Its memory may have been written to through another view since; those sources are included.
        """
        noted, known = self._origins.get(tensor) or (0, {})
        found = self._resolve(known, tensor, inside)
        since, written = self._written.get(storage_of(tensor) or 0) or (0, {})
        if since > noted:
            found |= self._resolve(written, tensor, inside)
            self._origins[tensor] = (noted, known | {inside.level: found})
        return found

    def _resolve(self, known: Origins, tensor: Tensor, inside: _Inside) -> frozenset[int]:
        if inside.level in known:
            return known[inside.level]
        if lifted := self._lift(known, inside):
            return lifted
        return self._push_down(known, tensor, inside)

    def _lift(self, known: Origins, inside: _Inside) -> frozenset[int]:
        """The nodes of `inside` in whose own inside the tensor was made, if it got out without being returned."""
        found = set()
        for level in known:
            outer: Level = level
            while outer is not None:
                outer, node = self._parents[outer]
                if outer == inside.level:
                    found.add(node)
                    break
        return frozenset(found)

    def _push_down(self, known: Origins, tensor: Tensor, inside: _Inside) -> frozenset[int]:
        """The tensor is from further out and came in without being an argument: add a placeholder for it."""
        if inside.level is None:
            return frozenset()
        at = next(i for i, each in enumerate(self._stack) if each is inside)
        outer = self._stack[at - 1]
        sources = self._resolve(known, tensor, outer)
        if not sources:
            return frozenset()
        for source in sources:
            self._edges.setdefault((source, inside.node), tensor.requires_grad)
        info = tensor_info(NOT_AN_ARGUMENT, tensor)
        known[inside.level] = frozenset((self._add(Node("input", inside.level, tensor=info)),))
        return known[inside.level]


def _do_nothing() -> None:
    """Nobody wants to know of operations."""


@cache
def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of each argument that the operation writes into."""
    schema = getattr(func, "_schema", None)
    return tuple(
        (i, argument.name)
        for i, argument in enumerate(schema.arguments if schema else ())
        if argument.alias_info is not None and argument.alias_info.is_write
    )


@cache
def _returns_view(func: Any) -> bool:
    """Whether a result shares memory with an argument."""
    schema = getattr(func, "_schema", None)
    return schema is None or any(returned.alias_info is not None for returned in schema.returns)


def _argument(place: tuple[int, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    position, name = place
    return args[position] if position < len(args) else kwargs.get(name)
