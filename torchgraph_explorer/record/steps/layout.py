"""Which series a frame has, and in which rows. This seldom changes.

Every frame contains it nevertheless, so that each can be read alone; compressed, it takes about a hundred bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, inflated
from torchgraph_explorer.record.limits import COLUMNS, LAYOUT_BYTES, LAYOUT_SERIES, TABLE_BYTES
from torchgraph_explorer.record.steps.body import Table, known_check, row_size
from torchgraph_explorer.schema import STATISTICS


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """Where the numbers of a frame's series are.

    Attributes:
        series: Series ids of the session, `[n]` uint32.
        rows: Row of each of them, `[n]` uint32.
        row_count: Rows in the frame's body.
        statistics: Names of the columns.
        size: Its bytes before compression.
    """

    series: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    row_count: int
    statistics: tuple[str, ...]
    size: int

    def table(self, frame: np.void) -> Table:
        """Where the rows are of a frame that has this layout, and this entry in `FrameIndex.frames`."""
        place = int(frame["body"]), int(frame["body_size"])
        return Table(*place, self.row_count, self.statistics, known_check(int(frame["head_check"])))


def encode_layout(
    series: npt.NDArray[np.uint32],
    rows: npt.NDArray[np.uint32],
    row_count: int,
    *,
    more: tuple[str, ...] = (),
) -> bytes:
    """The bytes of the layout of a frame with the columns `STATISTICS`, and `more` after them."""
    message = pb.Layout(
        series=_differences(series), row=_differences(rows), rows=row_count, statistics=(*STATISTICS, *more)
    )
    return zlib.compress(message.SerializeToString())


def decode_layout(data: bytes, room: int = LAYOUT_BYTES) -> FrameLayout:
    """The layout that `encode_layout` turned into `data`, if it has at most `room` bytes.

    Raises:
        DamageError: `data` is not a layout, contradicts itself, or exceeds a bound.
    """
    content = inflated(data, min(room, LAYOUT_BYTES))
    try:
        message = pb.Layout.FromString(content)
    except DecodeError as error:
        raise DamageError from error
    if len(message.series) > LAYOUT_SERIES or len(message.statistics) > COLUMNS:
        raise DamageError
    if len(message.series) != len(message.row):
        raise DamageError
    if message.rows * row_size(len(message.statistics)) > TABLE_BYTES:
        raise DamageError
    series, rows = np.cumsum(message.series, dtype=np.int64), np.cumsum(message.row, dtype=np.int64)
    if not (_is_within(series, 1 << 32) and _is_within(rows, message.rows)):
        raise DamageError
    if (np.diff(np.sort(series)) == 0).any():
        raise DamageError
    return FrameLayout(
        series.astype(np.uint32), rows.astype(np.uint32), message.rows, tuple(message.statistics), len(content)
    )


def _differences(numbers: npt.NDArray[np.uint32]) -> list[int]:
    differences: list[int] = np.diff(numbers.astype(np.int64), prepend=0).tolist()
    return differences


def _is_within(numbers: npt.NDArray[np.int64], stop: int) -> bool:
    return bool(((numbers >= 0) & (numbers < stop)).all())
