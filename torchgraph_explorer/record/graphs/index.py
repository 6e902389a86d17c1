"""The module graphs of one model, over all its sessions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import ModuleGraph, TensorInfo
from torchgraph_explorer.shapes import joined


@dataclass(frozen=True, slots=True)
class Revised:
    """A graph as last written, under the reader's id, and how often it was written anew before.

    `launch` is that of the ranks that wrote it together; None where one process did.
    """

    graph: ModuleGraph
    revision: int
    launch: int | None


class GraphIndex:
    """Graphs by the reader's ids: one id for the graphs of equal structure that several sessions wrote.

    Frames refer to a graph by a *reference*, one for each graph id of each session, since a frame may speak of a graph
    before the graph itself was read.

    Reading holds on to nothing but what the properties return, so that graphs may be added meanwhile.
    """

    def __init__(self) -> None:
        self._graphs: list[Revised] = []
        self._references: dict[tuple[str, int], int] = {}
        self._ids: list[int] = []
        self._users: list[int] = []
        self._by_structure: dict[bytes, int] = {}
        self._structures: list[bytes] = []

    @property
    def graphs(self) -> tuple[Revised, ...]:
        """By reader's id."""
        return tuple(self._graphs)

    def reference(self, session: str, graph: int) -> int:
        """What frames of `session` keep for `graph`, an id of that session."""
        known = self._references.get((session, graph))
        if known is None:
            known = self._references[session, graph] = len(self._ids)
            self._ids.append(-1)
        return known

    def ids(self, references: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The reader's ids for what frames keep; -1 where the graph is not known."""
        known = np.array([*self._ids, -1], dtype=np.int32)
        return known[references]

    def add(self, session: str, graph: ModuleGraph, *, launch: int | None = None) -> bool:
        """Take in a graph of `session`; True when frames that refer to it have another id from now on.

        It replaces an earlier one of equal structure. But the ranks of one `launch` have tensors of their own: of a
        dimension in which they differ, the graph says that it varied.
        """
        is_mentioned = (session, graph.id) in self._references
        reference = self.reference(session, graph.id)
        before = self._ids[reference]
        structure = _structure(graph)
        number = self._number(before, structure)
        self._put(number, graph, structure, launch=launch)
        self._ids[reference] = number
        self._users[number] += 1
        if before >= 0:
            self._users[before] -= 1
        return is_mentioned and number != before

    def _number(self, before: int, structure: bytes) -> int:
        """The id for a graph of this structure that had the id `before`, or none (-1)."""
        is_own = before >= 0 and self._users[before] == 1
        return before if is_own else self._by_structure.get(structure, len(self._graphs))

    def _put(self, number: int, graph: ModuleGraph, structure: bytes, *, launch: int | None) -> None:
        if number == len(self._graphs):
            self._graphs.append(Revised(replace(graph, id=number), 0, launch))
            self._users.append(0)
            self._structures.append(structure)
            self._by_structure.setdefault(structure, number)
            return
        old = self._graphs[number]
        graph = replace(graph, id=number, first_step=min(graph.first_step, old.graph.first_step))
        if launch is not None and launch == old.launch and structure == self._structures[number]:
            graph = _varied(old.graph, graph)
        if graph != old.graph:
            self._graphs[number] = Revised(graph, old.revision + 1, launch)
        self._restructure(number, structure)

    def _restructure(self, number: int, structure: bytes) -> None:
        """Note that graph `number` has this structure now; of graphs that come to have the same one, one is found."""
        old = self._structures[number]
        if self._by_structure.get(old) == number:
            del self._by_structure[old]
        self._structures[number] = structure
        self._by_structure.setdefault(structure, number)


def _structure(graph: ModuleGraph) -> bytes:
    """What must agree for two sessions' graphs to be one: all but shapes and other facts of modules and tensors."""
    facts = (
        [(module.name, module.class_path) for module in graph.modules],
        [(call.module, call.call, call.parent) for call in graph.calls],
        [(node.kind, node.inside, node.call, node.tensor.path if node.tensor else None) for node in graph.nodes],
        [(edge.source, edge.target) for edge in graph.edges],
    )
    return sha256(repr(facts).encode("utf-8", errors="surrogatepass")).digest()


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
    both = joined(old, new)
    return replace(new, shape=both.shape, varied=both.varied) if len(old.shape) == len(new.shape) else new
