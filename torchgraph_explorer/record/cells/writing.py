"""Collects the cells of the steps that are written, and gives them in blocks."""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.cells.encoding import STEPS, encode_block
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, CellTable, Ints, Statistics
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.schema import STATISTICS, Frame, Series

AT_ONCE = 8
"""Steps whose cells are computed together: for few modules that takes less than half of the time."""


class CellWriter:
    """The cells of one session that are not written yet: those of fewer than `STEPS` steps."""

    def __init__(self, mark: int) -> None:
        """Begin with no step; each record will have the session's `mark`."""
        self._mark = mark
        self._series: dict[int, Series] = {}
        self._table: CellTable | None = None
        self._ids: Ints = np.zeros(0, np.int64)
        self._steps: list[int] = []
        self._times: list[float] = []
        self._cells: list[Codes] = []
        self._waiting: list[Statistics] = []

    def define(self, series: tuple[Series, ...]) -> None:
        """Note new series. Their ids are larger than those of earlier ones."""
        self._compute()
        self._series |= {one.id: one for one in series}
        self._table = None

    def add(self, frame: Frame) -> bytes:
        """Add the cells of a step that was written; the blocks that are due, in their envelopes."""
        is_back = bool(self._steps) and frame.step <= self._steps[-1]
        due = self.flush() if is_back else b""
        self._waiting.append(self._of_all_series(frame))
        self._steps.append(frame.step)
        self._times.append(frame.time)
        if len(self._waiting) >= AT_ONCE:
            self._compute()
        return due + (self.flush() if len(self._steps) >= STEPS else b"")

    def flush(self) -> bytes:
        """The block of what was added, in its envelope; nothing if there is nothing."""
        if not self._steps:
            return b""
        self._compute()
        table = self._tabulated()
        cells = np.zeros((self._cells[0].shape[0], len(self._steps), len(table.modules)), dtype=np.uint16)
        at = 0
        for some in self._cells:
            cells[:, at : at + some.shape[1], : some.shape[2]] = some  # modules are only ever added
            at += some.shape[1]
        written = table.written
        names = [STATISTIC_NAMES[at] for at in written]
        head, body = encode_block(self._steps, self._times, cells[written], modules=table.modules, statistics=names)
        self._steps, self._times, self._cells = [], [], []
        return enveloped(pb.Head(session=self._mark, cells=head).SerializeToString(), body)

    def _compute(self) -> None:
        """Turn what waits into cells: before there are new series, and before a block is written."""
        if self._waiting:
            self._cells.append(self._tabulated().cells(np.stack(self._waiting).transpose(2, 0, 1)))
            self._waiting = []

    def _of_all_series(self, frame: Frame) -> Statistics:
        """The statistics of the frame, `[series, STATISTICS]`, with NaN where it has none of a series."""
        self._tabulated()
        given = np.take(frame.statistics, frame.rows, axis=0)
        if np.array_equal(frame.series, self._ids):
            return given
        statistics = np.full((len(self._ids), len(STATISTICS)), np.nan, dtype=np.float32)
        statistics[np.searchsorted(self._ids, frame.series)] = given
        return statistics

    def _tabulated(self) -> CellTable:
        if self._table is None:
            self._series = dict(sorted(self._series.items()))
            self._ids = np.fromiter(self._series, np.int64)
            self._table = CellTable(list(self._series.values()))
        return self._table
