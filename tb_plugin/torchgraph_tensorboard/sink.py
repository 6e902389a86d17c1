"""`watch(backend="tensorboard")`: the marker that makes a run and our tab known to TensorBoard.

The run itself is written into its folder, by another sink: TensorBoard's event files are slow to write, and it reads
only a sample of what is in them.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.record.remote import is_url
from torchgraph_explorer.records import Record, Session
from torchgraph_explorer.sinks import Sink, SinkContext
from torchgraph_tensorboard.metadata import marker_summary

EVENT_FILE = "events.out.tfevents.0000000000.torchgraph"
"""Sorts before every other event file of a run.

TensorBoard's own loader, where its fast one does not run, goes through the files of a folder in the order of their
names and never back: what a training adds to an earlier file is not seen any more. Ours is complete from the beginning.
"""


class TensorBoardSink:
    """Says once that there is a run."""

    def __init__(self, context: SinkContext) -> None:
        self._run_dir, self._writer = context.run_dir, context.writer
        self.introduction = f"for TensorBoard: tensorboard --logdir {context.logdir}"

    def write(self, record: Record) -> None:
        """Leave the marker when the session begins."""
        if not isinstance(record, Session):
            return
        if self._writer is not None:
            mark_with(self._writer)
        else:
            mark_folder(self._run_dir)

    def close(self) -> None:
        """Nothing is open."""


def open_sink(context: SinkContext) -> Sink:
    """The sink for `context`, whose `writer`, if any, is a `torch.utils.tensorboard.SummaryWriter`.

    Raises:
        ImportError: TensorBoard is not installed.
        OptionError: The writer is none.
    """
    import tensorboard.compat.proto.summary_pb2  # noqa: F401  # now, where the user can be told

    if context.writer is not None and not callable(getattr(context.writer, "_get_file_writer", None)):
        raise OptionError(
            f"writer={context.writer!r} is no SummaryWriter. Pass a torch.utils.tensorboard.SummaryWriter, or leave it "
            f"out: the run then stands beside the writer's in TensorBoard."
        )
    return TensorBoardSink(context)


def mark_with(writer: Any) -> None:
    """Put the marker into the event file of a `SummaryWriter`."""
    # Public methods write their own plugins' summaries only.
    files = writer._get_file_writer()
    files.add_summary(marker_summary(), global_step=0)
    files.flush()


def mark_folder(run_dir: str) -> None:
    """Put the marker into an event file of its own; a run that has one is left alone, and found by its folder."""
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
    """A whole event file that holds the marker."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    now, file = time.time(), io.BytesIO()
    records = RecordWriter(file)
    for event in (Event(wall_time=now, file_version="brain.Event:2"), Event(wall_time=now, summary=marker_summary())):
        records.write(event.SerializeToString())
    return file.getvalue()
