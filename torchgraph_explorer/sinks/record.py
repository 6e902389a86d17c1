"""The sink that keeps a session on disk, or at a URL."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import STATISTICS, Frame, Record, Series

PartOf: TypeAlias = Callable[[Series, int], "int | None"]
"""Which part of its tensor so many elements of a series are; see `Series.part`."""


class RecordSink:
    """Writes the records of one session into a run folder, local or an fsspec URL.

    It does not fail with the folder: what cannot be written waits in memory and is tried again.
    """

    def __init__(self, run_dir: str | os.PathLike[str]) -> None:
        self._writer = RecordWriter(run_dir)

    def write(self, record: Record) -> None:
        """Append `record` to the run."""
        self._writer.write(record)

    def when_idle(self) -> None:
        """Write what waits, if it is time to."""
        self._writer.put_if_due()

    def close(self) -> None:
        """Write what still waits, and close the file."""
        self._writer.close()


class RankSink(RecordSink):
    """As `RecordSink`, for one of several ranks. It says of each series which part of the tensor is this rank's."""

    def __init__(self, run_dir: str | os.PathLike[str], part_of: PartOf) -> None:
        super().__init__(run_dir)
        self._part_of = part_of
        self._new: tuple[Series, ...] = ()

    def write(self, record: Record) -> None:
        """Append `record`; new series when the frame is there for which they were added, which has their counts."""
        if isinstance(record, tuple):
            self._new += record
            return
        if isinstance(record, Frame) and self._new:
            rows = dict(zip(record.series.tolist(), record.rows.tolist(), strict=True))
            counts = record.statistics[:, STATISTICS.index("count")].tolist()
            new, self._new = self._new, ()
            super().write(tuple(replace(one, part=self._part_of(one, counts[rows[one.id]])) for one in new))
        super().write(record)
