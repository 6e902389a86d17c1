"""The index of one watched model of a run, to which `RunRecord.refresh` adds, and which `ModelRecord` reads.

Arrays and tuples that a reader may be using are replaced, never changed, so that reading needs no lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from hashlib import blake2b
from typing import NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Found
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.index import CellIndex
from torchgraph_explorer.record.copies import DamagedCopies
from torchgraph_explorer.record.folder import ReadAt, SegmentFile
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.messages import SeriesValue, finished_value, noted_value, series_values
from torchgraph_explorer.record.format.places import Extent
from torchgraph_explorer.record.found import found_value
from torchgraph_explorer.record.graphs.encoding import decode_graph
from torchgraph_explorer.record.graphs.index import GraphIndex
from torchgraph_explorer.record.limits import GRAPH_BYTES, LAST_SERIES, NOTES
from torchgraph_explorer.record.losses import Written
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.ranks.groups import Launches, Member, launches
from torchgraph_explorer.record.scalars.encoding import body_bytes, decode_logged
from torchgraph_explorer.record.scalars.index import LoggedSoFar, ScalarIndex, TooMuchError
from torchgraph_explorer.record.scan import ScannedRecord
from torchgraph_explorer.record.steps.index import FrameIndex, RankStatus
from torchgraph_explorer.schema import Finished, ModuleGraph, Noted, Series, SeriesKey, Session
from torchgraph_explorer.writing_process import has_ended

SeriesIds: TypeAlias = "npt.NDArray[np.uint32]"
Parts: TypeAlias = "npt.NDArray[np.int64]"

UNKNOWN = 0xFFFF_FFFF
"""The id of a series that no record defines."""


MOST_REMEMBERED = 1 << 12
"""Records of series that are remembered as they were decoded: other ranks write the same."""


class Source(NamedTuple):
    """Where records come from.

    Attributes:
        read: Reads the segment file.
        file: The file as listed.
        session: Id of the session that wrote it.
        notices: Take what this release does not know.
    """

    read: ReadAt
    file: SegmentFile
    session: str
    notices: Notices


class SessionIndex:
    """One session of the model.

    Its ids for series come from the record and are not trusted: they are looked up, and never used as sizes.

    Attributes:
        session: As written.
        finished: Its end; None while it is open.
        notes: What it has noted so far.
        found: What rules of the user's own found; None if there were none.
        written: What its end says was written; None without one, or if a release wrote it that does not say.
        kept: The same of its kept tensors; None also where there are none.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.finished: Finished | None = None
        self.notes: tuple[str, ...] = ()
        self.found: Found | None = None
        self.written: Written | None = None
        self.kept: Written | None = None
        self._records = 0
        self._written_when_gone: int | None = None
        self._series: dict[int, tuple[int, int]] = {}
        self._changes = 0
        self._table: tuple[int, SeriesIds, SeriesIds, Parts] | None = None

    def has_stopped(self) -> bool:
        """Whether its process is gone. Not if it was, and has written since: then it was not this machine's."""
        if self._written_when_gone is None:
            self._written_when_gone = self._records if has_ended(self.session) else None
        return self._written_when_gone == self._records

    def note_record(self) -> None:
        """One more of its records was read."""
        self._records += 1

    def finish(self, finished: Finished, message: pb.Finished, record: ScannedRecord) -> None:
        """Note the end of the session, which is at `record`."""
        self.finished = finished
        if message.HasField("end"):
            its_own = record.body - record.offset
            self.written = Written(self.session.id, Extent.of(message.end), finished.time, more=its_own)
        if message.HasField("kept"):
            self.kept = Written(self.session.id, Extent.of(message.kept), finished.time)

    def add(self, series: int, *, reader_id: int, part: int) -> None:
        """Note that the id `series` of this session is `part` of the reader's series `reader_id`; -1 is no part."""
        self._series[series] = (reader_id, part)
        self._changes += 1

    def reader_ids(self, series: SeriesIds) -> SeriesIds:
        """The reader's ids for ids of the session; `UNKNOWN` if there is none."""
        return self._looked_up(series)[0]

    def all_reader_ids(self) -> list[int]:
        """The reader's ids of all series of the session, in the order of the session's ids."""
        return [reader for _, (reader, _) in sorted(self._series.copy().items())]

    def parts_of(self, series: SeriesIds) -> Parts:
        """`Series.part` for ids of the session; -1 if there is none."""
        return self._looked_up(series)[1]

    def _looked_up(self, series: SeriesIds) -> tuple[SeriesIds, Parts]:
        table = self._table
        if table is None or table[0] != self._changes:
            table = self._table = self._tabulate()
        _, ids, readers, parts = table
        at = np.searchsorted(ids, series)  # the last entry is for ids beyond all others
        is_known = ids[at] == series
        return np.where(is_known, readers[at], np.uint32(UNKNOWN)), np.where(is_known, parts[at], -1)

    def _tabulate(self) -> tuple[int, SeriesIds, SeriesIds, Parts]:
        """The number of changes so far; the ids, ascending, with a last `UNKNOWN`; the reader's id and part of each."""
        changes = self._changes  # read first: a series that is added meanwhile outdates the table
        known = sorted(self._series.copy().items())
        ids = np.array([*(one for one, _ in known), UNKNOWN], dtype=np.uint32)
        readers = np.array([*(reader for _, (reader, _) in known), UNKNOWN], dtype=np.uint32)
        parts = np.array([*(part for _, (_, part) in known), -1], dtype=np.int64)
        return changes, ids, readers, parts


