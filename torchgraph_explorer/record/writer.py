"""Writing a run to disk, or to a URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import time
from zlib import crc32

import numpy as np

from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.finding import Found
from torchgraph_explorer.gaps import Missing
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.writing import CellWriter
from torchgraph_explorer.record.definitions import Definitions
from torchgraph_explorer.record.folder import plugin_folder
from torchgraph_explorer.record.format.envelope import VERSION, enveloped, file_header
from torchgraph_explorer.record.format.messages import finished_message, noted_message, session_message
from torchgraph_explorer.record.format.places import Extent, Place, mark_of
from torchgraph_explorer.record.found import found_message
from torchgraph_explorer.record.outbox import Encoded, Outbox, Store
from torchgraph_explorer.record.remote import RemoteSegments, is_url
from torchgraph_explorer.record.scalars.encoding import encode_logged
from torchgraph_explorer.record.segments import LocalSegments
from torchgraph_explorer.record.steps.body import FINGERPRINT, encode_body
from torchgraph_explorer.record.steps.facts import encode_facts
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.record.steps.training import encode_training
from torchgraph_explorer.record.tensors.writer import TensorWriter
from torchgraph_explorer.schema import (
    Finished,
    Frame,
    KeptStep,
    Logged,
    ModuleGraph,
    Noted,
    Record,
    Session,
)

SEGMENT_BYTES = 64 << 20
"""Largest size of a local segment."""

REMOTE_SEGMENT_BYTES = 8 << 20
"""Records for a URL are written without waiting longer once they have more bytes than this."""


class RecordWriter:
    """The sink that writes one session into a run folder, which other writers may share at the same time.

    In a local folder every record is with the operating system when `write` returns: killing the process loses at most
    the record being written. At a URL, records wait for the next segment, see `remote.py`. While a store refuses, they
    wait in memory and are tried again, see `outbox.py`; no method raises because of it.
    """

    def __init__(self, run_dir: str | os.PathLike[str], *, segment_bytes: int | None = None) -> None:
        """Write to the folder or URL `run_dir`, which is created with the first record."""
        self._run_dir = os.fspath(run_dir)
        self._segment_bytes = segment_bytes
        self._session: Session | None = None
        self._outbox: Outbox | None = None
        self._tensors: TensorWriter | None = None
        self._notes: list[str] = []
        self._has_noted_cut = False
        self._unwritable = Missing()
        self._mark, self._definitions = 0, Definitions(0)
        self._cells: CellWriter | None = None
        self._layout: tuple[tuple[bytes, bytes, int, tuple[str, ...]], bytes] = ((b"", b"", -1, ()), b"")

    def write(self, record: Record | Found) -> None:
        """Append `record`. The session comes first, once. What cannot be encoded is left out, with a warning."""
        if isinstance(record, Session):
            assert self._session is None, "a writer writes one session"
            self._session, self._mark = record, mark_of(record.id)
            self._definitions, self._cells = Definitions(self._mark), CellWriter(self._mark)
            self._outbox = Outbox(self._open(record), place=self._run_dir)
        assert self._outbox is not None, "a session comes before everything else"
        ending = None
        try:
            data = self._encode(record)
            if isinstance(record, Finished):
                ending = self._ending(record)
        except Exception as fault:  # a name or number that the format cannot hold
            self._leave_out(record, fault)
            return
        if isinstance(record, tuple):
            self._index(lambda cells: cells.define(record))
        self._unwritable.end()
        step = record.step if isinstance(record, Frame) else None
        is_needed = not isinstance(record, Frame | Logged | Found)
        self._outbox.add(Encoded(data, step, is_needed, ending))

    def keep(self, step: KeptStep, most: int) -> int:
        """Append the tensors that were kept at one step, if those of the model then take at most `most` bytes.

        Returns:
            How many bytes the kept tensors of the model take, in all sessions of the run.
        """
        assert self._session is not None, "a session comes before everything else"
        if self._tensors is None:
            begin = partial(self._beginning, of_tensors=True)
            self._tensors = TensorWriter(
                self._run_dir,
                begin,
                session=self._session,
                when_gone=self._note_kept_gone,
                when_cut=self._note_cut,
            )
        return self._tensors.write(step, most)

    def when_idle(self) -> None:
        """Write what waits, if it is time to. To be called now and then while no record comes."""
        if self._outbox is not None:
            self._outbox.put_if_due()
        if self._tensors is not None:
            self._tensors.when_idle()

    def close(self) -> None:
        """Write what still waits. No record can be written after that."""
        if self._outbox is not None:
            self._outbox.close()
        if self._tensors is not None:
            self._tensors.close()

    def _open(self, session: Session) -> Store:
        if is_url(self._run_dir):
            limit = self._segment_bytes or REMOTE_SEGMENT_BYTES
            return RemoteSegments(self._run_dir, self._beginning, limit=limit, session=session.id)
        limit = self._segment_bytes or SEGMENT_BYTES
        return LocalSegments(
            plugin_folder(Path(self._run_dir)),
            self._beginning,
            limit=limit,
            when_gone=self._note_gone,
            when_cut=self._note_cut,
            session=session.id,
        )

    def _leave_out(self, record: Record | Found, fault: Exception) -> None:
        """Warn of the first step that cannot be encoded; `Finished` notes how many there were."""
        if not isinstance(record, Frame):
            self._note(f"{_what(record)} cannot be recorded ({reason(fault)}).")
            return
        if not self._unwritable:
            warn(f"{_what(record)} cannot be recorded ({reason(fault)}).")
        self._unwritable.add(record.step)

    def _note_gone(self, first: int | None) -> None:
        lacks = "What it held is lost" if first is None else f"The steps before {first} are missing in it now"
        self._note(f"{self._run_dir} was deleted or moved away while it was written to. {lacks}.")

    def _note_kept_gone(self, first: int | None) -> None:
        """If none follows, a reader tells that they are missing."""
        if first is not None:
            self._note(
                f"The kept tensors in {self._run_dir} were deleted or moved away while more were written. Those from "
                f"before step {first} are missing in it now."
            )

    def _note_cut(self, file: Path, missing: int, size: int) -> None:
        """Told once: a program that does this once may do it every minute. A reader tells of each file."""
        if not self._has_noted_cut:
            self._has_noted_cut = True
            self._note(
                f"{file} was cut off by another program while it was written to: {missing:,} of its {size:,} bytes are "
                f"missing, and the records in them. Recording goes on in a new file."
            )

    def _note(self, sentence: str) -> None:
        if sentence not in self._notes:
            self._notes.append(sentence)
            warn(sentence)

    def _beginning(self, place: Place, is_whole: bool = False, *, of_tensors: bool = False) -> bytes:
        """The beginning of the segment at `place`, with all series and graphs so far if `is_whole`."""
        assert self._session is not None
        segment = pb.Segment(
            version=VERSION,
            number=place.number,
            session=session_message(self._session),
            part=place.part,
            before=place.before.message() if place.before is not None else None,
            began=time(),
            run=place.run,
            of_tensors=of_tensors,
        )
        head = pb.Head(session=self._mark, segment=segment)
        beginning = file_header() + 2 * enveloped(head.SerializeToString())
        return beginning + self._definitions.whole() if is_whole else beginning

    def _ending(self, finished: Finished) -> Callable[[Extent], bytes]:
        """Gives the end of the session, which says what was written before it."""
        assert self._outbox is not None
        unwritable = (f"{self._unwritable} could not be recorded.",) * bool(self._unwritable)
        notes = (*finished.notes, *self._notes, *self._outbox.notes, *unwritable)
        message = finished_message(replace(finished, notes=notes))
        if self._tensors is not None and (kept := self._tensors.reached()) is not None:
            message.kept.CopyFrom(kept.message())

        def ending(end: Extent) -> bytes:
            message.end.CopyFrom(end.message())
            return enveloped(pb.Head(session=self._mark, finished=message).SerializeToString())

        return ending

    def _encode(self, record: Record | Found) -> bytes:
        """`record` in its envelope; twice if frames depend on it, so that damage to one copy loses nothing."""
        match record:
            case Session():
                return b""  # in every segment's beginning
            case Frame():
                step = record
                frame = self._encode_frame(step)
                return self._definitions.due(len(frame)) + frame + self._index(lambda cells: cells.add(step))
            case Noted() | Found():
                return enveloped(self._head_alone(record).SerializeToString())
            case Finished():
                return self._index(CellWriter.flush)  # the rest is made where it comes to lie
            case Logged():
                head, body = encode_logged(record)
                return enveloped(pb.Head(session=self._mark, logged=head).SerializeToString(), body)
            case _:
                return self._definitions.added(record)

    def _head_alone(self, record: Noted | Found) -> pb.Head:
        """The head of a record that is nothing else."""
        if isinstance(record, Noted):
            return pb.Head(session=self._mark, noted=noted_message(record))
        return pb.Head(session=self._mark, found=found_message(record))

    def _index(self, act: Callable[[CellWriter], bytes | None]) -> bytes:
        """What `act` adds to the index of cells. The steps are recorded whatever becomes of the index."""
        if self._cells is None:
            return b""
        try:
            return act(self._cells) or b""
        except Exception as fault:
            self._cells = None
            self._note(f"The index of the x-ray is no longer recorded ({reason(fault)}); showing it takes longer.")
            return b""

    def _encode_frame(self, frame: Frame) -> bytes:
        head = pb.Frame(
            step=frame.step,
            time=frame.time,
            clock=frame.clock,
            graph=frame.graph,
            gradient_scale=frame.gradient_scale,
            layout=self._encode_layout(frame),
            label=None if frame.label is None else printable(frame.label),
        )
        encode_facts(head, frame.facts)
        encode_training(head, frame.training)
        encoded = pb.Head(session=self._mark, frame=head).SerializeToString()
        numbers = frame.statistics, frame.histograms, frame.fingerprints
        return enveloped(encoded, encode_body(*numbers, head_check=crc32(encoded)))

    def _encode_layout(self, frame: Frame) -> bytes:
        """The frame's layout, which is usually that of the frame before."""
        series, rows = frame.series.astype(np.uint32), frame.rows.astype(np.uint32)
        known, encoded = self._layout
        more = () if frame.fingerprints is None else FINGERPRINT
        key = (series.tobytes(), rows.tobytes(), len(frame.statistics), more)
        if key != known:
            encoded = encode_layout(series, rows, len(frame.statistics), more=more)
            self._layout = (key, encoded)
        return encoded


def _what(record: Record | Found) -> str:
    """A record that cannot be encoded, in words."""
    match record:
        case Frame():
            return f"Step {record.step}"
        case ModuleGraph():
            return "A module graph"
        case tuple():
            return f"{len(record)} series"
        case Logged():
            return "A block of logged scalars"
        case Found():
            return "What rules of your own found"
        case _:
            return f"The {type(record).__name__.lower()}"
