"""The histories in a page, read from the record frame by frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import STATISTICS

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Histories:
    """What was recorded of many series at the same frames. Series that share their numbers have one history.

    Attributes:
        history: Which history each series has, `[series]`.
        present: The history has something at the frame, `[histories, frames]`.
        statistics: `[histories, frames, len(STATISTICS)]` float32; 0 where nothing is present.
        columns: The (history, bucket) pairs that are not empty at every frame, ascending, `[columns, 2]`.
        counts: Elements of each pair at each frame, `[columns, frames]` uint32.
    """

    history: Ints
    present: npt.NDArray[np.bool_]
    statistics: npt.NDArray[np.float32]
    columns: Ints
    counts: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _FrameRows:
    """The rows of one frame, and the row of each series, -1 for none."""

    row: Ints
    statistics: npt.NDArray[np.float32]
    histograms: Histograms


def read_histories(model: ModelRecord, frames: Sequence[int], series: Sequence[int]) -> Histories:
    """The histories of `series` at `frames`, without damaged frames and rows."""
    read = [_rows(model, frame, np.asarray(series, dtype=np.int64)) for frame in frames]
    rows = np.stack([one.row for one in read], axis=-1) if read else np.zeros((len(series), 0), dtype=np.int64)
    rows, history = np.unique(rows, axis=0, return_inverse=True)
    present = rows >= 0
    statistics = np.zeros((*rows.shape, len(STATISTICS)), dtype=np.float32)
    for at, one in enumerate(read):
        statistics[present[:, at], at] = one.statistics[rows[present[:, at], at]]
    columns, counts = _columns([_entries(one.histograms, rows[:, at]) for at, one in enumerate(read)], len(frames))
    return Histories(history.reshape(-1), present, statistics, columns, counts)


def _rows(model: ModelRecord, number: int, series: Ints) -> _FrameRows:
    row_of = np.full(len(model.series), -1, dtype=np.int64)
    try:
        frame = model.frame(number)
    except RecordError:  # the page shows the record's warnings about it
        none = Histograms(np.zeros(1, np.uint32), np.zeros(0, np.int16), np.zeros(0, np.uint32))
        return _FrameRows(row_of[series], np.zeros((0, len(STATISTICS)), np.float32), none)
    row_of[frame.series] = frame.rows
    return _FrameRows(row_of[series], frame.statistics, frame.histograms)


def _entries(histograms: Histograms, rows: Ints) -> tuple[Ints, Ints, npt.NDArray[np.uint32]]:
    """History, bucket and count of each entry in the histograms of `rows`; the history is the index in `rows`."""
    histories = np.flatnonzero(rows >= 0)
    found = histograms.of(rows[histories])
    return np.repeat(histories, np.diff(found.offsets)), found.buckets.astype(np.int64), found.counts


def _columns(
    entries: Sequence[tuple[Ints, Ints, npt.NDArray[np.uint32]]], frames: int
) -> tuple[Ints, npt.NDArray[np.uint32]]:
    """The entries of all frames as a table: one line for each (history, bucket), one column for each frame."""
    keys = [(history << 16) + bucket for history, bucket, _ in entries]
    known = np.unique(np.concatenate(keys)) if keys else np.zeros(0, dtype=np.int64)
    counts = np.zeros((len(known), frames), dtype=np.uint32)
    for at, (key, (_, _, count)) in enumerate(zip(keys, entries, strict=True)):
        counts[np.searchsorted(known, key), at] = count
    history = (known + (1 << 15)) >> 16  # buckets below zero borrow from it
    return np.stack((history, known - (history << 16)), axis=-1), counts
