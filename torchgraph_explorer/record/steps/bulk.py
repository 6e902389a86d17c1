"""Reads the statistics and fingerprints of all series at many frames at once, without their histograms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.moments import COLUMN, NON_FINITE
from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.model_index import UNKNOWN, ModelIndex
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.ranks.steps import by_segment
from torchgraph_explorer.record.steps.body import FINGERPRINT, WORD, Table, read_row
from torchgraph_explorer.record.steps.layout import FrameLayout
from torchgraph_explorer.record.steps.reading import read_frame
from torchgraph_explorer.schema import STATISTICS

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]

_CHECKED_FIRST = 64
"""Odd rows of a frame whose check is computed. If one of them is damaged, all rows of the frame are checked."""

_USUAL = 1e18
"""Magnitudes beyond this are odd."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the statistics are in frames of one layout.

    Attributes:
        layout: As written.
        known: Which of `STATISTICS` there are.
        stored: The column of each of those.
        fingerprint: The columns of the fingerprint's halves; empty if there are none.
        series: The reader's ids, without unknown ones.
        rows: The row of each.
    """

    layout: FrameLayout
    known: list[int]
    stored: list[int]
    fingerprint: list[int]
    series: Ints
    rows: Ints


@dataclass(frozen=True, slots=True)
class BulkRows:
    """The rows of every series at some frames.

    Attributes:
        statistics: `[STATISTICS, frames, series]`; NaN where a frame lacks a series or has it damaged.
        fingerprints: `[frames, series]`, as in `Frame`; 0 where there is none.
    """

    statistics: Floats
    fingerprints: npt.NDArray[np.uint64]

    def at(self, frame: int | npt.NDArray[np.intp]) -> BulkRows:
        """The rows of some of the frames."""
        return BulkRows(self.statistics[:, frame], self.fingerprints[frame])


def read_bulk(model: ModelIndex, numbers: Ints, notices: Notices) -> BulkRows:
    """The rows of every series at the frames `numbers`.

    A row's check is computed only where its numbers are odd, since checking every row would take longer than reading
    it; frames of several ranks are read and merged one by one.

    Raises:
        RecordError: A file is gone.
    """
    shape = len(numbers), len(model.series)
    found = BulkRows(np.full((len(STATISTICS), *shape), np.nan, dtype=np.float32), np.zeros(shape, dtype=np.uint64))
    frames = model.frames.frames[numbers]
    is_merged = frames["ranks"] > 1
    for at in np.flatnonzero(is_merged).tolist():
        _read_merged(model, int(numbers[at]), notices, found=found.at(at))
    alone = np.flatnonzero(~is_merged)
    _, shares = model.frames.by_rank(frames[alone])
    columns = {layout: _columns(model, layout) for layout in set(shares["layout"].tolist())}
    for segment, places in groupby(by_segment(shares), key=lambda place: int(shares["segment"][place])):
        with reading(model.frames.segment(segment)) as read:
            for place in places:
                known = columns[int(shares["layout"][place])]
                if known is not None:
                    _read_alone(read, shares[place], known, found=found.at(alone[place]))
    return found


def _columns(model: ModelIndex, number: int) -> _Columns | None:
    layout = model.frames.layout(number)
    if layout is None:
        return None
    series = model.session_of(number).reader_ids(layout.series).astype(np.int64)
    is_known = (series != UNKNOWN) & (series < len(model.series))
    known = [at for at, name in enumerate(STATISTICS) if name in layout.statistics]
    stored = [layout.statistics.index(STATISTICS[at]) for at in known]
    fingerprint = [layout.statistics.index(name) for name in FINGERPRINT if name in layout.statistics]
    if len(fingerprint) < len(FINGERPRINT):
        fingerprint = []
    return _Columns(layout, known, stored, fingerprint, series[is_known], layout.rows[is_known].astype(np.int64))


def _read_merged(model: ModelIndex, number: int, notices: Notices, *, found: BulkRows) -> None:
    try:
        frame = read_frame(model, number, notices)
    except RecordError as refusal:
        notices.add(str(refusal))
        return
    found.statistics[:, frame.series] = frame.statistics[frame.rows].T
    if frame.fingerprints is not None:
        found.fingerprints[frame.series] = frame.fingerprints[frame.rows]


def _read_alone(read: ReadAt, facts: np.void, columns: _Columns, *, found: BulkRows) -> None:
    layout = columns.layout
    table = Table(int(facts["body"]), int(facts["body_size"]), layout.row_count, layout.statistics)
    size = table.rows * table.row_size
    words = read(table.offset, size) if size <= table.size else b""
    if not size or len(words) < size:
        return
    stored = np.frombuffer(words, dtype="<f4").reshape(table.rows, table.row_size // WORD)
    rows = np.full((table.rows, len(STATISTICS)), np.nan, dtype=np.float32)
    rows[:, columns.known] = stored[:, columns.stored]
    damaged = _damaged(read, table, rows)
    rows[damaged] = np.nan
    found.statistics[:, columns.series] = rows[columns.rows].T
    if columns.fingerprint:
        low, high = (stored[:, at].view("<u4").astype(np.uint64) for at in columns.fingerprint)
        fingerprints = low | high << np.uint64(32)
        fingerprints[damaged] = 0
        found.fingerprints[columns.series] = fingerprints[columns.rows]


def _damaged(read: ReadAt, table: Table, rows: Floats) -> list[int]:
    """The rows that are odd and turn out to be damaged; all that are damaged, if one of the first odd ones is."""
    odd = np.flatnonzero(_is_odd(rows))[:_CHECKED_FIRST].tolist()
    if all(read_row(read, table, row) is not None for row in odd):
        return []
    return [row for row in range(table.rows) if read_row(read, table, row) is None]


def _is_odd(rows: Floats) -> npt.NDArray[np.bool_]:
    """Which of `rows` hold what finite tensors of usual magnitude cannot have."""
    count, sampled, zeros = (rows[:, COLUMN[name]] for name in ("count", "sampled", "zeros"))
    ends = rows[:, [COLUMN["min"], COLUMN["max"]]]
    is_plausible = (zeros >= 0) & (zeros <= sampled) & (sampled <= count) & (rows[:, NON_FINITE] == 0).all(axis=1)
    is_plausible &= (np.abs(ends) < _USUAL).all(axis=1) & (ends[:, 0] <= ends[:, 1])
    odd: npt.NDArray[np.bool_] = ~is_plausible
    return odd
