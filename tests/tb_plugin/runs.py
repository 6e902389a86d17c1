"""Runs for TensorBoard, without training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from tests.record.examples import GRAPH, SERIES, frame, write
from torchgraph_explorer.schema import Session
from torchgraph_explorer.sinks import SinkContext
from torchgraph_tensorboard.sink import open_sink


def context(folder: Path | str, writer: SummaryWriter | None = None) -> SinkContext:
    """What `watch` tells the sink of a run in `folder`."""
    logdir, _, run = str(folder).rpartition("/")
    return SinkContext(str(folder), logdir, run, "net", writer=writer)


def mark(folder: Path | str, session: Session, writer: SummaryWriter | None = None) -> None:
    """What the sink does in a session, beside the record."""
    sink = open_sink(context(folder, writer))
    sink.write(session)
    sink.close()


def record(folder: Path | str, steps: Iterable[int]) -> None:
    """A run of the small model of `tests.record`, with a graph and four series."""
    write(folder, GRAPH, SERIES, *map(frame, steps))


def add_scalars(folder: Path, steps: Iterable[int]) -> None:
    """A scalar `loss`, as a training writes it that knows nothing of us."""
    with SummaryWriter(str(folder)) as writer:
        for step in steps:
            writer.add_scalar("loss", 1 / (step + 1), step)
