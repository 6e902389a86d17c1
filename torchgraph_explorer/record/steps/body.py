"""The body of a frame: a table of words, one row per measured tensor, and then their packed histograms.

Every row has its own check, so one row can be read and verified without the others: the history of a series reads about
200 bytes of each frame.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record.folder import ReadAt
from torchgraph_explorer.record.format.envelope import DamageError, row_check
from torchgraph_explorer.record.format.packing import pack, unpack
from torchgraph_explorer.record.limits import BODY_AT_ONCE, PACKED_BYTES
from torchgraph_explorer.record.steps.native_body import check_in_c, encode_in_c
from torchgraph_explorer.schema import STATISTICS

WORD = 4

FINGERPRINT = ("fingerprint_low", "fingerprint_high")
"""Columns that hold a row's fingerprint, as the two halves of a number of 64 bits."""

COLUMNS = (*STATISTICS, *FINGERPRINT)
"""The columns of a frame that has fingerprints."""

_STATISTICS_BYTES = WORD * len(STATISTICS)
_TAIL_WORDS = 3
_TAIL = struct.Struct("<III")


class Row(NamedTuple):
    """One row.

    Attributes:
        statistics: In the order of `STATISTICS`, as the bytes of float32.
        packed: Its histogram.
        fingerprint: 0 if it has none.
    """

    statistics: bytes
    packed: bytes
    fingerprint: int


class Table(NamedTuple):
    """Where a frame's rows are.

    Attributes:
        offset: Of the frame's body in the file.
        size: Bytes of the body.
        rows: How many there are.
        statistics: Names of the columns.
        head_check: What the checks of the rows depend on; None if they do not.
    """

    offset: int
    size: int
    rows: int
    statistics: tuple[str, ...]
    head_check: int | None = None

    @property
    def row_size(self) -> int:
        """Bytes of a row of the table."""
        return row_size(len(self.statistics))


def row_size(columns: int) -> int:
    """Bytes of a row of the table that has so many statistics."""
    return WORD * (columns + _TAIL_WORDS)


def known_check(stored: int) -> int | None:
    """`Table.head_check`, of which `FrameIndex.frames` has -1 for None."""
    return stored if stored >= 0 else None


def encode_body(
    statistics: npt.NDArray[np.float32],
    histograms: Histograms,
    fingerprints: npt.NDArray[np.uint64] | None = None,
    *,
    head_check: int,
) -> bytes:
    """The body of a frame with these `[rows, STATISTICS]`, as many histograms, and fingerprints if there are any.

    It belongs to the head with the crc32 `head_check`, and to no other.
    """
    in_c = encode_in_c(statistics, histograms, fingerprints, head_check=head_check)
    return encode_in_python(statistics, histograms, fingerprints, head_check=head_check) if in_c is None else in_c


