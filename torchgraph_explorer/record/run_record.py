"""Reads the record of a run, also while it is written."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from torchgraph_explorer.errors import NotFoundError, RecordError
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.beginnings import beginning, models_of, strangers
from torchgraph_explorer.record.elsewhere.scalars import LoggedElsewhere
from torchgraph_explorer.record.folder import Folder, ReadAt, SegmentFile, reading
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.known_series import KnownSeries
from torchgraph_explorer.record.limits import SEGMENT_BYTES
from torchgraph_explorer.record.losses import Placed, Written, losses
from torchgraph_explorer.record.model_index import ModelIndex, Source
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.notices import Notices, note_a_copy, note_a_torn_end, note_foreign, note_size
from torchgraph_explorer.record.ownership import Owner
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.record.scan import ScannedRecord, Scanner, require_version
from torchgraph_explorer.record.tensors.index import KeptIndex, OfRun
from torchgraph_explorer.record.unchanged import Seen, continues, is_filled

ModelT = TypeVar("ModelT", bound=ModelRecord)


@dataclass(slots=True)
class _Segment:
    """How far a segment file has been read.

    Attributes:
        file: The file as listed.
        scanner: Where the next record is.
        scanned: The file's size when it was read.
        seen: What tells whether it is still that file.
        owner: Whose it is.
        is_skipped: It does not belong here.
        is_damaged: Damage was found in it.
        finished_at: Where the end of its session is in it.
        session: The model, and the id of the session, once they are known; None for a file that is skipped.
    """

    file: SegmentFile
    scanner: Scanner
    scanned: int = 0
    seen: Seen = field(default_factory=Seen)
    owner: Owner = field(default_factory=Owner)
    is_skipped: bool = False
    is_damaged: bool = False
    finished_at: int | None = None
    session: tuple[str, str] | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is something behind the last record that was read."""
        return self.scanner.position < self.scanned

    @property
    def end(self) -> int | None:
        """As in `losses.Placed`."""
        if self.is_damaged or self.owner.has_others:
            return None
        return self.scanner.position if self.finished_at is None else self.finished_at


