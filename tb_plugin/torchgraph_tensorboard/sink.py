"""`watch(backend="tensorboard")`: the marker that tells TensorBoard of a run and of our tab.

The run itself is written into its folder by another sink: TensorBoard's event files are slow to write, and TensorBoard
reads only a sample of them.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from time import monotonic
from typing import Any

from torchgraph_explorer.errors import OptionError, RecordError
from torchgraph_explorer.record.folder import plugin_folder, segment_files
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.schema import Record, Session
from torchgraph_explorer.sinks import Sink, SinkContext
from torchgraph_tensorboard.metadata import marker_summary

EVENT_FILE = "events.out.tfevents.0000000000.torchgraph"
"""Sorts before every other event file of a run.

TensorBoard's slow loader reads the files of a folder in the order of their names and never returns to an earlier one,
so it would miss what a training adds there. Our file is complete from the beginning, so it comes first.
"""


CHECK_SECONDS = 10.0
"""How often a missing marker is written again: the folder may have been deleted, or the disk may have been full."""


class TensorBoardSink:
    """Writes the marker of a run, and again if it is deleted."""

    def __init__(self, context: SinkContext) -> None:
        self._run_dir, self._writer = context.run_dir, context.writer
        self._fault: Exception | None = None
        self._is_marked = False
        self._next_check = monotonic() + CHECK_SECONDS
        self.introduction = f"for TensorBoard: tensorboard --logdir {context.logdir}"

    def write(self, record: Record) -> None:
        """Write the marker when the session begins."""
        if not isinstance(record, Session):
            self.when_idle()
        elif self._writer is None:
            self._mark()
        else:
            mark_with(self._writer)
            self._is_marked = True

    def when_idle(self) -> None:
        """Write the marker if it is missing."""
        # A store charges for each request, so a marker there is not checked again.
        if monotonic() < self._next_check or (self._is_marked and is_url(self._run_dir)):
            return
        self._next_check = monotonic() + CHECK_SECONDS
        if _has_record(self._run_dir):
            self._mark()

    def close(self) -> None:
        """Raise the last fault if the marker could not be written."""
        if not self._is_marked and _has_record(self._run_dir):
            self._mark()
            if self._fault is not None:
                raise self._fault

    def _mark(self) -> None:
        try:
            mark_folder(self._run_dir)
        except Exception as fault:  # each store has its own
            self._fault = fault
        else:
            self._fault, self._is_marked = None, True


def _has_record(run_dir: str) -> bool:
    """Whether there is a record to mark. The record's own sink reports a folder that cannot be written to."""
    try:
        return is_url(run_dir) or bool(segment_files(plugin_folder(Path(run_dir))))
    except RecordError:
        return False


def open_sink(context: SinkContext) -> Sink:
    """The sink for `context`, whose `writer`, if any, is a `torch.utils.tensorboard.SummaryWriter`.

    Raises:
        ImportError: TensorBoard is not installed.
        OptionError: The writer is not a SummaryWriter.
    """
    import tensorboard.compat.proto.summary_pb2  # noqa: F401  # now, so that the user sees the error

    if context.writer is not None and not callable(getattr(context.writer, "_get_file_writer", None)):
        raise OptionError(
            f"writer={context.writer!r} is not a SummaryWriter. Pass a torch.utils.tensorboard.SummaryWriter, or leave "
            f"writer= out: the run is then listed beside the writer's in TensorBoard."
        )
    return TensorBoardSink(context)


def mark_with(writer: Any) -> None:
    """Write the marker into the event file of a `SummaryWriter`."""
    # The public methods write only the summaries of their own plugins.
    files = writer._get_file_writer()
    files.add_summary(marker_summary(), global_step=0)
    files.flush()


def mark_folder(run_dir: str) -> None:
    """Write the marker into an event file of its own, unless the run has an event file: then its folder is found."""
    if is_url(run_dir):
        _mark_url(run_dir)
        return
    folder = Path(run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    if not any("tfevents" in file.name for file in folder.iterdir()):
        (folder / EVENT_FILE).write_bytes(event_file())


def _mark_url(run_dir: str) -> None:
    from fsspec.core import url_to_fs

    files, root = url_to_fs(run_dir)
    files.makedirs(root, exist_ok=True)
    if not any("tfevents" in path.rpartition("/")[2] for path in files.ls(root, detail=False)):
        files.pipe_file(f"{root.rstrip('/')}/{EVENT_FILE}", event_file())


def event_file() -> bytes:
    """A complete event file that contains the marker."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    now, file = time.time(), io.BytesIO()
    records = RecordWriter(file)
    for event in (Event(wall_time=now, file_version="brain.Event:2"), Event(wall_time=now, summary=marker_summary())):
        records.write(event.SerializeToString())
    return file.getvalue()