class ModelIndex:
    """One model of a run, all its sessions together.

    Attributes:
        name: The model's name in the run.
        epoch: Grows when frames that were there before have changed.
        sessions: By id, in the order of their first segments.
        graphs: The module graphs.
        frames: Where the frames are.
        cells: Where the index of cells is.
        last_write: Latest time in any record, in seconds since the epoch.
    """

    def __init__(self, name: str, epoch: int) -> None:
        self.name = name
        self.epoch = epoch
        self.sessions: dict[str, SessionIndex] = {}
        self.graphs = GraphIndex()
        self.frames = FrameIndex()
        self.cells = CellIndex()
        self._scalars = ScalarIndex()
        self.last_write = 0.0
        self._series: list[Series] = []
        self._all_series: tuple[Series, ...] = ()
        self._series_ids: dict[SeriesKey, int] = {}
        self._launches: Launches | None = None
        self._damaged = DamagedCopies()
        self._known_series: set[tuple[str, bytes]] = set()
        self._known_graphs: dict[tuple[str, int], tuple[int, int, int]] = {}
        self._latest_graph: tuple[tuple[int, int, bytes], tuple[ModuleGraph, int]] | None = None
        self._series_by_digest: dict[bytes, tuple[Sequence[SeriesValue], Sequence[int]]] = {}

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series, by reader's id."""
        found = self._all_series
        if len(found) != len(self._series):
            found = self._all_series = tuple(self._series)
        return found

    @property
    def launches(self) -> Launches:
        """Which sessions belong together."""
        if self._launches is None:
            self._launches = launches([one.session for one in self.sessions.values()])
        return self._launches

    def session_of(self, layout: int) -> SessionIndex:
        """The session whose series ids a frame's layout uses."""
        return self.sessions[self.frames.session(layout)]

    @property
    def world_sizes(self) -> npt.NDArray[np.int64]:
        """How many ranks there were, by number of layout."""
        return np.array([self.sessions[one].session.world_size for one in self.frames.writers], dtype=np.int64)

    @property
    def writing_order(self) -> npt.NDArray[np.int64]:
        """The number of the session that wrote, by number of layout: in the order of beginning, one for each launch."""
        if self.launches.has_ranks:
            number = {session: member.launch for session, member in self.launches.members.items()}
        else:
            number = {session: at for at, session in enumerate(self.sessions)}
        return np.array([number[one] for one in self.frames.writers], dtype=np.int64)

    @property
    def logged(self) -> LoggedSoFar:
        """What the training loops logged."""
        places = self.launches.members
        if not self.launches.has_ranks:
            places = {session: Member(at, 0) for at, session in enumerate(self.sessions)}
        return self._scalars.read(places)

    def of_optimizer(self, optimizer: str) -> ModelIndex:
        """The index as it is now, with only the frames whose step `optimizer` made."""
        one = copy(self)
        one.frames = self.frames.of_kinds(self.frames.kinds.of_optimizer(optimizer))
        return one

    def begin(self, session: Session) -> None:
        """Note a segment of `session`."""
        if session.id not in self.sessions:
            self._launches = self.launches.with_session(session)
            self.sessions = {**self.sessions, session.id: SessionIndex(session)}
            self.last_write = max(self.last_write, session.created)

    def take(self, head: pb.Head, found: ScannedRecord, source: Source) -> None:
        """Add the record `found`, whose head is `head`. A record of an unknown kind is only counted.

        Raises:
            DamageError: The record contradicts the format.
        """
        self.sessions[source.session].note_record()
        match head.WhichOneof("record"):
            case "frame":
                graph = self.graphs.reference(source.session, head.frame.graph) if head.frame.HasField("graph") else -1
                self.frames.add(head.frame, found, source.file, origin=(source.session, graph))
                self.last_write = max(self.last_write, head.frame.time)
            case "series":
                self._take_series(head.series, source)
            case "graph":
                self._take_graph(head.graph, found, source)
            case "finished":
                finished = finished_value(head.finished)
                self.sessions[source.session].finish(finished, head.finished, found)
                self.last_write = max(self.last_write, finished.time)
            case "logged":
                self._take_logged(head.logged, found, source)
            case "cells":
                place = {"body": found.body, "body_size": found.body_size}
                self.cells.add(head.cells, source.session, source.file.path, **place)
            case "noted":
                self._take_note(noted_value(head.noted), self.sessions[source.session])
            case "found":
                found_by_rules = self.sessions[source.session].found = found_value(head.found)
                self.last_write = max(self.last_write, found_by_rules.time)
            case _:
                source.notices.add_unknown("record", (source.file.name, found.offset))

    def settle(self, *, at_once: bool) -> bool:
        """Add the frames that `take` has noted; True if there were any.

        Unless `at_once`, steps that some rank has not written yet are held back for a while.
        """
        writing = () if at_once else self._writing()
        status = RankStatus(self.launches, writing) if self.launches.has_ranks else None
        is_new, is_other = self.frames.settle(status)
        self.epoch += is_other
        return is_new

    def _writing(self) -> tuple[str, ...]:
        """The sessions of the last launch that have not ended."""
        return tuple(one for one in self.launches.latest if self.sessions[one].finished is None)

    def _take_logged(self, head: pb.Logged, found: ScannedRecord, source: Source) -> None:
        if found.body_size != body_bytes(head):
            raise DamageError(f"its body has {found.body_size} bytes")
        try:
            self._scalars.require_room(head.values)
            logged = decode_logged(head, source.read(found.body, found.body_size))
            self._scalars.add(source.session, logged)
        except TooMuchError as excess:
            source.notices.add(f"model {self.name}: it has {excess}, which is as many as are read; others were skipped")
            return
        times = (*logged.times[-1:].tolist(), *(note.time for note in logged.notes[-1:]))
        self.last_write = max((self.last_write, *times))

    def _take_note(self, noted: Noted, session: SessionIndex) -> None:
        if len(session.notes) < NOTES:
            session.notes = (*session.notes, noted.text)
        self.last_write = max(self.last_write, noted.time)

    def _take_series(self, message: pb.SeriesAdded, source: Source) -> None:
        content = source.session, blake2b(message.SerializeToString(), digest_size=16).digest()
        if content in self._known_series:
            return  # series are written again and again, so that damage loses none
        known, unknown = self._series_of(content[1], message)
        session = self.sessions[source.session]
        if max((*(one.id for one in known), *unknown), default=0) > LAST_SERIES:
            raise DamageError
        for number, part, key in known:
            session.add(number, reader_id=self._identified(key), part=part)
        for number in unknown:
            source.notices.add_unknown("series", (self.name, source.session, number))
        self._known_series.add(content)

    def _identified(self, key: SeriesKey) -> int:
        """The reader's id of a session's series; a new one for a series that no session had."""
        known = self._series_ids.get(key)
        if known is None:
            known = self._series_ids[key] = len(self._series)
            self._series.append(Series(known, *key))
        return known

    def _take_graph(self, head: pb.Graph, found: ScannedRecord, source: Source) -> None:
        name, content = (source.session, head.id), (head.check, head.first_step, found.body_size)
        if self._known_graphs.get(name) == content:
            return  # graphs are written several times
        if found.body_size > GRAPH_BYTES:
            raise DamageError(f"its body has {found.body_size:,} bytes")
        body = source.read(found.body, found.body_size)
        if crc32(body) != head.check:
            body = self._damaged.repaired(name, body, head.check)
        graph, missing = self._decoded(head, body)
        if missing:
            source.notices.add_unknown("node", (self.name, source.session, head.id), missing)
        launch = self.launches.members[source.session].launch if self.launches.has_ranks else None
        if self.graphs.add(source.session, graph, launch=launch):
            self.epoch += 1
        self._known_graphs[name] = content

    def _decoded(self, head: pb.Graph, body: bytes) -> tuple[ModuleGraph, int]:
        """Like `decode_graph`. The ranks of a launch write the same graph: it is decoded once."""
        content = head.id, head.first_step, body
        if self._latest_graph is None or self._latest_graph[0] != content:
            self._latest_graph = content, decode_graph(head, body)
        return self._latest_graph[1]

    def _series_of(self, digest: bytes, message: pb.SeriesAdded) -> tuple[Sequence[SeriesValue], Sequence[int]]:
        """Like `series_values`, for a message with this digest. The ranks of a launch mostly write the same series."""
        found = self._series_by_digest.get(digest)
        if found is None:
            found = series_values(message)
            if len(self._series_by_digest) < MOST_REMEMBERED:
                self._series_by_digest[digest] = found
        return found
