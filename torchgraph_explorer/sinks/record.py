"""The sink that keeps a session on disk, or at a URL."""

from __future__ import annotations

import os

from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.records import Record


class RecordSink:
    """Writes the records of one session into a run folder, local or an fsspec URL."""

    def __init__(self, run_dir: str | os.PathLike[str]) -> None:
        self._writer = RecordWriter(run_dir)

    def write(self, record: Record) -> None:
        """Append `record` to the run."""
        self._writer.write(record)

    def close(self) -> None:
        """Write what still waits, and close the file."""
        self._writer.close()
