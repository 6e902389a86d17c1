"""Finds where gradient comes back along each edge inside one call.

An edge leads from a place in the call's inside to another one. Where a tensor is handed on to a call as it is, what
comes back is the gradient of that call's input, which is recorded anyway. Else, as for a skip into an addition, the
autograd nodes between the two places are walked back: what comes back along the edge is what those of them return that
no other edge's target has, as near to the source as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from torchgraph_explorer.capture.path_gradients import Consumers, Edge, sequence_number

Place: TypeAlias = "int | tuple[str, str]"
"""In the inside of a call: a call that it makes, by number; or the role and the path of a tensor."""

Ends: TypeAlias = "tuple[Place, Place]"
"""Source and target of an edge."""

Found: TypeAlias = "list[Consumers | str]"
"""Where to read the gradients along an edge, one for each tensor that comes along it: the sum of what autograd nodes
return; or the series of the target's tensor with this path."""

MOST_ARCS = 10_000
"""Arcs of the autograd graph that are looked at in one call. Beyond them, its edges are not recorded."""


FULL_BACKWARD_HOOK = "BackwardHookFunctionBackward"
"""The autograd node that torch adds to each output of a module that has a full backward hook."""


class _Arc(NamedTuple):  # a frozen dataclass takes three times as long to make
    """A way from an autograd node back to the next one: the position of the summand, where it goes, the place there."""

    node: Any
    slot: int
    to: Edge
    place: Place | None


class _Reading(NamedTuple):
    """One way to read what comes back from a target to a source.

    Attributes:
        kind: `handed on`: as the gradient of the target's tensor, which is the source's. `own`: from nodes that return
            it to the source. `joint`: from nodes further away from it, since the nearer ones have other targets, too.
        where: The path, or the nodes; None if there is no such series.
    """

    kind: Literal["handed on", "own", "joint"]
    where: str | Consumers | None


class _Target(NamedTuple):
    """What was given to a place.

    Attributes:
        handed_on: Tensors that come from places as they are: the place, where their gradient is delivered, their path.
        starts: Tensors that were computed since: where their gradient is delivered, their path.
        arcs: Those that lead from `starts` to places, by node.
    """

    handed_on: list[tuple[Place, Edge, str]]
    starts: list[tuple[Edge, str]]
    arcs: dict[Any, list[_Arc]]

    def sources_behind(self, node: Any) -> dict[Place, None]:
        """The places that the arcs lead to from `node`, in an order that is the same in each run."""
        todo, seen, found = [node], {node}, dict[Place, None]()
        while todo:
            for arc in self.arcs.get(todo.pop(), ()):
                if arc.place is not None:
                    found[arc.place] = None
                elif arc.to[0] not in seen:
                    seen.add(arc.to[0])
                    todo.append(arc.to[0])
        return found


