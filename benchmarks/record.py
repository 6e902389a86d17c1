"""The run on disk: the size of a logged step, the cost of writing it, and how fast it is read.

Run it with `python -m benchmarks.record`; `--full` reads a run of more than a gigabyte.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.models import SUBJECTS, Subject
from benchmarks.tables import Cell, Options, Spread, Table, main, spread
from tests.record.long_runs import write_long_run
from torchgraph_explorer import open_run, watch
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.body import encode_body
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Frame
from torchgraph_explorer.server.histories import Bounds, WantedHistory, history_answer
from torchgraph_explorer.server.open_runs import OpenRun, Runs

STEPS = 20

ROW_BYTES = 68
"""Bytes of a row in a frame's table: docs/format.md, Body of a frame."""

ELEMENTS = 16_384
BINS = 1024
TIMES = 5


def tables(options: Options) -> Iterator[Table]:
    """The size of what is written, and the time to read it."""
    yield sizes()
    yield readings(steps=10_000, series=500) if options.full else readings(steps=2_000, series=100)


def sizes() -> Table:
    """Bytes of real trainings, everything logged at every step."""
    return Table(
        title=f"A logged step on disk, mean of {STEPS}",
        columns=("", "series", "rows", "kB", "bytes a series", "bytes a row", "of which histogram", "write, ms"),
        rows=[written(make()) for make in SUBJECTS.values()],
        note="Series whose tensor is the same share a row. What writes is the recorder's thread, not the training's.",
    )


def written(subject: Subject) -> list[Cell]:
    """A row of `sizes`."""
    with tempfile.TemporaryDirectory() as folder:
        with watch(subject.model, backend="record", logdir=folder, run="run", log_freq=1, verbose=False):
            subject.train(STEPS)
        run = open_run(Path(folder, "run"))
        model = run.model()
        frames = [model.frame(at) for at in range(len(model))]
        size = run.bytes / len(frames)
        writer = RecordWriter(Path(folder, "again"))
        writer.write(model.session)
        seconds = spread([seconds_of(partial(writer.write, frame)) for frame in frames])
        writer.close()
    series, rows = len(model.series), len(frames[-1].statistics)
    return [subject.name, series, rows, size / 1e3, size / series, size / rows, histogram_bytes(frames), seconds / 1e-3]


def histogram_bytes(frames: Sequence[Frame]) -> float:
    """Mean bytes of a row."""
    rows = sum(len(frame.statistics) for frame in frames)
    return (
        sum(len(encode_body(frame.statistics, frame.histograms, head_check=0)) for frame in frames) / rows - ROW_BYTES
    )


def readings(*, steps: int, series: int) -> Table:
    """Seconds to open a large run and to read parts of it; the server's answers with them."""
    with tempfile.TemporaryDirectory() as logdir:
        write_long_run(Path(logdir, "run"), steps, series=series, elements=ELEMENTS)
        opening = spread([seconds_of(partial(open_run, Path(logdir, "run"))) for _ in range(TIMES)])
        runs = Runs(logdir)
        opened = runs.open("run")
        model = opened.run.model()
        rows = [
            ("open", opening),
            ("one series over all steps", over(model.history, range(TIMES))),
            ("one step of all series", over(model.frame, range(0, steps, steps // TIMES))),
            (f"serve a series in at most {BINS} bins", over(partial(bins, opened, model), range(TIMES))),
            ("the same again", over(partial(bins, opened, model), range(TIMES))),
        ]
        size = opened.run.bytes
    return Table(
        title=f"Reading {steps:,} steps × {series} series, {size / 1e9:.2f} GB",
        columns=("", "s"),
        rows=rows,
        note="From a local disk whose files are in the system's cache.",
    )


def over(read: Callable[[int], object], places: Iterable[int]) -> Spread:
    """Seconds of several readings."""
    return spread([seconds_of(partial(read, place)) for place in places])


def bins(opened: OpenRun, model: ModelRecord, series: int) -> bytes:
    """A series as the server sends it to a page, in one answer."""
    wanted = WantedHistory([series], first_frame=0, most=BINS)
    return history_answer(opened, model, wanted, bounds=Bounds(seconds=math.inf))


def seconds_of(act: Callable[[], object]) -> float:
    """How long `act` takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(tables, __doc__)