class RunRecord:
    """The record of one run, as of the latest `refresh`.

    An index of the frames is kept in memory; their bodies are read when they are asked for. Several threads may use it:
    `refresh` takes a lock, and reading needs none.

    Attributes:
        name: The run's name, in its logdir.
        path: Its folder, or URL.
    """

    def __init__(self, folder: Folder, *, name: str, path: str) -> None:
        """Read what there is. Call `discovery.open_record` rather than this.

        Raises:
            RecordError: There is no record, or a newer release wrote it.
        """
        self.name = name
        self.path = path
        self._folder = folder
        self._lock = threading.Lock()
        self._notices = Notices()
        self._segments: dict[str, _Segment] = {}
        self._models: dict[str, ModelIndex] = {}
        self._epochs: dict[str, int] = {}
        self._known_series: dict[tuple[str, str], KnownSeries] = {}
        self._strangers: dict[str, str] = {}
        self._kept: KeptIndex | None = None
        self._elsewhere = None if is_url(path) else LoggedElsewhere(Path(path))
        self._update(at_once=True)
        self._require_models()
        self._notices.announce()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: models {', '.join(map(repr, self.models))}>"

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the watched models, first to last."""
        return models_of(one.session for model in self._models.values() for one in model.sessions.values())

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each kind of damage that was found and skipped so far."""
        return self._notices.texts

    @property
    def bytes(self) -> int:
        """The size of the run's files in bytes."""
        return sum(segment.file.size for segment in list(self._segments.values()))

    @property
    def first_write(self) -> float:
        """When the first session began, in seconds since the epoch."""
        sessions = (one for model in self._models.values() for one in model.sessions.values())
        return min((one.session.created for one in sessions), default=0.0)

    @property
    def last_write(self) -> float:
        """When the latest record was written, in seconds since the epoch."""
        return max((model.last_write for model in self._models.values()), default=0.0)

    def model(self, name: str | None = None) -> ModelRecord:
        """The watched model called `name`; without a name, the only one.

        Raises:
            NotFoundError: There is no such model, or several and no name was given.
        """
        return self._model(ModelRecord, name)

    def _model(self, kind: type[ModelT], name: str | None) -> ModelT:
        if name is None and len(self.models) == 1:
            name = self.models[0]
        if name is None:
            raise NotFoundError(f"Run {self.name!r} holds {len(self.models)} models. {self._choices()}")
        self._index(name)
        return kind(lambda: self._index(name), self._notices, kept=self._kept_index, elsewhere=self._elsewhere)

    def _kept_index(self) -> KeptIndex:
        """Where the kept tensors are. Made only when it is asked for."""
        with self._lock:
            if self._kept is None:
                of_run = OfRun(self._has_session, self._kept_of_sessions)
                self._kept = KeptIndex(self._folder.of_tensors(), self._notices, of_run)
            return self._kept

    def _has_session(self, session: str) -> bool:
        """Whether a session with this id has written in the run, also since it was read last."""
        if any(session in model.sessions for model in self._models.values()):
            return True
        with self._lock:
            known = {name for name, segment in self._segments.items() if segment.owner.session is not None}
            for file in self._folder.files():
                if file.name not in known:
                    with reading(file.path) as read:
                        found = beginning(read, file.size, str(file.path))
                    if found is not None and found.session.id == session:
                        return True
        return False

    def _kept_of_sessions(self) -> list[Written]:
        sessions = (one for model in self._models.values() for one in model.sessions.values())
        return [one.kept for one in sessions if one.kept is not None]

    def refresh(self) -> bool:
        """Read what is new; True if anything is.

        Costs one listing of the folder if nothing is new.

        Raises:
            RecordError: A newer release has begun to write, or a file cannot be read.
        """
        with self._lock:
            is_changed = self._update()
        self._notices.announce()
        return is_changed

    def _update(self, *, at_once: bool = False) -> bool:
        files = self._folder.files()
        for told in self._folder.odd:
            self._notices.add(told)
        is_replaced = self._forget_if_replaced(files)
        self._find_strangers(files)
        has_records = [self._read_segment(file) for file in files]
        has_frames = [model.settle(at_once=at_once) for model in self._models.values()]  # also those held back before
        for model in self._models.values():
            for path, step in model.frames.twice.items():
                note_a_copy(path.name, step, self._notices)
        self._notices.stand("segments", self._losses())
        return is_replaced or any(has_records) or any(has_frames)

    def _find_strangers(self, files: Sequence[SegmentFile]) -> None:
        """Look which of the files that are new do not belong here."""
        places: list[tuple[str, pb.Segment]] = []
        has_new = False
        for file in files:
            known = self._segments.get(file.name)
            place = known.owner.segment if known is not None else None
            is_new = known is None or file.size > known.scanned or is_filled(file, known.file)
            if place is None and is_new and file.size:
                with reading(file.path) as read:
                    found = beginning(read, file.size, str(file.path))
                place = found.segment if found is not None else None
                has_new = has_new or place is not None
            if place is not None:
                places.append((file.name, place))
        if has_new:
            self._strangers = strangers(places)

    def _losses(self) -> tuple[str, ...]:
        places, unknown = list[Placed](), list[SegmentFile]()
        for segment in self._segments.values():
            if segment.owner.segment is None:
                unknown.append(segment.file)
            elif not segment.is_skipped:
                places.append(Placed(segment.file, segment.owner.segment, segment.end))
        ends = (one.written for model in self._models.values() for one in model.sessions.values())
        return losses(places, [one for one in ends if one is not None], unknown=unknown)

    def _require_models(self) -> None:
        if self.models:
            return
        if self.warnings:
            raise RecordError(f"{self.path} holds no record that can be read. The first fault: {self.warnings[0]}.")
        raise RecordError(f"{self.path} holds no record yet. Open it again when its training has begun.")

    def _index(self, name: str) -> ModelIndex:
        if not isinstance(name, str) or name not in self._models:
            raise NotFoundError(f"Run {self.name!r} has no model {name!r:.200}. {self._choices()}")
        return self._models[name]

    def _choices(self) -> str:
        if not self.models:
            return "Nothing has been recorded in it yet."
        return f"Name one of: {', '.join(map(repr, self.models))}."

    def _forget_if_replaced(self, files: list[SegmentFile]) -> bool:
        """Start over if a file that was read is gone, shorter, replaced by another, or damaged and written to again."""
        now = {file.name: file for file in files}
        if all(
            continues(file := now.get(name), segment.file, least=segment.file.size, seen=segment.seen)
            and not (segment.is_damaged and file is not None and is_filled(file, segment.file))
            for name, segment in self._segments.items()
        ):
            return False
        self._epochs |= {name: model.epoch + 1 for name, model in self._models.items()}
        self._segments, self._models, self._known_series = {}, {}, {}
        return True

    def _read_segment(self, file: SegmentFile) -> bool:
        """Read the new records of `file`; True if there are any."""
        segment = self._segments.setdefault(file.name, _Segment(file, Scanner(str(file.path))))
        may_have_more = file.size > segment.scanned or (segment.is_open and is_filled(file, segment.file))
        segment.file = file
        if file.size > SEGMENT_BYTES:
            note_size(file, self._notices)
            return False
        is_new = False
        if may_have_more:
            with reading(file.path) as read:
                while (found := segment.scanner.next(read, file.size)) is not None:
                    self._take(segment, found, read)
                    is_new = True
                segment.seen = Seen.of(read, segment.scanner.position)
            segment.scanned = file.size
        note_a_torn_end(file, segment.scanner, self._notices)
        return is_new

    def _take(self, segment: _Segment, found: ScannedRecord, read: ReadAt) -> None:
        """Add one record to the index; damage is noted. If reading fails, the record is read again next time."""
        head, file = found.head, segment.file
        if head is None:
            self._note_damage(segment, found)
            return
        try:
            if head.HasField("segment"):
                self._begin(segment, found, head.segment)
            elif segment.is_skipped:
                return
            elif segment.session is not None:
                model, session = segment.session
                if not segment.owner.owns(head):
                    note_foreign(segment.file, segment.owner, self._notices, at=found.offset)
                elif not self._skip_known(segment, found, read):
                    source = Source(read, file, session, self._notices)
                    self._models[model].take(head, segment.owner.as_written(found), source)
                    if head.HasField("finished"):
                        segment.finished_at = found.offset
                    self._remember(segment, found, read)
            else:
                self._notices.add(
                    f"segment {file.name}: its first records are damaged, so the model of the others is not known; "
                    f"they were skipped"
                )
        except DamageError as damage:
            self._note_damage(segment, found, str(damage))
        except Exception:
            segment.scanner.position = found.offset
            raise

    def _skip_known(self, segment: _Segment, found: ScannedRecord, read: ReadAt) -> bool:
        """Pass over a record of series, and those after it, if the session has written them before; True if so."""
        known = self._known_series.get(segment.session) if segment.session and found.is_series else None
        if known is None:
            return False
        repeated = known.repeated(read, found.offset, _bytes(segment, found, read))
        segment.scanner.position = max(segment.scanner.position, found.offset + repeated)
        return repeated > 0

    def _remember(self, segment: _Segment, found: ScannedRecord, read: ReadAt) -> None:
        if segment.session and found.is_series:
            known = self._known_series.setdefault(segment.session, KnownSeries())
            known.add(_bytes(segment, found, read))

    def _note_damage(self, segment: _Segment, found: ScannedRecord, cause: str = "") -> None:
        segment.is_damaged = True
        what = f"record at byte {found.offset} is damaged and was skipped{f': {cause}' if cause else ''}"
        if found.offset == 0:
            what = "it does not begin as a segment does, being damaged or something else"
        self._notices.add(f"segment {segment.file.name}: {what}")

    def _begin(self, segment: _Segment, found: ScannedRecord, head: pb.Segment) -> None:
        """Note which model and session `segment` is of, unless it does not belong here."""
        require_version(head.version, str(segment.file.path))
        is_first = segment.owner.session is None
        session = segment.owner.begin(head)
        if session is None:
            note_foreign(segment.file, segment.owner, self._notices, at=found.offset)
            return
        if is_first and (why := self._strangers.get(segment.file.name)):
            segment.is_skipped = True
            self._notices.add(f"segment {segment.file.name}: {why}, and was skipped")
        if segment.is_skipped:
            return
        if session.model not in self._models:
            epoch = self._epochs.get(session.model, 0)
            self._models = {**self._models, session.model: ModelIndex(session.model, epoch)}
        self._models[session.model].begin(session)
        segment.session = session.model, session.id


def _bytes(segment: _Segment, found: ScannedRecord, read: ReadAt) -> bytes:
    """The record, from its header up to the next one."""
    return read(found.offset, segment.scanner.position - found.offset)
