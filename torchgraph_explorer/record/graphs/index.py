"""The module graphs of one model, over all its sessions."""

from __future__ import annotations

import marshal
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import ModuleGraph, TensorInfo
from torchgraph_explorer.shapes import joined

_WITHOUT_REFERENCES = 2
"""The version of marshal in which equal values are equal bytes. The bytes stay in this process."""


@dataclass(frozen=True, slots=True)
class Revised:
    """A graph as last written, under the reader's id, and how often it was replaced.

    `launch` is that of the ranks that wrote it; None if one process did.
    """

    graph: ModuleGraph
    revision: int
    launch: int | None


class GraphIndex:
    """Graphs by the reader's ids: graphs of equal structure from several sessions have one id.

    Frames refer to a graph by a *reference*, one for each graph id of each session, since a frame may be read before
    its graph.

    Readers keep only what the properties return, so that graphs may be added meanwhile.
    """

    def __init__(self) -> None:
        self._graphs: list[Revised] = []
        self._references: dict[tuple[str, int], int] = {}
        self._ids: list[int] = []
        self._users: list[int] = []
        self._by_structure: dict[bytes, int] = {}
        self._structures: list[bytes] = []
        self._latest: tuple[ModuleGraph, bytes, tuple[int, int | None]] | None = None

    @property
    def graphs(self) -> tuple[Revised, ...]:
        """The graphs, by the reader's id."""
        return tuple(self._graphs)

    def reference(self, session: str, graph: int) -> int:
        """The reference for `graph`, an id of `session`."""
        known = self._references.get((session, graph))
        if known is None:
            known = self._references[session, graph] = len(self._ids)
            self._ids.append(-1)
        return known

    def ids(self, references: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The reader's ids of references; -1 where the graph is not known."""
        known = np.array([*self._ids, -1], dtype=np.int32)
        return known[references]

    def add(self, session: str, graph: ModuleGraph, *, launch: int | None = None) -> bool:
        """Add a graph of `session`; True if this changes the id for frames that were already read.

        It replaces an earlier graph of equal structure. The ranks of one `launch` have different tensors: a dimension
        in which they differ counts as one that varied.
        """
        is_mentioned = (session, graph.id) in self._references
        reference = self.reference(session, graph.id)
        before = self._ids[reference]
        latest, structure, place = self._latest or (None, b"", None)
        is_same = graph is latest  # as of the ranks of a launch, which mostly write the same graph
        structure = structure if is_same else _structure(graph)
        number = self._number(before, structure)
        if not is_same or (number, launch) != place:
            self._put(number, graph, structure, launch=launch)
            self._latest = graph, structure, (number, launch)
        self._ids[reference] = number
        self._users[number] += 1
        if before >= 0:
            self._users[before] -= 1
        return is_mentioned and number != before

    def _number(self, before: int, structure: bytes) -> int:
        """The id for a graph of this structure whose id was `before`; -1 if it had none."""
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
        """Note that graph `number` has this structure now. If several graphs have the same, one of them is found."""
        old = self._structures[number]
        if self._by_structure.get(old) == number:
            del self._by_structure[old]
        self._structures[number] = structure
        self._by_structure.setdefault(structure, number)


def _structure(graph: ModuleGraph) -> bytes:
    """A hash of what must agree for two sessions' graphs to be one: everything but shapes and facts of modules."""
    facts = (
        [(module.name, module.class_path) for module in graph.modules],
        [(call.module, call.call, call.parent) for call in graph.calls],
        [(node.kind, node.inside, node.call, node.tensor.path if node.tensor else None) for node in graph.nodes],
        [(edge.source, edge.target) for edge in graph.edges],
    )
    return sha256(marshal.dumps(facts, _WITHOUT_REFERENCES)).digest()


def _varied(old: ModuleGraph, new: ModuleGraph) -> ModuleGraph:
    """`new`, in which dimensions of inputs and outputs that differ from `old` are marked as varied."""
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
