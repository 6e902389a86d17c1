"""Where the kept tensors of a run are. Nothing is read before it is asked for."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import TENSORS, Folder, SegmentFile, reading
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.limits import (
    KEPT_GRAPHS,
    LABEL,
    LAST_STEP,
    REASONS,
    SEGMENT_BYTES,
    TENSOR_GRAPH_BYTES,
    is_moment,
)
from torchgraph_explorer.record.losses import SECONDS_TO_BE_SEEN, Placed, Written, losses
from torchgraph_explorer.record.notices import Notices, note_a_copy, note_a_torn_end, note_foreign, note_size
from torchgraph_explorer.record.ownership import Owner
from torchgraph_explorer.record.ranks.groups import launches
from torchgraph_explorer.record.scan import ScannedRecord, Scanner, require_version
from torchgraph_explorer.record.tensors.encoding import KeptLayout, decode_layout
from torchgraph_explorer.record.tensors.graphs import decode_tensor_graph
from torchgraph_explorer.record.unchanged import Seen, continues, is_filled
from torchgraph_explorer.schema import Kind, Role, Session, TensorGraph

SeriesKey: TypeAlias = "tuple[str, int | None, Role, str, Kind]"
"""`Series.key`."""

_PART = f"{TENSORS}/"
"""What sentences say before the name of a segment."""

TENSORS_REMEMBERED = 1 << 16
"""Tensors in all the layouts that stay decoded. The latest layout stays however many it has."""


class KeptRecord(NamedTuple):
    """The kept tensors that one session wrote of one step.

    Attributes:
        step: The step.
        session: Id of the session.
        file: The segment file.
        body: File offset of the body.
        body_size: Its bytes.
        head_check: What the checks of the body's rows depend on; None if they do not.
        layout: What it holds, as `encoding.decode_layout` takes it.
        gradient_scale: As in `schema.KeptStep`.
        label: Likewise.
        reasons: Likewise.
        graph: The number of the dependency graph in its session; None if it is not known.
        time: As in `schema.KeptStep`.
    """

    step: int
    session: str
    file: SegmentFile
    body: int
    body_size: int
    head_check: int | None
    layout: bytes
    gradient_scale: float | None
    label: str | None
    reasons: tuple[str, ...]
    graph: int | None
    time: float


@dataclass(slots=True)
class _Segment:
    """How far a segment has been read."""

    file: SegmentFile
    scanner: Scanner
    scanned: int = 0
    seen: Seen = field(default_factory=Seen)
    owner: Owner = field(default_factory=Owner)
    records: list[KeptRecord] = field(default_factory=list)
    is_damaged: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is something behind the last record that was read."""
        return self.scanner.position < self.scanned

    @property
    def end(self) -> int | None:
        """As in `losses.Placed`."""
        return None if self.is_damaged or self.owner.has_others else self.scanner.position

    @property
    def session(self) -> Session | None:
        """The session that wrote it, once that is known."""
        return self.owner.session


class OfRun(NamedTuple):
    """What is known of the run beside its kept tensors.

    Attributes:
        has_session: Whether a session with this id has written in it.
        kept: What the ends of its sessions say of their kept tensors.
    """

    has_session: Callable[[str], bool]
    kept: Callable[[], Sequence[Written]]


@dataclass(frozen=True, slots=True)
class KeptLayouts:
    """What the records with one layout hold.

    Attributes:
        tensors: As of `encoding.decode_layout`.
        by_name: Their places there, by the key of the series and the name of the backward pass.
        losses: The names of backward passes, by the key of the series.
        unknown: How many `tensors` a newer release wrote.
    """

    tensors: tuple[KeptLayout | None, ...]
    by_name: Mapping[tuple[SeriesKey, str], int]
    losses: Mapping[SeriesKey, Sequence[str]]
    unknown: int

    @classmethod
    def of(cls, tensors: tuple[KeptLayout | None, ...]) -> KeptLayouts:
        """What a record holds whose tensors have these layouts."""
        by_name = {(one.key, one.loss): at for at, one in enumerate(tensors) if one is not None}
        losses: dict[SeriesKey, list[str]] = {}
        for key, loss in by_name:
            losses.setdefault(key, []).append(loss)
        return cls(tensors, by_name, losses, sum(one is None for one in tensors))


