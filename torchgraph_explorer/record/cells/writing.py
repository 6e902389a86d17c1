"""Collects the cells of the steps that are written, and gives them in blocks."""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.cells.encoding import STEPS, encode_block
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, CellTable
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.schema import STATISTICS, Frame, Series


class CellWriter:
    """The cells of one session that are not written yet: those of fewer than `STEPS` steps."""

    def __init__(self) -> None:
        self._series: dict[int, Series] = {}
        self._table: CellTable | None = None
        self._steps: list[int] = []
        self._times: list[float] = []
        self._cells: list[Codes] = []

    def define(self, series: tuple[Series, ...]) -> None:
        """Note new series. Their ids are larger than those of earlier ones."""
        self._series |= {one.id: one for one in series}
        self._table = None

    def add(self, frame: Frame) -> bytes:
        """Add the cells of a step that was written; the blocks that are due, in their envelopes."""
        is_back = bool(self._steps) and frame.step <= self._steps[-1]
        due = self.flush() if is_back else b""
        table = self._table = self._table or self._tabulate()
        ids = np.fromiter(self._series, np.int64)
        statistics = np.full((len(STATISTICS), 1, len(ids)), np.nan, dtype=np.float32)
        statistics[:, 0, np.searchsorted(ids, frame.series)] = frame.statistics[frame.rows].T
        self._cells.append(table.cells(statistics)[:, 0])
        self._steps.append(frame.step)
        self._times.append(frame.time)
        return due + (self.flush() if len(self._steps) >= STEPS else b"")

    def flush(self) -> bytes:
        """The block of what was added, in its envelope; nothing if there is nothing."""
        if not self._steps:
            return b""
        table = self._table or self._tabulate()
        cells = np.zeros((self._cells[0].shape[0], len(self._steps), len(table.modules)), dtype=np.uint16)
        for at, one in enumerate(self._cells):
            cells[:, at, : one.shape[1]] = one  # modules are only ever added
        written = table.written
        names = [STATISTIC_NAMES[at] for at in written]
        head, body = encode_block(self._steps, self._times, cells[written], modules=table.modules, statistics=names)
        self._steps, self._times, self._cells = [], [], []
        return enveloped(pb.Head(cells=head).SerializeToString(), body)

    def _tabulate(self) -> CellTable:
        self._series = dict(sorted(self._series.items()))
        return CellTable(list(self._series.values()))
