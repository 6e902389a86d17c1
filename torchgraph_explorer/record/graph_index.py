"""The module graphs of one model, over all its sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.records import ModuleGraph, TensorInfo

Structure: TypeAlias = "tuple[object, ...]"


@dataclass(frozen=True, slots=True)
class Revised:
    """A graph as last written, under the reader's id, and how often it was written anew before.

    `launch` is that of the ranks that wrote it together; None where one process did.
    """

    graph: ModuleGraph
    revision: int
    structure: Structure
    launch: int | None


class GraphIndex:
    """Graphs by the reader's ids: one id for the graphs of equal structure that several sessions wrote.

    Frames refer to a graph by a *reference*, one for each graph id of each session, since a frame may speak of a graph
    before the graph itself was read.

    Attributes:
        graphs: By reader's id.
    """

    def __init__(self) -> None:
        self.graphs: tuple[Revised, ...] = ()
        self._references: dict[tuple[str, int], int] = {}
        self._ids: npt.NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def reference(self, session: str, graph: int) -> int:
        """What frames of `session` keep for `graph`, an id of that session."""
        known = self._references.get((session, graph))
        if known is None:
            known = self._references[session, graph] = len(self._ids)
            self._ids = np.append(self._ids, np.int32(-1))
        return known

    def ids(self, references: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The reader's ids for what frames keep; -1 where the graph is not known."""
        return np.append(self._ids, np.int32(-1))[references]

    def add(self, session: str, graph: ModuleGraph, *, launch: int | None = None) -> bool:
        """Take in a graph of `session`; True when frames that refer to it have another id from now on.

        It replaces an earlier one of equal structure. But the ranks of one `launch` have tensors of their own: of a
        dimension in which they differ, the graph says that it varied.
        """
        is_mentioned = (session, graph.id) in self._references
        reference = self.reference(session, graph.id)
        before = int(self._ids[reference])
        structure = _structure(graph)
        number = self._number(before, structure)
        self._put(number, graph, structure, launch=launch)
        ids = self._ids.copy()
        ids[reference] = number
        self._ids = ids
        return is_mentioned and number != before

    def _number(self, before: int, structure: Structure) -> int:
        """The id for a graph of this structure that had the id `before`, or none (-1)."""
        is_own = before >= 0 and np.count_nonzero(self._ids == before) == 1
        if is_own:
            return before
        equal = (number for number, one in enumerate(self.graphs) if one.structure == structure)
        return next(equal, len(self.graphs))

    def _put(self, number: int, graph: ModuleGraph, structure: Structure, *, launch: int | None) -> None:
        if number == len(self.graphs):
            self.graphs += (Revised(replace(graph, id=number), 0, structure, launch),)
            return
        old = self.graphs[number]
        graph = replace(graph, id=number, first_step=min(graph.first_step, old.graph.first_step))
        if launch is not None and launch == old.launch:
            graph = _varied(old.graph, graph)
        if graph != old.graph:
            revised = Revised(graph, old.revision + 1, structure, launch)
            self.graphs = (*self.graphs[:number], revised, *self.graphs[number + 1 :])


def _structure(graph: ModuleGraph) -> Structure:
    """What must agree for two sessions' graphs to be one: all but shapes and other facts of modules and tensors."""
    return (
        tuple((module.name, module.class_path) for module in graph.modules),
        tuple((call.module, call.call, call.parent) for call in graph.calls),
        tuple((node.kind, node.inside, node.call, node.tensor.path if node.tensor else None) for node in graph.nodes),
        tuple((edge.source, edge.target) for edge in graph.edges),
    )


def _varied(old: ModuleGraph, new: ModuleGraph) -> ModuleGraph:
    """`new`, without the dimensions of inputs and outputs that are other ones in `old`, of the same structure."""
    calls = (
        replace(
            now, inputs=_varied_infos(before.inputs, now.inputs), outputs=_varied_infos(before.outputs, now.outputs)
        )
        for before, now in zip(old.calls, new.calls, strict=True)
    )
    nodes = (
        replace(now, tensor=_varied_info(before.tensor, now.tensor)) if before.tensor and now.tensor else now
        for before, now in zip(old.nodes, new.nodes, strict=True)
    )
    return replace(new, calls=tuple(calls), nodes=tuple(nodes))


def _varied_infos(old: tuple[TensorInfo, ...], new: tuple[TensorInfo, ...]) -> tuple[TensorInfo, ...]:
    before = {info.path: info for info in old}
    return tuple(_varied_info(before.get(info.path, info), info) for info in new)


def _varied_info(old: TensorInfo, new: TensorInfo) -> TensorInfo:
    if len(old.shape) != len(new.shape):
        return new
    return replace(new, shape=tuple(a if a == b else None for a, b in zip(old.shape, new.shape, strict=True)))
