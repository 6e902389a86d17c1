"""Writing a run to disk, or to a URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import numpy as np

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.frame_body import encode_body
from torchgraph_explorer.record.frame_layout import encode_layout
from torchgraph_explorer.record.framing import VERSION, file_header, framed
from torchgraph_explorer.record.graphs import encode_graph
from torchgraph_explorer.record.messages import finished_message, series_message, session_message
from torchgraph_explorer.record.remote import RemoteSegments, is_url
from torchgraph_explorer.record.segments import LocalSegments
from torchgraph_explorer.records import Finished, Frame, ModuleGraph, Record, Session

SEGMENT_BYTES = 64 << 20
"""A local segment is closed, and the next one begun, before it would grow larger than this."""

REMOTE_SEGMENT_BYTES = 8 << 20
"""Records that wait to be put to a URL are put when they are more than this."""


class Segments(Protocol):
    """Where a writer's bytes go."""

    def append(self, data: bytes) -> None:
        """Take whole records."""

    def close(self) -> None:
        """No more will come."""


class RecordWriter:
    """Writes one session into a run folder, which other writers may share at the same time.

    In a local folder every record is with the operating system when `write` returns: killing the process loses at most
    the record being written. At a URL records wait for the next put, see `remote.py`.
    """

    def __init__(self, run_dir: str | os.PathLike[str], *, segment_bytes: int | None = None) -> None:
        """Write to the folder or URL `run_dir`, which is created with the first record."""
        self._run_dir = os.fspath(run_dir)
        self._segment_bytes = segment_bytes
        self._session: Session | None = None
        self._segments: Segments | None = None
        self._layout: tuple[tuple[bytes, bytes, int], bytes] = ((b"", b"", -1), b"")

    def write(self, record: Record) -> None:
        """Append `record`. The session comes first, and once.

        Raises:
            OSError: The system refuses; at a URL, the store's own errors. Later records may be written all the same.
        """
        if isinstance(record, Session):
            assert self._session is None, "a writer writes one session"
            self._session = record
            self._segments = self._open(record)
        assert self._segments is not None, "a session comes before everything else"
        self._segments.append(self._encode(record))

    def close(self) -> None:
        """Write what still waits. Nothing can be written after that."""
        if self._segments is not None:
            self._segments.close()

    def _open(self, session: Session) -> Segments:
        if is_url(self._run_dir):
            limit = self._segment_bytes or REMOTE_SEGMENT_BYTES
            return RemoteSegments(self._run_dir, self._beginning, limit=limit, session=session.id)
        return LocalSegments(Path(self._run_dir), self._beginning, limit=self._segment_bytes or SEGMENT_BYTES)

    def _beginning(self, number: int) -> bytes:
        """How segment `number` of the run begins."""
        assert self._session is not None
        segment = pb.Segment(version=VERSION, number=number, session=session_message(self._session))
        return file_header() + 2 * framed(pb.Head(segment=segment).SerializeToString())

    def _encode(self, record: Record) -> bytes:
        """`record` framed; twice if frames depend on it, so that damage to one copy costs nothing."""
        match record:
            case Session():
                return b""  # in every segment's beginning
            case ModuleGraph():
                graph, body = encode_graph(record)
                return 2 * framed(pb.Head(graph=graph).SerializeToString(), body)
            case Frame():
                return self._encode_frame(record)
            case Finished():
                return framed(pb.Head(finished=finished_message(record)).SerializeToString())
            case _:
                return 2 * framed(pb.Head(series=series_message(record)).SerializeToString())

    def _encode_frame(self, frame: Frame) -> bytes:
        head = pb.Frame(
            step=frame.step,
            time=frame.time,
            clock=frame.clock,
            graph=frame.graph,
            gradient_scale=frame.gradient_scale,
            layout=self._encode_layout(frame),
        )
        return framed(pb.Head(frame=head).SerializeToString(), encode_body(frame.statistics, frame.histograms))

    def _encode_layout(self, frame: Frame) -> bytes:
        """The frame's layout, which is most often the last one's."""
        series, rows = frame.series.astype(np.uint32), frame.rows.astype(np.uint32)
        known, encoded = self._layout
        key = (series.tobytes(), rows.tobytes(), len(frame.statistics))
        if key != known:
            encoded = encode_layout(series, rows, len(frame.statistics))
            self._layout = (key, encoded)
        return encoded
