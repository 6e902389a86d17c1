"""Reads the statistics and fingerprints of all series at many frames at once, without their histograms."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.model_index import UNKNOWN, ModelIndex
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.ranks.steps import by_segment
from torchgraph_explorer.record.steps.body import FINGERPRINT, read_table
from torchgraph_explorer.record.steps.layout import FrameLayout
from torchgraph_explorer.record.steps.reading import damaged_in_part, note_unknown_layouts, read_frame
from torchgraph_explorer.schema import STATISTICS

Floats: TypeAlias = npt.NDArray[np.float32]
Ints: TypeAlias = npt.NDArray[np.int64]


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

    Every row's check is computed, and damage noted. Frames of several ranks are read and merged one by one.

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
    note_unknown_layouts(model, shares, notices)
    columns = {layout: _columns(model, layout) for layout in set(shares["layout"].tolist())}
    for segment, places in groupby(by_segment(shares), key=lambda place: int(shares["segment"][place])):
        path = model.frames.segment(segment)
        with reading(path) as read:
            for place in places:
                known = columns[int(shares["layout"][place])]
                if known is not None and not _read_alone(read, shares[place], known, found=found.at(alone[place])):
                    notices.add(damaged_in_part(path.name, int(shares["step"][place])))
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


def _read_alone(read: ReadAt, facts: np.void, columns: _Columns, *, found: BulkRows) -> bool:
    """Read a frame into `found`; False if some of it is damaged."""
    layout = columns.layout
    table = layout.table(facts)
    checked = read_table(read, table)
    if checked is None:
        return False
    stored, damaged = checked.words, ~checked.sound
    rows = np.full((table.rows, len(STATISTICS)), np.nan, dtype=np.float32)
    rows[:, columns.known] = stored[:, columns.stored]
    rows[damaged] = np.nan
    found.statistics[:, columns.series] = rows[columns.rows].T
    if columns.fingerprint:
        low, high = (stored[:, at].view("<u4").astype(np.uint64) for at in columns.fingerprint)
        fingerprints = low | high << np.uint64(32)
        fingerprints[damaged] = 0
        found.fingerprints[columns.series] = fingerprints[columns.rows]
    return not damaged.any()
