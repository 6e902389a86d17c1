"""Finding the records of one segment file, whatever happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from google.protobuf.message import DecodeError

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import ReadAt
from torchgraph_explorer.record.framing import (
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

_WINDOW = 512
"""Bytes read at a record's beginning: header and head of nearly every frame, in one go."""

_STRIDE = 1 << 20
"""Bytes looked through at a time when the next record has to be searched for."""


class Found(NamedTuple):
    """A record, or damage.

    Attributes:
        offset: Where it begins in the file.
        head: What the record says; None where something is damaged.
        body: File offset of the body.
        body_size: Bytes of the body.
    """

    offset: int
    head: pb.Head | None
    body: int = 0
    body_size: int = 0


@dataclass(slots=True)
class Scanner:
    """How far a segment file has been read.

    Attributes:
        source: The file, as errors call it.
        position: Where to go on.
        is_lost: Damage at `position` was reported, and where it ends is not known yet.
    """

    source: str
    position: int = 0
    is_lost: bool = False

    def next(self, read: ReadAt, size: int) -> Found | None:
        """The next record, or damage, of a file of `size` bytes; None when there is no further whole one yet.

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

    def _begin(self, read: ReadAt, size: int) -> Found | None:
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

    def _record(self, read: ReadAt, size: int, beginning: tuple[RecordHeader, bytes]) -> Found | None:
        header, data = beginning
        start, stop = self.position, RECORD_HEADER_SIZE + header.head_size
        if start + header.record_size > size:
            return None
        self.position += header.record_size
        if stop > len(data):
            data = read(start, stop)
        head = _head(data[RECORD_HEADER_SIZE:stop], header.head_check)
        return Found(start, head, start + header.body_offset, header.body_size)

    def _lose(self, read: ReadAt, size: int) -> Found | None:
        """Report damage here. Zeros up to the end are no damage: a file system may show them before the data."""
        if not _has_content(read, self.position, size):
            return None
        self.is_lost = True
        return Found(self.position, None)

    def _recover(self, read: ReadAt, size: int) -> bool:
        """Go to the next sound record header; False when there is none yet."""
        while self._find_marker(read, size) and self.position + RECORD_HEADER_SIZE <= size:
            if read_record_header(read(self.position, RECORD_HEADER_SIZE)) is not None:
                self.is_lost = False
                return True
            self.position += 1
        return False

    def _find_marker(self, read: ReadAt, size: int) -> bool:
        """Go to the next marker; failing that, to where one may be about to be written."""
        while self.position < size:
            data = read(self.position, _STRIDE)
            at = data.find(MARKER)
            if at >= 0:
                self.position += at
                return True
            if self.position + len(data) >= size:
                self.position += max(len(data) - len(MARKER) + 1, 0)
                return False
            self.position += len(data) - len(MARKER) + 1
        return False


def require_version(version: int, source: str) -> None:
    """Refuse what a newer release wrote.

    Raises:
        RecordError: So it is.
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
    return any(read(offset, _STRIDE).strip(b"\0") for offset in range(start, stop, _STRIDE))