class InsideGradients:
    """What goes from place to place in one open call. Nothing is inserted into the autograd graph."""

    def __init__(self, first: int, inputs: Mapping[Edge, Sequence[str]]) -> None:
        """The call, whose autograd nodes are numbered from `first`, was given these inputs."""
        self._first = first
        self._places: dict[Edge, Place] = {edge: ("input", paths[0]) for edge, paths in inputs.items()}
        self._starts: list[int] = []
        self._ends: list[tuple[int, Place]] = []
        self._given: dict[Place, list[tuple[Place | None, Edge, str]]] = {}
        self._arcs_from: dict[Place, dict[Any, list[_Arc]]] = {}
        self._unchanged: dict[Place, set[Edge]] = {}
        self._arcs = 0

    def take(self, target: Place, edge: Edge, path: str) -> None:
        """A tensor is given to `target`, whose gradient is delivered to `edge`."""
        place = self._place_of(edge)
        if place is None and self._is_own(edge[0]):
            self._walk(edge[0], self._arcs_from.setdefault(target, {}))
        elif place is None:
            return
        given = self._given.get(target)
        if given is None:
            self._given[target] = [(place, edge, path)]
        else:
            given.append((place, edge, path))

    def give(self, source: Place, edge: Edge) -> None:
        """A tensor comes from `source`, which may have been given it."""
        for place, given, _ in self._given.get(source, ()):
            if given == edge and place is not None:
                self._unchanged.setdefault(source, set()).add(edge)
        self._places[edge] = source

    def end(self, call: int, first: int) -> None:
        """The call number `call`, whose autograd nodes are numbered from `first`, is over."""
        self._starts.append(first)
        self._ends.append((sequence_number(), call))

    @property
    def needs_hooks(self) -> bool:
        """Whether there may be an edge whose gradient is not that of a tensor which a place was given."""
        return bool(self._arcs_from)

    def _targets(self, *, are_all: bool = True) -> dict[Place, _Target]:
        """What was given to each place, in the order in which they were given it; or to those with arcs alone."""
        found = {}
        for place, given in self._given.items():
            if not (are_all or self._arcs_from.get(place)):
                continue
            handed_on = [(source, edge, path) for source, edge, path in given if source is not None]
            starts = [(edge, path) for source, edge, path in given if source is None]
            found[place] = _Target(handed_on, starts, self._arcs_from.get(place, {}))
        return found

    def found(self, *, are_named: bool = True) -> dict[Ends, Found]:
        """Where to read the gradient along each edge. An edge for which that is not known is left out.

        Without `are_named`, only edges whose gradient needs a hook are of use, and others may be missing.
        """
        if self._arcs > MOST_ARCS:
            return {}
        targets = self._targets(are_all=are_named)
        takers = Counter(node for target in targets.values() for node in target.arcs)
        uses = Counter[Edge]()
        if are_named:
            uses.update(arc.to for each in targets.values() for arcs in each.arcs.values() for arc in arcs)
            uses.update(edge for place, each in targets.items() for edge in self._used_by(place, each))
        found: dict[Ends, Found] = {}
        for place, target in targets.items():
            readings: dict[Place, list[_Reading]] = {}
            for source, reading in (*self._handed_on(place, target, uses), *_computed(place, target, takers)):
                readings.setdefault(source, []).append(reading)
            for source, all_of_them in readings.items():
                if (known := _agreed(all_of_them)) is not None:
                    found[source, place] = known
        return found

    def onward(self) -> dict[Ends, Ends]:
        """For each edge whose target hands its tensor on unchanged, to one place: the edge to there."""
        if not self._unchanged:
            return {}
        targets, found = self._targets(), dict[Ends, Ends]()
        takers = [(source, to) for to, each in targets.items() for source, _, _ in each.handed_on if source != to]
        takers += [
            (arc.place, to)
            for to, each in targets.items()
            for arcs in each.arcs.values()
            for arc in arcs
            if arc.place is not None
        ]
        for place, edges in self._unchanged.items():
            onward = [to for source, to in takers if source == place]
            for source, edge, _ in targets[place].handed_on if len(onward) == len(edges) == 1 else ():
                if edge in edges:
                    found[source, place] = place, onward[0]
        return found

    def _used_by(self, place: Place, target: _Target) -> Iterator[Edge]:
        unchanged = self._unchanged.get(place, ())
        yield from (edge for _, edge, _ in target.handed_on if edge not in unchanged)

    def _handed_on(self, place: Place, target: _Target, uses: Counter[Edge]) -> Iterator[tuple[Place, _Reading]]:
        unchanged = self._unchanged.get(place, ())
        for source, edge, path in target.handed_on:
            is_known = isinstance(place, int) or (place[0] == "output" and uses[edge] == 1)
            yield source, _Reading("handed on", path if is_known and edge not in unchanged else None)

    def _place_of(self, edge: Edge) -> Place | None:
        """The place that `edge` is of: its tensor came from there, or was made in that call without being returned."""
        place = self._places.get(edge)
        while place is None and _is_full_backward_hook(edge[0]):
            edge = edge[0].next_functions[edge[1]]
            place = self._places.get(edge)
        return self._place_made_at(edge[0]._sequence_nr()) if place is None and edge[0] is not None else place

    def _place_made_at(self, number: int) -> Place | None:
        """The call that was being executed when the autograd node of this number was made."""
        at = bisect_right(self._starts, number) - 1
        return self._ends[at][1] if at >= 0 and number < self._ends[at][0] else None

    def _is_own(self, node: Any) -> bool:
        return bool(node._sequence_nr() >= self._first)

    def _walk(self, start: Any, into: dict[Any, list[_Arc]]) -> None:
        """Go back from `start` to places, adding the arcs on the way by node."""
        todo = [start]
        while todo and self._arcs <= MOST_ARCS:
            node = todo.pop()
            if node in into:
                continue
            arcs = into[node] = []
            edges = node.next_functions
            self._arcs += len(edges)
            for slot, edge in enumerate(edges):
                if (source := edge[0]) is None:
                    continue
                place = self._places.get(edge)
                if place is None:
                    number = source._sequence_nr()
                    place = self._place_of(edge) if _is_full_backward_hook(source) else self._place_made_at(number)
                    if place is None:
                        if number < self._first:
                            continue
                        todo.append(source)
                arcs.append(_Arc(node, slot, edge, place))


def _is_full_backward_hook(node: Any) -> bool:
    return type(node).__name__ == FULL_BACKWARD_HOOK


def _computed(place: Place, target: _Target, takers: Counter[Any]) -> Iterator[tuple[Place, _Reading]]:
    """What comes back to sources through the autograd nodes since them."""
    for (node, _), path in target.starts:
        if takers[node] > 1:  # other targets have the same tensor: it can be told apart only behind them
            for source in target.sources_behind(node):
                yield source, _Reading("joint", path if isinstance(place, int) else None)
    to: dict[Edge, list[_Arc]] = {}
    for node, arcs in target.arcs.items():
        for arc in arcs if takers[node] == 1 else ():
            if arc.place is not None or takers[arc.to[0]] > 1:
                to.setdefault(arc.to, []).append(arc)
    for edge, arcs in to.items():
        nodes = [(arc.node, arc.slot) for arc in arcs]
        if arcs[0].place is not None:
            yield arcs[0].place, _Reading("own", nodes)
            continue
        for source in target.sources_behind(edge[0]):
            yield source, _Reading("joint", nodes)


def _agreed(readings: list[_Reading]) -> Found | None:
    """All of one kind; one alone, if other edges join before the source. None if they do not say what comes back."""
    kinds = {reading.kind for reading in readings}
    where: list[Any] = [reading.where for reading in readings if reading.where is not None]
    is_sound = len(where) == len(readings) and len(kinds) == 1 and (kinds != {"joint"} or len(where) == 1)
    return where if is_sound else None
