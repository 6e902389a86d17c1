"""Which series a frame holds, and where: the part of a frame that seldom changes.

It is in every frame all the same, so that each can be read alone; compressed it is a hundred bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.framing import DamageError, inflated
from torchgraph_explorer.records import STATISTICS

_LARGEST = 1 << 28
"""Bytes that a layout may have, not compressed."""


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """Where the numbers of a frame's series are.

    Attributes:
        series: Series ids of the session, `[n]` uint32.
        rows: Row of each of them, `[n]` uint32.
        row_count: Rows in the frame's body.
        statistics: Names of the columns.
    """

    series: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]
    row_count: int
    statistics: tuple[str, ...]


def encode_layout(series: npt.NDArray[np.uint32], rows: npt.NDArray[np.uint32], row_count: int) -> bytes:
    """The bytes of a frame's layout, with the columns `STATISTICS`."""
    message = pb.Layout(series=_differences(series), row=_differences(rows), rows=row_count, statistics=STATISTICS)
    return zlib.compress(message.SerializeToString())


def decode_layout(data: bytes) -> FrameLayout:
    """The layout that `encode_layout` made `data` of.

    Raises:
        DamageError: `data` is not a layout, or one that contradicts itself.
    """
    try:
        message = pb.Layout.FromString(inflated(data, _LARGEST))
    except DecodeError as error:
        raise DamageError from error
    series, rows = np.cumsum(message.series, dtype=np.int64), np.cumsum(message.row, dtype=np.int64)
    if len(series) != len(rows) or not (_is_within(series, 1 << 32) and _is_within(rows, message.rows)):
        raise DamageError
    return FrameLayout(series.astype(np.uint32), rows.astype(np.uint32), message.rows, tuple(message.statistics))


def _differences(numbers: npt.NDArray[np.uint32]) -> list[int]:
    differences: list[int] = np.diff(numbers.astype(np.int64), prepend=0).tolist()
    return differences


def _is_within(numbers: npt.NDArray[np.int64], stop: int) -> bool:
    return bool(((numbers >= 0) & (numbers < stop)).all())
