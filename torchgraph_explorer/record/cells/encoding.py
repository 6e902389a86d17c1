"""A block of cells on disk: those of up to 64 steps, and their maximum, by statistic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.folder import ReadAt
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.limits import CELL_MODULES, CELL_STEPS, COLUMNS, LAST_STEP

STEPS = 64
"""Steps of a block that is written."""

_CODE = np.dtype("<u2")


class Place(NamedTuple):
    """Where the cells of one statistic are in a block's body.

    Attributes:
        offset: In the body.
        steps: How many.
        check: crc32 of the bytes.
    """

    offset: int
    steps: int
    check: int


def encode_block(
    steps: Sequence[int], times: Sequence[float], cells: Codes, *, modules: Sequence[str], statistics: Sequence[str]
) -> tuple[pb.Cells, bytes]:
    """Head and body of a block with the cells `[statistics, steps, modules]`."""
    parts = [cells.max(axis=1), cells]
    pieces = [part[statistic].astype(_CODE).tobytes() for part in parts for statistic in range(len(cells))]
    head = pb.Cells(
        steps=np.diff(np.array(steps, dtype=np.int64), prepend=0).tolist(),
        times_check=times_check(times),
        modules=len(modules),
        modules_check=modules_check(modules),
        statistics=statistics,
        checks=[crc32(piece) for piece in pieces],
    )
    return head, b"".join(pieces)


def times_check(times: Sequence[float] | npt.NDArray[np.float64]) -> int:
    """Tells whether a frame is the one that a block was written after, or one that was written later."""
    return crc32(np.asarray(times, dtype="<f8").tobytes())


def modules_check(modules: Sequence[str]) -> int:
    """Tells whether the rows of a block are these modules."""
    return crc32("\0".join(modules).encode("utf-8", errors="surrogatepass"))


def steps_of(head: pb.Cells, body_size: int) -> npt.NDArray[np.int64]:
    """The steps of a block, ascending.

    Raises:
        DamageError: It contradicts itself or exceeds a bound.
    """
    count, statistics = len(head.steps), len(head.statistics)
    if not 0 < count <= CELL_STEPS or head.modules > CELL_MODULES or not 0 < statistics <= COLUMNS:
        raise DamageError(f"it has cells of {count} steps, {head.modules} modules and {statistics} statistics")
    if len(head.checks) != 2 * statistics or body_size != statistics * (count + 1) * head.modules * _CODE.itemsize:
        raise DamageError(f"its body has {body_size} bytes")
    if sum(head.steps) > LAST_STEP or min(head.steps[1:], default=1) < 1:
        raise DamageError("its steps do not ascend")
    return np.cumsum(np.array(head.steps, dtype=np.int64))


def place(head: pb.Cells, statistic: str, *, merged: bool) -> Place | None:
    """Where the cells of `statistic` are, those of all steps or their maximum; None if the block has none."""
    names = list(head.statistics)
    if statistic not in names:
        return None
    number, row = names.index(statistic), head.modules * _CODE.itemsize
    if merged:
        return Place(number * row, 1, head.checks[number])
    count = len(head.steps)
    return Place((len(names) + number * count) * row, count, head.checks[len(names) + number])


def read_codes(read: ReadAt, found: Place, *, body: int, modules: int) -> Codes | None:
    """The codes at a place, `[steps, modules]`; None if they are damaged."""
    data = read(body + found.offset, found.steps * modules * _CODE.itemsize)
    if crc32(data) != found.check or len(data) != found.steps * modules * _CODE.itemsize:
        return None
    return np.frombuffer(data, dtype=_CODE).astype(np.uint16).reshape(found.steps, modules)
