"""What is known of one watched model of a run: the state that `Run.refresh` adds to, and `ModelRecord` reads.

Values that a reader may hold meanwhile (arrays, tuples) are replaced, never changed, so that reading needs no lock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import ReadAt, SegmentFile
from torchgraph_explorer.record.frame_index import FrameIndex, Standing
from torchgraph_explorer.record.framing import DamageError
from torchgraph_explorer.record.graph_index import GraphIndex
from torchgraph_explorer.record.graphs import decode_graph
from torchgraph_explorer.record.launches import Launches, launches
from torchgraph_explorer.record.messages import finished_value, series_value
from torchgraph_explorer.record.scan import Found
from torchgraph_explorer.records import Finished, Series, Session

SeriesIds: TypeAlias = "npt.NDArray[np.uint32]"

UNKNOWN = 0xFFFF_FFFF
"""Stands for a series id that no record explains."""

_LAST_SERIES = 1 << 24


class Source(NamedTuple):
    """Where records come from.

    Attributes:
        read: Reads the segment file.
        file: The file as listed.
        session: Id of the session that wrote it.
    """

    read: ReadAt
    file: SegmentFile
    session: str


@dataclass(slots=True)
class SessionIndex:
    """One session of the model.

    Attributes:
        session: As written.
        finished: Its end; None while it is open.
        series: Reader's id of each series id of the session, `UNKNOWN` where there is none.
        parts: `Series.part` of each series id of the session, -1 where there is none.
    """

    session: Session
    finished: Finished | None = None
    series: SeriesIds = field(default_factory=lambda: np.zeros(0, dtype=np.uint32))
    parts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def reader_ids(self, series: SeriesIds) -> SeriesIds:
        """The reader's ids for ids of the session."""
        known = np.append(self.series, np.uint32(UNKNOWN))
        return known[np.minimum(series, len(known) - 1)]

    def parts_of(self, series: SeriesIds) -> npt.NDArray[np.int64]:
        """`parts` of ids of the session."""
        known = np.append(self.parts, np.int64(-1))
        return known[np.minimum(series, len(known) - 1)]


class ModelIndex:
    """One model of a run, all its sessions together.

    Attributes:
        name: Of the model in the run.
        epoch: Grows when frames that were there before have changed.
        sessions: By id, in the order of their first segments.
        launches: Which of them belong together.
        series: By reader's id.
        graphs: The module graphs.
        frames: Where the frames are.
        last_write: Latest time that a record tells, in seconds since the epoch.
    """

    def __init__(self, name: str, epoch: int) -> None:
        self.name = name
        self.epoch = epoch
        self.sessions: dict[str, SessionIndex] = {}
        self.launches = Launches()
        self.series: tuple[Series, ...] = ()
        self.graphs = GraphIndex()
        self.frames = FrameIndex()
        self.last_write = 0.0
        self._series_ids: dict[object, int] = {}

    def session_of(self, layout: int) -> SessionIndex:
        """The session whose series a frame's layout speaks of."""
        return self.sessions[self.frames.session(layout)]

    @property
    def world_sizes(self) -> npt.NDArray[np.int64]:
        """How many ranks there were, by the layout of a frame."""
        return np.array([self.sessions[one].session.world_size for one in self.frames.writers], dtype=np.int64)

    def begin(self, session: Session) -> None:
        """Note a segment of `session`."""
        if session.id not in self.sessions:
            self.sessions = {**self.sessions, session.id: SessionIndex(session)}
            self.launches = launches([one.session for one in self.sessions.values()])
            self.last_write = max(self.last_write, session.created)

    def take(self, head: pb.Head, found: Found, source: Source) -> None:
        """Take in the record `found`, whose head is `head`; of a kind that is not known here, nothing.

        Raises:
            DamageError: The record makes no sense.
        """
        match head.WhichOneof("record"):
            case "frame":
                self._take_frame(head.frame, found, source)
            case "series":
                self._take_series(series_value(head.series), self.sessions[source.session])
            case "graph":
                self._take_graph(head.graph, found, source)
            case "finished":
                self._take_finished(finished_value(head.finished), self.sessions[source.session])

    def settle(self, *, at_once: bool) -> bool:
        """Take in the frames that were noted; True if there were any.

        Unless `at_once`, those are held back for a while that some rank is still to write.
        """
        writing = () if at_once else self._writing()
        standing = Standing(self.launches, writing) if self.launches.has_ranks else None
        is_new, is_other = self.frames.settle(standing)
        self.epoch += is_other
        return is_new

    def _writing(self) -> tuple[str, ...]:
        """The sessions of the last launch that have not ended."""
        return tuple(one for one in self.launches.latest if self.sessions[one].finished is None)

    def _take_frame(self, frame: pb.Frame, found: Found, source: Source) -> None:
        graph = self.graphs.reference(source.session, frame.graph) if frame.HasField("graph") else -1
        self.frames.add(frame, found, source.file, origin=(source.session, graph))
        self.last_write = max(self.last_write, frame.time)

    def _take_series(self, added: tuple[Series, ...], session: SessionIndex) -> None:
        last = max((one.id for one in added), default=0)
        if last > _LAST_SERIES:
            raise DamageError
        known = np.full(max(last + 1, len(session.series)), UNKNOWN, dtype=np.uint32)
        known[: len(session.series)] = session.series
        known[[one.id for one in added]] = self._identified(added)
        parts = np.full(len(known), -1, dtype=np.int64)
        parts[: len(session.parts)] = session.parts
        parts[[one.id for one in added]] = [-1 if one.part is None else one.part for one in added]
        session.series, session.parts = known, parts

    def _identified(self, added: tuple[Series, ...]) -> list[int]:
        """The reader's ids of a session's series; new ones for those that no session had."""
        fresh = {one.key: one for one in added if one.key not in self._series_ids}
        first = len(self.series)
        self._series_ids.update({key: first + at for at, key in enumerate(fresh)})
        self.series += tuple(replace(one, id=first + at, part=None) for at, one in enumerate(fresh.values()))
        return [self._series_ids[one.key] for one in added]

    def _take_graph(self, head: pb.Graph, found: Found, source: Source) -> None:
        graph = decode_graph(head, source.read(found.body, found.body_size))
        launch = self.launches.members[source.session].launch if self.launches.has_ranks else None
        if self.graphs.add(source.session, graph, launch=launch):
            self.epoch += 1

    def _take_finished(self, finished: Finished, session: SessionIndex) -> None:
        session.finished = finished
        self.last_write = max(self.last_write, finished.time)