def encode_in_python(
    statistics: npt.NDArray[np.float32],
    histograms: Histograms,
    fingerprints: npt.NDArray[np.uint64] | None = None,
    *,
    head_check: int,
) -> bytes:
    """The body as Python makes it: where `body.c` was not built, and as the reference for that."""
    packed, offsets = pack(histograms)
    rows, known = statistics.shape
    columns = known if fingerprints is None else known + len(FINGERPRINT)
    words = np.zeros((rows, columns + _TAIL_WORDS), dtype="<u4")
    words[:, :known] = np.ascontiguousarray(statistics, dtype="<f4").view("<u4")
    if fingerprints is not None:
        words[:, known:columns] = fingerprints.astype("<u8").reshape(-1, 1).view("<u4")
    words[:, columns] = offsets[:-1]
    words[:, columns + 1] = np.diff(offsets)
    checked = words[:, :-1].tobytes()
    size = WORD * (columns + _TAIL_WORDS - 1)
    places = zip(range(0, len(checked), size), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    words[:, -1] = [
        row_check(_content_check(checked[at : at + size], packed[start:stop]), head_check, row)
        for row, (at, start, stop) in enumerate(places)
    ]
    return words.tobytes() + packed


def read_row(read: ReadAt, table: Table, row: int) -> Row | None:
    """One row of the frame whose body is `table`; None if it is damaged."""
    length, columns = table.row_size, WORD * len(table.statistics)
    if (row + 1) * length > table.size:
        return None
    words = read(table.offset + row * length, length)
    if len(words) < length:
        return None
    start, size, check = _TAIL.unpack_from(words, columns)
    histogram = table.rows * length + start
    if histogram + size > table.size or size > PACKED_BYTES:
        return None
    packed = read(table.offset + histogram, size)
    if row_check(_content_check(words[:-WORD], packed), table.head_check, row) != check:
        return None
    statistics, fingerprint = _known_columns(words[:columns], table.statistics)
    return Row(statistics, packed, fingerprint)


def read_rows(read: ReadAt, table: Table) -> list[Row | None]:
    """Every row of a frame; None for damaged rows.

    Raises:
        DamageError: The body is too small for its rows, or for their histograms side by side.
    """
    if table.rows * table.row_size > table.size:
        raise DamageError
    if table.size > BODY_AT_ONCE:
        rows = [read_row(read, table, row) for row in range(table.rows)]
    else:
        rows = _rows_of(read(table.offset, table.size), table)
    if sum(len(row.packed) for row in rows if row) > table.size - table.rows * table.row_size:
        raise DamageError
    return rows


def _rows_of(body: bytes, table: Table) -> list[Row | None]:
    """Every row of a frame's body, as `read_row` reads one; None for all that a body that is cut off lacks."""
    length, columns = table.row_size, WORD * len(table.statistics)
    there = min(len(body) // length, table.rows)
    words = np.frombuffer(body[: there * length], dtype="<u4").reshape(there, length // WORD)
    tails, first, known = words[:, -_TAIL_WORDS:], table.rows * length, table.statistics
    rows: list[Row | None] = []
    for row, (start, size, check) in enumerate(tails.tolist()):
        at, begin = row * length, first + start
        packed = body[begin : begin + size]
        is_within = begin + size <= table.size and size <= PACKED_BYTES
        content = body[at : at + length - WORD]
        if is_within and row_check(_content_check(content, packed), table.head_check, row) == check:
            statistics, fingerprint = _known_columns(body[at : at + columns], known)
            rows.append(Row(statistics, packed, fingerprint))
        else:
            rows.append(None)
    return rows + [None] * (table.rows - there)


class Checked(NamedTuple):
    """The table of a frame.

    Attributes:
        words: Its words as float32, `[rows, words]`.
        sound: Which of the rows are sound, `[rows]`.
    """

    words: npt.NDArray[np.float32]
    sound: npt.NDArray[np.bool_]


def read_table(read: ReadAt, table: Table) -> Checked | None:
    """The table of a frame, without what the histograms hold, though they are part of the checks.

    None if the body is too small for its rows.
    """
    size = table.rows * table.row_size
    if size > table.size:
        return None
    is_small = table.size <= BODY_AT_ONCE
    body = read(table.offset, table.size if is_small else size)
    if len(body) < size:
        return None
    words = np.frombuffer(body, dtype="<f4", count=size // WORD).reshape(table.rows, table.row_size // WORD)
    if is_small:
        return Checked(words, _sound(body, table))
    return Checked(words, np.array([read_row(read, table, row) is not None for row in range(table.rows)], np.bool_))


def _sound(body: bytes, table: Table) -> npt.NDArray[np.bool_]:
    in_c = check_in_c(body, rows=table.rows, row_size=table.row_size, longest=PACKED_BYTES, head_check=table.head_check)
    return sound_in_python(body, table) if in_c is None else in_c


def sound_in_python(body: bytes, table: Table) -> npt.NDArray[np.bool_]:
    """Which rows have the right check, as Python finds out: where `body.c` was not built, and as the reference."""
    return np.array([row is not None for row in _rows_of(body, table)], np.bool_)


class Decoded(NamedTuple):
    """Rows that were read.

    Attributes:
        sound: Which of them are sound.
        statistics: `[rows, STATISTICS]`; NaN for a damaged row.
        histograms: One per row; without elements for a damaged row.
        fingerprints: `[rows]`; 0 for a damaged row, and for one without a fingerprint.
    """

    sound: list[bool]
    statistics: npt.NDArray[np.float32]
    histograms: Histograms
    fingerprints: npt.NDArray[np.uint64]


def decode_rows(rows: Sequence[Row | None]) -> Decoded:
    """The contents of `rows`. One with a correct check but an invalid histogram is damaged, too."""
    try:
        histograms = _unpacked(rows)
    except DamageError:
        rows = [row if row and _has_histogram(row) else None for row in rows]
        histograms = _unpacked(rows)
    statistics = np.frombuffer(b"".join((row or _DAMAGED).statistics for row in rows), dtype="<f4")
    return Decoded(
        [row is not None for row in rows],
        statistics.reshape(len(rows), len(STATISTICS)).astype(np.float32),
        histograms,
        np.array([row.fingerprint if row else 0 for row in rows], np.uint64),
    )


def _unpacked(rows: Sequence[Row | None]) -> Histograms:
    packed = [row.packed if row else b"" for row in rows]
    offsets = np.zeros(len(packed) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in packed], out=offsets[1:])
    return unpack(b"".join(packed), offsets)


def _has_histogram(row: Row) -> bool:
    try:
        _unpacked([row])
    except DamageError:
        return False
    return True


def _known_columns(stored: bytes, names: tuple[str, ...]) -> tuple[bytes, int]:
    """`stored`, with columns `names`, as the columns `STATISTICS`, and the fingerprint.

    NaN for statistics that the writer did not have, and 0 for a fingerprint.
    """
    if names == COLUMNS:
        return stored[:_STATISTICS_BYTES], int.from_bytes(stored[_STATISTICS_BYTES:], "little")
    if names == STATISTICS:
        return stored, 0
    by_name = {name: stored[WORD * at : WORD * (at + 1)] for at, name in enumerate(names)}
    halves = b"".join(by_name.get(name, bytes(WORD)) for name in FINGERPRINT)
    return b"".join(by_name.get(name, _NAN) for name in STATISTICS), int.from_bytes(halves, "little")


def _content_check(words: bytes, packed: bytes) -> int:
    return crc32(packed, crc32(words))


_NAN = np.array(np.nan, dtype="<f4").tobytes()
_DAMAGED = Row(_NAN * len(STATISTICS), b"", 0)