class KeptIndex:
    """The kept tensors of a run, by model, step and rank. Several threads may use it."""

    def __init__(self, folder: Folder, notices: Notices, of_run: OfRun) -> None:
        """Read nothing yet."""
        self._folder, self._notices, self._of_run = folder, notices, of_run
        self._sessions: set[str] = set()
        self._with_copies: set[str] = set()
        self._lock = threading.Lock()
        self._segments: dict[str, _Segment] = {}
        self._layouts: dict[bytes, bytes] = {}
        self._by_model: dict[str, Mapping[int, Mapping[int, KeptRecord]]] = {}
        self._decoded: dict[bytes, KeptLayouts] = {}
        self._graphs: dict[tuple[str, int], tuple[int, ScannedRecord, SegmentFile]] = {}

    @property
    def bytes(self) -> int:
        """The size of the files in bytes."""
        return sum(segment.file.size for segment in list(self._segments.values()))

    def of_model(self, model: str) -> Mapping[int, Mapping[int, KeptRecord]]:
        """What is kept of `model` now: by step, ascending, and by rank.

        As with frames, of two records of a step the one of the later launch counts, and then the one that was written
        last.

        Raises:
            RecordError: A newer release wrote a file, or it cannot be read.
        """
        with self._lock:
            is_changed = self._update()
            if self._find_sessions() or is_changed:
                self._by_model.clear()
            self._notices.stand(_PART, (*self._strangers(), *self._losses()))
            if model not in self._by_model:
                self._by_model[model] = MappingProxyType(self._sorted(model))
            return self._by_model[model]

    def layout(self, record: KeptRecord) -> KeptLayouts:
        """What a record holds. It is remembered: most steps have one of a few, which may alternate.

        Raises:
            DamageError: It cannot be decoded.
        """
        found = self._decoded.get(record.layout)
        if found is None:
            found = KeptLayouts.of(decode_layout(record.layout))
            with self._lock:
                self._remember(record, found)
        return found

    def _remember(self, record: KeptRecord, found: KeptLayouts) -> None:
        self._decoded[record.layout] = found
        room = TENSORS_REMEMBERED - sum(len(one.tensors) for one in self._decoded.values())
        for oldest in [*self._decoded][:-1]:
            if room >= 0:
                return
            room += len(self._decoded.pop(oldest).tensors)

    def graph(self, record: KeptRecord) -> TensorGraph | None:
        """The dependency graph of a step; None if it is not known.

        Raises:
            DamageError: It cannot be decoded, or is missing.
            RecordError: The run is gone.
        """
        if record.graph is None:
            return None
        found = self._graphs.get((record.session, record.graph))
        if found is None:
            raise DamageError
        check, place, file = found
        if place.body_size > TENSOR_GRAPH_BYTES:
            raise DamageError
        with reading(file.path) as read:
            return decode_tensor_graph(read(place.body, place.body_size), check)

    def _update(self) -> bool:
        """Read what is new; True if anything has changed."""
        files = {file.name: file for file in self._folder.files()}
        for told in self._folder.odd:
            self._notices.add(told)
        is_replaced = any(
            not continues(file := files.get(name), known.file, least=known.scanned, seen=known.seen)
            or (known.is_damaged and file is not None and is_filled(file, known.file))
            for name, known in self._segments.items()
        )
        if is_replaced:
            self._segments, self._layouts, self._graphs = {}, {}, {}
        return any([is_replaced, *(self._read_segment(file) for file in files.values())])

    def _find_sessions(self) -> bool:
        """Look which sessions are of the run; True if there are more than before."""
        written = {one.session.id for one in self._segments.values() if one.session is not None}
        new = {one for one in written - self._sessions if self._of_run.has_session(one)}
        self._sessions |= new
        return bool(new)

    def _strangers(self) -> Iterator[str]:
        """A sentence on each file of a session that is not of the run."""
        for one in self._segments.values():
            if one.session is None or one.owner.segment is None:
                continue
            name = f"segment {_PART}{one.file.name}"
            if one.owner.segment.HasField("part") and not one.owner.segment.of_tensors:
                yield f"{name}: it holds steps, and no kept tensors; it belongs in the folder above"
            if one.session.id in self._sessions:
                continue
            if time.time() - (one.owner.segment.began or one.file.modified) > SECONDS_TO_BE_SEEN:
                yield (
                    f"{name}: it is of a session that has no record in this run, and was skipped. It is another run's, "
                    f"or that record is lost"
                )

    def _losses(self) -> tuple[str, ...]:
        read = [(one.file, one.owner.segment, one.end) for one in self._segments.values()]
        places = [
            Placed(file, segment, end)
            for file, segment, end in read
            if segment and segment.of_tensors and segment.session.id in self._sessions
        ]
        unknown = [file for file, segment, _ in read if segment is None]
        return losses(places, self._of_run.kept(), unknown=unknown, folder=_PART)

    def _read_segment(self, file: SegmentFile) -> bool:
        segment = self._segments.setdefault(file.name, _Segment(file, Scanner(str(file.path))))
        may_have_more = file.size != segment.scanned or (segment.is_open and is_filled(file, segment.file))
        segment.file = file
        if file.size > SEGMENT_BYTES:
            note_size(file, self._notices, part=_PART)
            return False
        if not may_have_more:
            note_a_torn_end(file, segment.scanner, self._notices, part=_PART)
            return False
        before = len(segment.records)
        with reading(file.path) as read:
            while (found := segment.scanner.next(read, file.size)) is not None:
                self._take(segment, found)
            segment.seen = Seen.of(read, segment.scanner.position)
        segment.scanned = file.size
        note_a_torn_end(file, segment.scanner, self._notices, part=_PART)
        return len(segment.records) > before

    def _take(self, segment: _Segment, found: ScannedRecord) -> None:
        """Add one record; damage is noted."""
        head = found.head
        try:
            is_sound = head is not None and self._took(segment, found, head)
        except DamageError:
            is_sound = False
        if not is_sound:
            segment.is_damaged = True
            place = f"segment {_PART}{segment.file.name}: record at byte {found.offset}"
            self._notices.add(f"{place} is damaged and was skipped")

    def _took(self, segment: _Segment, found: ScannedRecord, head: pb.Head) -> bool:
        if head.HasField("segment"):
            require_version(head.segment.version, str(segment.file.path))
            if segment.owner.begin(head.segment) is None:
                note_foreign(segment.file, segment.owner, self._notices, at=found.offset, part=_PART)
        elif segment.session is None:
            self._notices.add(
                f"segment {_PART}{segment.file.name}: its first records are damaged, so the session of the others is "
                f"not known; they were skipped"
            )
        elif not segment.owner.owns(head):
            note_foreign(segment.file, segment.owner, self._notices, at=found.offset, part=_PART)
        elif head.HasField("tensors"):
            if not _is_sound(head.tensors):
                return False
            segment.records.append(self._record(segment, found, head.tensors))
        elif head.HasField("tensor_graph"):
            if head.tensor_graph.id >= KEPT_GRAPHS:
                return False
            name = segment.session.id, head.tensor_graph.id
            self._graphs[name] = head.tensor_graph.check, found, segment.file
        elif head.WhichOneof("record") is None:
            self._notices.add_unknown("record", (_PART, segment.file.name, found.offset))
        return True

    def _record(self, segment: _Segment, found: ScannedRecord, head: pb.Tensors) -> KeptRecord:
        assert segment.session is not None
        return KeptRecord(
            step=head.step,
            session=segment.session.id,
            file=segment.file,
            body=found.body,
            body_size=found.body_size,
            head_check=segment.owner.as_written(found).head_check,
            layout=self._layouts.setdefault(head.layout, head.layout),  # most steps have the same one
            gradient_scale=head.gradient_scale if 0 < head.gradient_scale < math.inf else None,  # 0 if there is none
            label=head.label if head.HasField("label") else None,
            reasons=tuple(head.reasons),
            graph=head.graph if head.HasField("graph") else None,
            time=head.time,
        )

    def _note_if_copied(self, record: KeptRecord, before: KeptRecord | None) -> None:
        name, check = record.file.name, record.head_check
        is_copy = before is not None and check is not None and (before.file.name, before.head_check) == (name, check)
        if is_copy and name not in self._with_copies:
            self._with_copies.add(name)
            note_a_copy(f"{_PART}{name}", record.step, self._notices)

    def _sorted(self, model: str) -> dict[int, Mapping[int, KeptRecord]]:
        segments = [
            one
            for one in self._segments.values()
            if one.session is not None and one.session.model == model and one.session.id in self._sessions
        ]
        members = launches({one.session.id: one.session for one in segments if one.session}.values()).members
        latest: dict[int, tuple[int, dict[int, KeptRecord]]] = {}
        for record in _in_order(segments):
            launch, rank = members[record.session]
            known = latest.get(record.step)
            if known is None or known[0] < launch:
                known = latest[record.step] = launch, {}
            if known[0] == launch:
                self._note_if_copied(record, known[1].get(rank))
                known[1][rank] = record
        return {step: dict(sorted(latest[step][1].items())) for step in sorted(latest)}


def _is_sound(head: pb.Tensors) -> bool:
    texts = (head.label, *head.reasons)
    if head.step > LAST_STEP or not is_moment(head.time):
        return False
    return len(head.reasons) <= REASONS and all(len(text) <= LABEL for text in texts)


def _in_order(segments: list[_Segment]) -> Iterator[KeptRecord]:
    """The records in the order in which they count."""
    for segment in sorted(segments, key=lambda one: (one.file.number, one.file.name)):
        yield from segment.records
