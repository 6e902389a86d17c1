"""Finding the records of one segment file, whatever happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from google.protobuf.message import DecodeError

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import ReadAt, after_hole
from torchgraph_explorer.record.format.envelope import (
    FILE_HEADER_SIZE,
    MAGIC,
    MARKER,
    RECORD_HEADER_SIZE,
    VERSION,
    DamageError,
    RecordHeader,
    read_file_header,
    read_record_header,
)
from torchgraph_explorer.record.limits import HEAD_BYTES

_WINDOW = 1 << 12
"""Bytes read at a record's beginning: enough for the header and head of nearly every frame."""

_STRIDE, _LONGEST_STRIDE = 1 << 12, 1 << 20
"""Bytes searched at a time for the next record after damage: few at first, since it may be near."""


class ScannedRecord(NamedTuple):
    """A record, or damage.

    Attributes:
        offset: Where it begins in the file.
        head: The record's head; None where something is damaged.
        body: File offset of the body.
        body_size: Bytes of the body.
        head_check: The crc32 of the head, on which the checks of the body's rows depend; None if they do not.
    """

    offset: int
    head: pb.Head | None
    body: int = 0
    body_size: int = 0
    head_check: int | None = None

    @property
    def is_series(self) -> bool:
        """Whether it defines series and nothing else."""
        return self.head is not None and self.head.HasField("series") and not self.body_size


@dataclass(slots=True)
class Scanner:
    """How far a segment file has been read.

    Attributes:
        source: The file, as errors call it.
        position: Where the next record is expected.
        is_lost: Damage before `position` was reported, and its end is not known yet.
    """

    source: str
    position: int = 0
    is_lost: bool = False

    def next(self, read: ReadAt, size: int) -> ScannedRecord | None:
        """The next record, or damage, of a file of `size` bytes; None if there is no further complete record yet.

        Raises:
            RecordError: A newer release wrote the file.
        """
        if self.is_lost and not self._recover(read, size):
            return None
        if self.position == 0:
            return self._begin(read, size)
        if self.position + RECORD_HEADER_SIZE > size:
            return None
        data = read(self.position, _WINDOW)
        header = read_record_header(data)
        if header is None:
            return self._lose(read, size)
        return self._record(read, size, (header, data))

    def _begin(self, read: ReadAt, size: int) -> ScannedRecord | None:
        """Pass over the file header."""
        data = read(0, FILE_HEADER_SIZE)
        if size < FILE_HEADER_SIZE and MAGIC.startswith(data[: len(MAGIC)]):
            return None
        try:
            require_version(read_file_header(data), self.source)
        except DamageError:
            return self._lose(read, size)
        self.position = FILE_HEADER_SIZE
        return self.next(read, size)

    def _record(self, read: ReadAt, size: int, beginning: tuple[RecordHeader, bytes]) -> ScannedRecord | None:
        header, data = beginning
        start, stop = self.position, RECORD_HEADER_SIZE + header.head_size
        if header.head_size > HEAD_BYTES:
            return self._lose(read, size)
        body_offset, record_size = header.body_offset, header.record_size
        if start + record_size > size:
            return None
        if stop > len(data):
            data = read(start, stop)
        head = _head(data[RECORD_HEADER_SIZE:stop], header.head_check)
        self.position += record_size  # last, since reading may fail: then this record is the next one again
        return ScannedRecord(start, head, start + body_offset, header.body_size, header.head_check)

    def _lose(self, read: ReadAt, size: int) -> ScannedRecord | None:
        """Report damage at `position`. Zeros up to the end are none: a file system may show them before the data."""
        start = self.position
        if not _has_content(read, start, size):
            return None
        self.is_lost = True
        self.position = start + 1
        return ScannedRecord(start, None)

    def _recover(self, read: ReadAt, size: int) -> bool:
        """Move to the next sound record header; False if there is none yet."""
        stride = _STRIDE
        while self.position + RECORD_HEADER_SIZE <= size:
            self.position = after_hole(read, self.position)
            data = read(self.position, stride)
            at = _sound_header(data)
            if at is not None:
                self.position += at
                self.is_lost = False
                return True
            if len(data) < RECORD_HEADER_SIZE:
                return False
            self.position += len(data) - RECORD_HEADER_SIZE + 1
            stride = min(2 * stride, _LONGEST_STRIDE)
        return False


def _sound_header(data: bytes) -> int | None:
    """Where in `data` the first complete and sound record header begins; None if there is none."""
    at = data.find(MARKER)
    while at >= 0:
        if read_record_header(data, at) is not None:
            return at
        at = data.find(MARKER, at + 1)
    return None


def require_version(version: int, source: str) -> None:
    """Refuse a record that a newer release wrote.

    Raises:
        RecordError: `version` is newer than this release reads.
    """
    if version > VERSION:
        raise RecordError(
            f"{source}: record version {version}, this release reads {VERSION}. "
            f"Install the torchgraph_explorer that wrote it, or a newer one, or record the run again."
        )


def _head(data: bytes, check: int) -> pb.Head | None:
    if crc32(data) != check:
        return None
    try:
        return pb.Head.FromString(data)
    except DecodeError:
        return None


def _has_content(read: ReadAt, start: int, stop: int) -> bool:
    """Whether there is anything but zeros."""
    stride = _STRIDE
    while (start := after_hole(read, start)) < stop:
        data = read(start, stride)
        if data.strip(b"\0"):
            return True
        if not data:
            return False
        start += len(data)
        stride = min(2 * stride, _LONGEST_STRIDE)
    return False
