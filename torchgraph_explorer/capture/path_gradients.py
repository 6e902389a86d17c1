"""Which autograd nodes hand an input's gradient back through one module call.

An input of a call is consumed, inside the call, by some autograd nodes; the backward of each returns its share of the
input's gradient on the edge that points at the input's producer. So the edge of every input is remembered before the
forward pass, and afterwards the nodes that the call made are walked from its outputs back. Nothing is inserted into
the autograd graph, so gradients are summed in the order in which they are summed unwatched.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.interrupts import Restoring

Edge: TypeAlias = "tuple[Any, int]"
"""An autograd node and the number of its output."""

Consumers: TypeAlias = "list[tuple[Any, int]]"
"""Autograd nodes, each with the position in its backward's result where the share stands."""

NO_VERSION = 2**31 - 1
"""As a count of writes into some memory, one that is never reached."""

_sequence_number = torch._C._autograd._get_sequence_nr
_set_versions = torch._C._autograd._unsafe_set_version_counter


def edge_of(tensor: Tensor) -> Edge:
    """Where `tensor`'s gradient is delivered; for a leaf that is its accumulator.

    A stale view has no such place yet: what is returned only looks like the one that it will get.
    """
    if tensor._is_view():
        return _look(tensor)[0]
    return edge_in_use(tensor)


def is_stale(tensor: Tensor) -> bool:
    """Whether `tensor` is a view whose memory was written to in another way since it was made or used last.

    Its next use will give it another autograd node. When that is decides in which order gradients are summed.
    """
    return tensor._is_view() and _look(tensor)[1]


def edge_in_use(tensor: Tensor) -> Edge:
    """The same, but to ask is to use a stale view. To be asked before a hook is put on one, by which torch crashes."""
    if tensor.grad_fn is not None:
        return tensor.grad_fn, tensor.output_nr
    return torch.autograd.graph.get_gradient_edge(tensor).node, 0


def _look(view: Tensor) -> tuple[Edge, bool]:
    """The edge of a view, and whether the view is stale, which it is afterwards as before.

    Torch does not tell, and looking at a stale view is to use it. But if so, a node was made.
    """
    before = _sequence_number()
    was_stale = view.grad_fn is not None and _sequence_number() != before
    edge = edge_in_use(view)  # which makes a node, too, to find the accumulator of a leaf
    if was_stale:
        _make_stale(view)
    return edge, was_stale


def _make_stale(view: Tensor) -> None:
    """Use a view as if after so many writes that it will never be taken to be up to date with them."""
    version = view._version
    try:
        _set_versions((view,), (version,))
    except TypeError:  # an older torch, which takes one tensor: the view stays used
        return
    with Restoring(lambda: _set_versions((view,), (version,))):
        _set_versions((view,), (NO_VERSION,))
        view.grad_fn  # noqa: B018  # asking is what does it


def sequence_number() -> int:
    """The number that this thread's next autograd node will get."""
    return int(_sequence_number())


class Walk:
    """The autograd nodes of one call, walked once.

    Nodes inside calls that this one made are not walked again: what crossed out of those is known already.

    Attributes:
        crossing: For every edge to a node older than the call: who consumed it in here.
    """

    def __init__(self, first: int) -> None:
        """Begin a call whose autograd nodes are numbered from `first`."""
        self.first = first
        self.crossing: dict[Edge, Consumers] = {}
        self._children: dict[Any, list[Walk]] = {}

    def add_child(self, child: Walk, outputs: Iterable[Edge]) -> None:
        """Know that `child`, whose walk is done, returned `outputs`."""
        for node, _ in outputs:
            if node._sequence_nr() >= child.first:
                self._children.setdefault(node, []).append(child)

    def run(self, inputs: Container[Edge], outputs: Iterable[Edge]) -> None:
        """Walk from `outputs` back to `inputs` and to whatever else is older than the call."""
        todo = [edge[0] for edge in outputs if edge not in inputs]
        seen = set()
        while todo:
            node = todo.pop()
            if node in seen or node._sequence_nr() < self.first:
                continue
            seen.add(node)
            children = self._children.get(node)
            if children is not None:
                todo += self._through(children, inputs)
                continue
            for slot, edge in enumerate(node.next_functions):
                source = edge[0]
                if source is None:
                    continue
                if edge in inputs or source._sequence_nr() < self.first:
                    self.crossing.setdefault(edge, []).append((node, slot))
                else:
                    todo.append(source)
        self._children.clear()

    def _through(self, children: list[Walk], inputs: Container[Edge]) -> Iterable[Any]:
        """Over the calls that this one made; yields the nodes to go on with."""
        for child in children:
            for edge, consumers in child.crossing.items():
                if edge in inputs or edge[0]._sequence_nr() < self.first:
                    known = self.crossing.setdefault(edge, [])
                    known += [consumer for consumer in consumers if consumer not in known]
                else:
                    yield edge[0]


def reached(start: Edge, labels: Mapping[Edge, Iterable[int]], first: int) -> tuple[set[int], list[int]]:
    """Where gradient from `start` arrives at first, going back no further than node `first`.

    Returns:
        The labels of the edges it arrives at, and the numbers of the autograd nodes on the way.
    """
    todo, seen = [start], set()
    found: set[int] = set()
    passed: list[int] = []
    while todo:
        edge = todo.pop()
        if edge in seen:
            continue
        seen.add(edge)
        number = edge[0]._sequence_nr()
        if (here := labels.get(edge)) is not None:
            found.update(here)
        elif number >= first:
            passed.append(number)
            todo += [(source, slot) for source, slot in edge[0].next_functions if source is not None]
    return found, passed
