"""Finds the autograd nodes that return an input's gradient through one module call.

Inside a call, an input is consumed by some autograd nodes. The backward of each returns a summand of the input's
gradient, on the edge to the node that produced the input. So the edge of every input is noted before the forward pass,
and afterwards the nodes that the call made are walked back from its outputs. Nothing is inserted into the autograd
graph, so gradients are summed in the same order as without `watch`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.interrupts import Restoring

Edge: TypeAlias = "tuple[Any, int]"
"""An autograd node and the number of its output."""

Consumers: TypeAlias = "list[tuple[Any, int]]"
"""Autograd nodes, each with the position of the summand in the result of its backward."""

ACCUMULATOR = 2**64 - 1
"""The number that torch gives to the autograd node of each leaf."""

UNREACHED_VERSION = 2**31 - 1
"""A version of a tensor, which counts the writes into its memory, that is never reached."""

MOST_BETWEEN = 10_000
"""Autograd nodes between two calls of modules that are looked at, to find out that one led to the other."""

sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
"""Returns the number that this thread's next autograd node will get."""

WITHOUT_GRADIENT = frozenset(
    {
        torch._C._autograd.CreationMeta.NO_GRAD_MODE,
        torch._C._autograd.CreationMeta.INFERENCE_MODE,
    }
)
"""How views are made that no gradient comes to from what is computed of them."""

creation_of = torch._C._autograd._get_creation_meta
_set_versions = torch._C._autograd._unsafe_set_version_counter


def has_edge(tensor: Tensor) -> bool:
    """Whether gradient can come to `tensor`, so that it has an edge.

    A view that was made without gradient says that it requires one if its base does, but none comes to it. In inference
    mode, torch has no edge of a leaf, such as a parameter that a parametrization is called with, and none of a view.
    Only there is it asked for leaves: that uses a stale view.
    """
    if not tensor.requires_grad:
        return False
    if torch.is_inference_mode_enabled():
        return not (tensor._is_view() or tensor.is_leaf)
    return not tensor._is_view() or creation_of(tensor) not in WITHOUT_GRADIENT or _is_leaf_of_its_own(tensor)


def _is_leaf_of_its_own(view: Tensor) -> bool:
    """Whether a view that was made without gradient was then told to require one."""
    base = view._base
    if base is None or not base.requires_grad:
        return True
    try:
        with torch.enable_grad():
            node = view.view_as(view).grad_fn
    except RuntimeError:  # its base was written to since, and torch allows no use of it with gradients
        return False
    return node is not None and node.next_functions[0][0] is not None


def edge_of(tensor: Tensor) -> Edge:
    """The edge to which the gradient of `tensor` is delivered; for a leaf, that is its accumulator.

    A stale view has no such edge yet. For it, an edge like the one that it will get is returned.
    """
    return edge_and_staleness(tensor)[0]


def is_stale(tensor: Tensor) -> bool:
    """Whether `tensor` is a view whose memory was written to otherwise since it was made or last used.

    Its next use makes another autograd node for it. The moment of that use decides in which order gradients are summed.
    """
    return tensor._is_view() and _edge_of_view(tensor)[1]


def edge_and_staleness(tensor: Tensor) -> tuple[Edge, bool]:
    """`edge_of` and `is_stale`."""
    return _edge_of_view(tensor) if tensor._is_view() else (edge_in_use(tensor), False)


def edge_in_use(tensor: Tensor) -> Edge:
    """Like `edge_of`, but uses a stale view. To be called before a hook is put on one, since torch would crash."""
    if (node := tensor.grad_fn) is not None:
        return node, tensor.output_nr
    return torch.autograd.graph.get_gradient_edge(tensor).node, 0


def _edge_of_view(view: Tensor) -> tuple[Edge, bool]:
    """The edge of a view, and whether the view is stale; if it is, it stays so.

    Torch does not say, and asking for `grad_fn` uses a stale view. But then a node is made, which can be seen.
    """
    before = sequence_number()
    was_stale = view.grad_fn is not None and sequence_number() != before
    edge = edge_in_use(view)  # this also makes a node, to find the accumulator of a leaf
    if was_stale:
        make_stale(view)
    return edge, was_stale


