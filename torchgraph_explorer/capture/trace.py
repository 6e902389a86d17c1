"""Traces the data of one step through the module calls, and makes the module graph of that.

A `TorchDispatchMode` sees every operation below autograd: views, in-place and integer operations, custom ones, and
those under `no_grad`. For each live tensor it remembers, level by level, which nodes of the graph it was computed
from. Whether gradient flows along an edge is read from the autograd graph.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor, nn
from torch._ops import _higher_order_ops
from torch.utils._python_dispatch import TorchDispatchMode

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.by_tensor import ByStorage, ByTensor
from torchgraph_explorer.capture.graph_length import GraphLength
from torchgraph_explorer.capture.inside import Inside, Level
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.named_tensors import NamedTensors
from torchgraph_explorer.capture.no_dispatch import plain
from torchgraph_explorer.capture.operation_tensors import tensors_of, written_tensors
from torchgraph_explorer.capture.path_gradients import (
    edge_of,
    has_edge,
    made_within,
    reached,
    sequence_number,
)
from torchgraph_explorer.capture.simple_modules import SIMPLE, is_simple
from torchgraph_explorer.capture.tensor_tree import tensor_info
from torchgraph_explorer.schema import Edge, Node, TensorInfo
from torchgraph_explorer.unvisited import unvisited

Nodes: TypeAlias = "dict[Level, frozenset[int]]"
"""Nodes, by level."""

Origins: TypeAlias = "tuple[int, Nodes, Nodes]"
"""Where one tensor came from: when that was noted, counted in operations; the nodes that it was computed from, on the
levels where it was made or returned; those that stand for it, on the levels where it was given to a call."""


NONE: frozenset[int] = frozenset()
"""No nodes."""

NOT_AN_ARGUMENT = "(not an argument)"
"""Path of a placeholder for a tensor that a call used although it was no argument, e.g. kept in an attribute."""

MOST_PLACEHOLDERS = 8
"""How many placeholders one call gets for such tensors; all further tensors share the last one."""

MOST_SOURCES, SOURCES_KEPT = 128, 16
"""If edges from more nodes lead to one call, as where each token attends to all before it, so many of them are kept:
the latest half, and others at equal distances."""


def _take_higher_order_operators() -> None:
    """Have torch give `torch.cond` and the like to the mode, as it does by itself from the attribute on (2.11)."""
    if hasattr(TorchDispatchMode, "supports_higher_order_operators"):
        return
    for operator in list(_higher_order_ops.values()):
        if Trace not in operator.python_key_table:
            operator.py_impl(Trace)(partial(_dispatch, operator))


def _dispatch(operator: Any, mode: Trace, /, *args: Any, **kwargs: Any) -> Any:
    return mode.__torch_dispatch__(operator, (), args, kwargs)


class Trace(TorchDispatchMode):
    """Sees the operations of one step from `enter` of the model's call to its `leave`.

    Attributes:
        nodes: The nodes so far, as `ModuleGraph.nodes`.
        fault: The exception that was raised in tracing, if there was one; nothing is traced after it.
        over: Nothing more is traced, even while the mode is still on.
        each: Called for each operation.
        look_at: Called with each operation, its arguments, its `result` and the number of the open `call`.
        named: The named tensors; None if no tensor is kept.
        length: How long the autograd graph is.
        lock: Held while an operation is noted. What this thread executes meanwhile, as in a signal's handler, is no
            part of the step.
        handed_over: By source and target of an edge between calls of the model itself: the paths of the inputs that
            come along it alone.
    """

    supports_higher_order_operators = True

    def __init__(self, named: NamedTensors | None, length: GraphLength, modules: ModulesByName) -> None:
        """Begin with an empty graph of `modules`. Nothing is traced until the mode is on."""
        super().__init__()  # type: ignore[no-untyped-call]
        _take_higher_order_operators()
        self.nodes: list[Node] = []
        self.fault: Exception | None = None
        self.over = False
        self.named, self.length = named, length
        self.each: Callable[[], None] = _do_nothing
        self.lock = interrupts.lock()
        self.look_at: Callable[..., None] = _do_nothing
        self.handed_over: dict[tuple[int, int], list[str]] = {}
        self._edges: dict[int, dict[int, bool]] = {}
        self._parents: dict[int, tuple[Level, int]] = {}
        # The operations of simple modules are of interest only where they make a tensor that is kept.
        simple = modules.items() if named is None else ()
        self._simple = {name: weakref.ref(module) for name, module in simple if type(module) in SIMPLE}
        self._stack = [Inside(None, -1, 0)]
        self._origins: ByTensor[Origins] = ByTensor()
        self._written: ByStorage[Origins] = ByStorage()
        self._time = 0

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges so far, by source and target."""
        found = ((source, target, flows) for target, some in self._edges.items() for source, flows in some.items())
        return tuple(Edge(*each) for each in sorted(found))

    def enter(
        self, call: int, inputs: Sequence[tuple[TensorInfo, Tensor]], *, within: int | None, name: str = ""
    ) -> None:
        """Call number `call`, of module `name`, begins inside the open call `within`. Other calls inside are over."""
        outer = self._open(within)
        self._see(outer)
        inside = Inside(call, self._add(Node("call", outer.level, call=call)), sequence_number())
        self._parents[call] = (outer.level, inside.node)
        for info, tensor in inputs:
            sources = self._connect(tensor, inside.node, outer)
            if outer.level is None and len(sources) == 1:
                self.handed_over.setdefault((min(sources), inside.node), []).append(info.path)
        simple = None if outer.level is None else self._simple.get(name)  # what the loop calls is shown with its inside
        module = None if simple is None else simple()
        if module is not None and is_simple(module, (tensor for _, tensor in inputs)):
            self._enter_simple(module, inputs, inside=inside, outer=outer)
            inside.unseen = inputs
        else:
            self._place(inputs, inside)
        self._stack.append(inside)

    def _place(self, inputs: Iterable[tuple[TensorInfo, Tensor]], inside: Inside) -> None:
        """Add placeholders for what a call was given. The same tensor may be given twice."""
        placeholders: dict[int, tuple[Tensor, list[int]]] = {}
        for info, tensor in inputs:
            placeholder = self._add(Node("input", inside.level, tensor=info))
            placeholders.setdefault(id(tensor), (tensor, []))[1].append(placeholder)
        for tensor, nodes in placeholders.values():
            self._give(tensor, nodes, inside)

    def _enter_simple(
        self, module: nn.Module, inputs: Sequence[tuple[TensorInfo, Tensor]], *, inside: Inside, outer: Inside
    ) -> None:
        """A call of a simple module begins: all that it may use besides its arguments is its parameters."""
        edges = self._edges.setdefault(inside.node, {})
        for parameter in (one for one in module._parameters.values() if one is not None):
            for source in self._sources(parameter, outer):
                edges.setdefault(source, parameter.requires_grad)
        for _, tensor in inputs:
            if (origins := self._origins.get(tensor)) is not None:
                self._origins[tensor] = unvisited((self._time, *origins[1:]))

    def _see(self, inside: Inside) -> None:
        """Note what is computed in a call from now on: something is in its inside."""
        inputs, inside.unseen = inside.unseen, None
        if inputs is not None:
            self._place(inputs, inside)

    def leave(self, call: int, outputs: Sequence[tuple[TensorInfo, Tensor]]) -> None:
        """The open call number `call` has returned `outputs`. Calls within it are over, too."""
        inside = self._open(call)
        for info, tensor in outputs if inside.unseen is None else ():
            self._connect(tensor, self._add(Node("output", inside.level, tensor=info)), inside)
        self._stack.pop()
        self._thin(inside.node)
        for _, tensor in outputs:
            self._mark(tensor, [inside.node], self._stack[-1])
        self._stack[-1].spans.append((inside.first, sequence_number(), inside.node))
        inside.labels.clear()
        inside.stale.clear()
        inside.unseen = None

    def _thin(self, target: int) -> None:
        """The call of node `target` is over. If there are very many edges to it, keep only some of them."""
        edges = self._edges.get(target, {})
        if len(edges) > MOST_SOURCES:
            half = SOURCES_KEPT // 2
            ordered = sorted(edges)
            earlier, latest = ordered[:-half], ordered[-half:]
            kept = [*earlier[:: -(-len(earlier) // half)], *latest]
            self._edges[target] = {source: edges[source] for source in kept}

    def _open(self, level: Level) -> Inside:
        """The open call `level`. An exception has ended those within it."""
        while self._stack[-1].level != level:
            self._stack.pop()
        return self._stack[-1]

    def attach(self, call: int, tensors: Iterable[tuple[TensorInfo, Tensor]]) -> None:
        """Tensors of the open call `call` were given names; each becomes a node of its inside."""
        inside = next(each for each in reversed(self._stack) if each.level == call)
        self._see(inside)
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
            result = func(*args, **kwargs)  # your operation, as without watch: an error below this line is its own
            if self.fault is None and not self.over and not interrupts.is_held(self.lock):
                try:
                    with self.lock:
                        self.look_at(func, args, kwargs, result=result, call=self._stack[-1].level)
                        if self._stack[-1].unseen is None:
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
        given, results = tensors_of((*args, *kwargs.values()) if kwargs else args), tensors_of((result,))
        sources = NONE
        for tensor in given:
            sources = _joint(sources, self._sources(tensor, inside))
        written = written_tensors(func, args, kwargs)
        if self.named is not None:
            self.named.note(given, written, results)
        self._time += 1
        for tensor in written:
            self._origins[tensor] = self._written[tensor] = self._made(inside, sources)
        for tensor in results:
            if not any(tensor is one for one in written):
                self._origins[tensor] = self._origins[plain(tensor)] = self._made(inside, sources)

    def _made(self, inside: Inside, sources: frozenset[int]) -> Origins:
        """The origins of a tensor that was made from `sources` just now."""
        return unvisited((self._time, unvisited({inside.level: sources}), {}))

    def _add(self, node: Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _mark(self, tensor: Tensor, nodes: list[int], inside: Inside) -> None:
        """Let `tensor` come from `nodes` alone on the level of `inside`, from now on."""
        _, made, given = self._origins.get(tensor) or (0, {}, {})
        self._time += 1
        self._origins[tensor] = _with((self._time, made, given), inside.level, unvisited(frozenset(nodes)))
        self._label(tensor, nodes, inside)

    def _give(self, tensor: Tensor, nodes: list[int], inside: Inside) -> None:
        """`tensor` is given to the call `inside`: on the level of that, it comes from `nodes` alone from now on."""
        _, made, given = self._origins.get(tensor) or (0, {}, {})
        self._time += 1
        given = unvisited({**given, inside.level: unvisited(frozenset(nodes))})
        self._origins[tensor] = unvisited((self._time, made, given))
        self._label(tensor, nodes, inside)

    def _label(self, tensor: Tensor, nodes: list[int], inside: Inside) -> None:
        """Its gradient belongs to `nodes` from now on."""
        if inside.level is None:  # this level outlives the forward pass, and must not keep the autograd graph alive
            return
        if has_edge(tensor) and not self.length.is_over:
            inside.label(tensor, nodes)

    def _connect(self, tensor: Tensor, target: int, inside: Inside) -> frozenset[int]:
        """Add the edges along which `tensor` came to `target`; returns their sources.

        The operations say where data came from; autograd says whether gradient goes back there. A node whose results
        have no gradient function of their own, as in a reentrant checkpoint or where it wrote into its input, is
        missed by the walk of the autograd graph, which then arrives at a node further back. Of a graph that is too long
        to be walked, gradient is assumed to go where data came from.
        """
        if tensor.requires_grad and self.length.is_over:
            sources = self._sources(tensor, inside)
            self._edges.setdefault(target, {}).update(dict.fromkeys(sources, True))
            return sources
        if inside.level is None and has_edge(tensor):
            # What other calls have not returned, the training loop has computed from that.
            sources = self._sources(tensor, inside) or made_within(edge_of(tensor), inside.spans)
            self._edges.setdefault(target, {}).update(dict.fromkeys(sources, True))
            return sources
        flowing: set[int] = set()
        inside.label_stale()
        if has_edge(tensor):
            flowing, passed = reached(edge_of(tensor), inside.labels, inside.first)
            flowing.update(node for number in passed if (node := inside.made(number)) is not None)
        sources = self._sources(tensor, inside) or frozenset(flowing)
        overshot = bool(flowing - sources)
        edges = self._edges.setdefault(target, {})
        for source in sources:
            gradient = source in flowing or (overshot and source not in inside.labelled)
            edges[source] = edges.get(source, False) or gradient
        return sources

    def _sources(self, tensor: Tensor, inside: Inside) -> frozenset[int]:
        """The nodes of `inside` from which `tensor` was computed.

        Its memory may have been written to through another view since; those sources are included.
        """
        origins = self._origins.get(tensor)
        if origins is None and (local := plain(tensor)) is not tensor:  # no operation makes a distributed tensor of it
            return self._sources(local, inside)
        found = NONE if origins is None else self._resolve(origins, tensor, inside)
        written = self._written.get(tensor) if self._written else None
        noted, made, given = origins or (0, {}, {})
        if written is not None and written[0] > noted:
            found |= self._resolve(written, tensor, inside)
            self._origins[tensor] = _with((noted, made, given), inside.level, found)
        return found

    def _resolve(self, origins: Origins, tensor: Tensor, inside: Inside) -> frozenset[int]:
        _, made, given = origins
        found = given.get(inside.level)
        if found is None:
            found = made.get(inside.level)
        if found is not None:
            return found
        if made and (lifted := self._lift(made, inside)):
            return lifted
        return self._push_down(origins, tensor, inside)

    def _lift(self, made: Nodes, inside: Inside) -> frozenset[int]:
        """The nodes of `inside` in whose own inside the tensor was made, if it got out without being returned."""
        found = set()
        for level in made:
            outer: Level = level
            while outer is not None:
                outer, node = self._parents[outer]
                if outer == inside.level:
                    found.add(node)
                    break
        return frozenset(found)

    def _push_down(self, origins: Origins, tensor: Tensor, inside: Inside) -> frozenset[int]:
        """The tensor is from further out and came in without being an argument: add a placeholder for it."""
        if inside.level is None:
            return frozenset()
        at = next(i for i, each in enumerate(self._stack) if each is inside)
        outer = self._stack[at - 1]
        sources = self._resolve(origins, tensor, outer)
        if not sources:
            return frozenset()
        edges = self._edges.setdefault(inside.node, {})
        for source in sources:
            edges.setdefault(source, tensor.requires_grad)
        if len(inside.placeholders) < MOST_PLACEHOLDERS:
            info = tensor_info(NOT_AN_ARGUMENT, tensor)
            inside.placeholders.append(self._add(Node("input", inside.level, tensor=info)))
        placeholder = origins[2][inside.level] = frozenset(inside.placeholders[-1:])
        return placeholder


def _with(known: Origins, level: Level, nodes: frozenset[int]) -> Origins:
    """`known` with `nodes` on `level`, where the tensor was given to a call or else was made."""
    noted, made, given = known
    if level in given:
        return unvisited((noted, made, unvisited({**given, level: nodes})))
    return unvisited((noted, unvisited({**made, level: nodes}), given))


def _do_nothing(*_: object, **__: object) -> None:
    """Nobody wants to know of operations."""


def _joint(some: frozenset[int], more: frozenset[int]) -> frozenset[int]:
    """Both together; one of the two itself where it has all."""
    if not more or some is more:
        return some
    return some | more if some else more
