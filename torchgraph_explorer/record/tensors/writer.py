"""Writes the kept tensors of one session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.folder import TENSORS, SegmentFile, plugin_folder, reading, segment_files
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.messages import session_value
from torchgraph_explorer.record.format.places import Extent, Place, mark_of
from torchgraph_explorer.record.limits import KEPT_GRAPHS
from torchgraph_explorer.record.outbox import Encoded, Outbox, Store
from torchgraph_explorer.record.remote import RemoteSegments, is_url
from torchgraph_explorer.record.scan import Scanner
from torchgraph_explorer.record.segments import LocalSegments
from torchgraph_explorer.record.tensors.encoding import LayoutEncoder, encode_step
from torchgraph_explorer.record.tensors.graphs import encode_tensor_graph
from torchgraph_explorer.reused_memory import Pieces
from torchgraph_explorer.schema import KeptStep, Session, TensorGraph

SEGMENT_BYTES = 256 << 20
"""Largest size of a local segment, if it holds several steps."""

REMOTE_SEGMENT_BYTES = 8 << 20
"""Steps for a URL are written without waiting longer once they have more bytes than this."""


class TensorWriter:
    """The segments that hold the kept tensors of one session. While a store refuses, they wait as frames do."""

    def __init__(
        self,
        run_dir: str,
        begin: Callable[[Place, bool], bytes],
        *,
        session: Session,
        when_gone: Callable[[int | None], None],
        when_cut: Callable[[Path, int, int], None],
    ) -> None:
        """Write below `run_dir`; `begin` gives the beginning of a segment of `session`.

        `when_gone` and `when_cut` are as for `LocalSegments`.
        """
        self._begin, self._beginning_bytes = begin, len(begin(Place(0), False))
        store: Store
        if is_url(run_dir):
            self._used = 0
            store = RemoteSegments(
                run_dir, self._beginning, limit=REMOTE_SEGMENT_BYTES, session=session.id, part=TENSORS
            )
        else:
            folder = plugin_folder(Path(run_dir), TENSORS)
            self._used = sum(file.size for file in segment_files(folder) if _is_of(file, session))
            store = LocalSegments(folder, self._beginning, limit=SEGMENT_BYTES, when_gone=when_gone, when_cut=when_cut)
        self._outbox = Outbox(store, place=f"{run_dir} (kept tensors)")
        self._mark = mark_of(session.id)
        self._graphs: dict[TensorGraph, int] = {}
        self._layouts = LayoutEncoder()
        self._encoded_graphs = b""
        self._pieces = Pieces()

    def write(self, step: KeptStep, most: int) -> int:
        """Append a step, if the kept tensors then take at most `most` bytes; returns how many they take.

        Those of earlier sessions of the run count, too; at a URL, they do not.
        """
        graph = b""
        number = None if step.graph is None else self._graphs.get(step.graph)
        if step.graph is not None and number is None and len(self._graphs) < KEPT_GRAPHS:
            number = len(self._graphs)
            graph = encode_tensor_graph(step.graph, number, mark=self._mark)
        data = encode_step(step, number, layouts=self._layouts, pieces=self._pieces, mark=self._mark)
        if self._used + len(graph) + len(data) + self._beginning_bytes <= most:
            if graph and step.graph is not None and number is not None:
                self._used += len(graph)
                self._outbox.add(Encoded(graph))
                self._graphs[step.graph] = number
                self._encoded_graphs += graph
            if self._outbox.add(Encoded(data, step.step, is_needed=False)):
                self._used += len(data)
        return self._used

    def when_idle(self) -> None:
        """Write what waits, if it is time to."""
        self._outbox.put_if_due()

    def reached(self) -> Extent | None:
        """How far the file is written, with all that waited; None if nothing is written, or something still waits."""
        return self._outbox.reached()

    def close(self) -> None:
        """Write what still waits."""
        self._outbox.close()

    def _beginning(self, place: Place, _is_whole: bool = False) -> bytes:
        """The beginning of a segment, which takes space, too."""
        data = self._begin(place, False) + self._encoded_graphs
        self._used += len(data)
        return data


def _is_of(file: SegmentFile, session: Session) -> bool:
    """Whether a segment is of the model and rank of `session`, or cannot be read, and so may be."""
    try:
        with reading(file.path) as read:
            found = Scanner(str(file.path)).next(read, file.size)
        if found is None or found.head is None or not found.head.HasField("segment"):
            return True
        writer = session_value(found.head.segment.session)
    except (DamageError, RecordError):
        return True
    return (writer.model, writer.rank) == (session.model, session.rank)
