"""The envelope around each record, by which damage costs one record, and a torn end only the torn record.

A segment file is a file header and then records, each at a multiple of 8 bytes. A record is a header of fixed size, a
head (protobuf), and a body (raw); docs/format.md has the table. The header has its own check, so that a flipped length
cannot mislead the reader. It begins with a marker, by which the reader finds the next record after a damaged one.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple
from zlib import crc32

VERSION = 2
"""The version of the format. A reader refuses newer ones."""

FIRST_BOUND = 2
"""The version since which the checks of rows depend on the record that they are in: see `row_check`."""

MAGIC = b"\x89TGRAPH\n"
"""How every segment file begins. The newline shows where a transfer as text went wrong, as in PNG."""

MARKER = b"\xe5TGREC\r\n"
"""How every record begins."""

_FILE = struct.Struct("<8sII")
_RECORD = struct.Struct("<8sIIII")
_CHECK = struct.Struct("<I")
_ALL_BITS = 0xFFFF_FFFF

FILE_HEADER_SIZE = _FILE.size
RECORD_HEADER_SIZE = _RECORD.size


class DamageError(Exception):
    """Bytes do not follow the format. Readers turn it into a warning; it never reaches the user.

    Its message, which may be empty, says what is wrong.
    """


class RecordHeader(NamedTuple):
    """Sizes in bytes of what follows the header, and the crc32 of the head."""

    head_size: int
    body_size: int
    head_check: int

    @property
    def body_offset(self) -> int:
        """Where the body begins, from the beginning of the record."""
        return aligned(RECORD_HEADER_SIZE + self.head_size)

    @property
    def record_size(self) -> int:
        """Bytes from the beginning of this record to that of the next one."""
        return self.body_offset + aligned(self.body_size)


def aligned(size: int) -> int:
    """`size` rounded up to the next multiple of 8."""
    return -(-size // 8) * 8


def file_header(version: int = VERSION) -> bytes:
    """The beginning of a segment file."""
    return _checked(_FILE.pack(MAGIC, version, 0))


def read_file_header(data: bytes) -> int:
    """The version of the segment file that begins with `data`.

    Raises:
        DamageError: `data` is not a segment file's beginning, or is no longer.
    """
    if len(data) < FILE_HEADER_SIZE or not _is_checked(data[:FILE_HEADER_SIZE]):
        raise DamageError
    magic, version, _ = _FILE.unpack_from(data)
    if magic != MAGIC:
        raise DamageError
    return int(version)


def enveloped(head: bytes, body: bytes | memoryview = b"") -> bytes:
    """A record in its envelope, padded to a multiple of 8 bytes."""
    return b"".join((enveloped_head(head, len(body)), body, _padding(len(body))))


def enveloped_head(head: bytes, body_size: int) -> bytes:
    """What `enveloped` gives, without the body, which follows, and the padding behind it."""
    header = _checked(_RECORD.pack(MARKER, len(head), body_size, crc32(head), 0))
    return b"".join((header, head, _padding(len(head))))


def read_record_header(data: bytes, offset: int = 0) -> RecordHeader | None:
    """The header of the record at `offset` of `data`; None if there is no sound one."""
    header = data[offset : offset + RECORD_HEADER_SIZE]
    if not header.startswith(MARKER) or len(header) < RECORD_HEADER_SIZE:
        return None
    _, head_size, body_size, head_check, check = _RECORD.unpack(header)
    if crc32(header[: -_CHECK.size]) != check:
        return None
    return RecordHeader(head_size, body_size, head_check)


def row_check(check: int, head_check: int | None, row: int) -> int:
    """What is written as the check of row number `row` of a body, if its content has the crc32 `check`.

    `head_check` is the crc32 of the record's head. So a row that has come to lie in another record, or at another place
    of its own one, is damaged. None if the record is older than `FIRST_BOUND`.
    """
    return check if head_check is None else check ^ (head_check + row & _ALL_BITS)


def inflated(data: bytes, limit: int) -> bytes:
    """`data` decompressed, if that is at most `limit` bytes: a crafted file must not fill the memory.

    Raises:
        DamageError: It is more, or `data` is not compressed or not complete.
    """
    if limit <= 0:  # which means no limit to zlib
        raise DamageError
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, limit)
    except zlib.error as error:
        raise DamageError from error
    if not stream.eof:
        raise DamageError
    return content


def _padding(size: int) -> bytes:
    return bytes(aligned(size) - size)


def _checked(header: bytes) -> bytes:
    """`header`, with the crc32 of its other bytes in the last four."""
    return header[: -_CHECK.size] + _CHECK.pack(crc32(header[: -_CHECK.size]))


def _is_checked(header: bytes) -> bool:
    return header == _checked(header)