@cache
def can_make_stale() -> bool:
    """Whether torch has what `make_stale` needs; an older one sets the version of one tensor alone."""
    one = torch.empty(0, device="cpu")
    try:
        _set_versions((one,), (one._version,))
    except TypeError:
        return False
    return True


def make_stale(view: Tensor) -> None:
    """Use a view at a version so high that torch will never take the view to be up to date."""
    if not can_make_stale():  # the view is left as used
        return
    version = view._version
    with Restoring(lambda: _set_versions((view,), (version,))):
        _set_versions((view,), (UNREACHED_VERSION,))
        view.grad_fn  # noqa: B018  # reading it uses the view


def made_within(edge: Edge, spans: Sequence[tuple[int, int, int]]) -> frozenset[int]:
    """Where what comes to `edge` was made last, of `spans`: from the number of an autograd node, to one, and a label.

    Nodes further back than the first ones in a span are not looked at. Gives up after `MOST_BETWEEN` nodes.
    """
    found: set[int] = set()
    seen, ahead = {edge[0]}, [edge[0]]
    while ahead and len(seen) < MOST_BETWEEN:
        node = ahead.pop()
        number = node._sequence_nr()
        label = next((label for start, end, label in spans if start <= number < end), None)
        if label is not None:
            found.add(label)
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                ahead.append(following)
    return frozenset(found)


class Walk:
    """The autograd nodes of one call, walked once.

    Nodes inside calls that this one made are not walked again: the edges that lead out of them are known already.

    Attributes:
        crossing: For every edge to a node older than the call: its consumers in the call.
    """

    def __init__(self, first: int) -> None:
        """A call begins. Its autograd nodes will be numbered from `first`."""
        self.first = first
        self.crossing: dict[Edge, Consumers] = {}
        self._children: dict[Any, list[Walk]] | None = None

    def add_child(self, child: Walk, outputs: Iterable[Edge]) -> None:
        """Note that `child`, whose walk is done, returned `outputs`."""
        for node, _ in outputs:
            if node._sequence_nr() >= child.first:
                if self._children is None:
                    self._children = {}
                self._children.setdefault(node, []).append(child)

    def run(self, inputs: Container[Edge], outputs: Iterable[Edge]) -> None:
        """Walk from `outputs` back to `inputs` and to everything else that is older than the call."""
        todo = [edge[0] for edge in outputs if edge not in inputs]
        first, crossing, of_children = self.first, self.crossing, self._children or {}
        seen = set()
        while todo:
            node = todo.pop()
            if node in seen or node._sequence_nr() < first:
                continue
            seen.add(node)
            children = of_children.get(node)
            if children is not None:
                todo += self._through(children, inputs)
                continue
            for slot, edge in enumerate(node.next_functions):
                source = edge[0]
                if source is None:
                    continue
                if edge in inputs or (number := source._sequence_nr()) < first:
                    crossing.setdefault(edge, []).append((node, slot))
                elif number != ACCUMULATOR or source in of_children:  # nothing leads on from an accumulator
                    todo.append(source)
        self._children = None

    def _through(self, children: list[Walk], inputs: Container[Edge]) -> Iterable[Any]:
        """Skip the calls that this one made; yields the nodes to continue with."""
        for child in children:
            for edge, consumers in child.crossing.items():
                if edge in inputs or edge[0]._sequence_nr() < self.first:
                    known = self.crossing.setdefault(edge, [])
                    known += [consumer for consumer in consumers if consumer not in known]
                else:
                    yield edge[0]


def reached(start: Edge, labels: Mapping[Edge, Iterable[int]], first: int) -> tuple[set[int], list[int]]:
    """The edges in `labels` that gradient from `start` reaches first, going back no further than node `first`.

    Returns:
        The labels of those edges, and the numbers of the autograd nodes on the way.
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
