"""Many ranks: opening, following and showing a run that as many processes wrote. Their numbers are made up.

Run it with `python -m benchmarks.ranks`; `--full` goes up to 1,024 ranks of 500 series.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.children import done
from benchmarks.large_run import graph_of, module_names
from benchmarks.tables import Cell, Options, Table, main
from tests.record.examples import SESSION, frame_record
from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.discovery import open_record
from torchgraph_explorer.record.outbox import Encoded
from torchgraph_explorer.record.steps.body import encode_body
from torchgraph_explorer.record.steps.facts import encode_facts
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import STATISTICS, Finished, Series, StepFacts

BUCKETS = 24
"""Of a histogram, as many as those of a usual tensor that are not empty."""

WRITTEN = 2_000.0
"""When the first step was written, in seconds since the epoch: so long ago that no rank is waited for."""


def tables(options: Options) -> Iterator[Table]:
    """More ranks, more steps, more series."""
    sizes = [(8, 500, 100), (64, 500, 20), (256, 20, 100)]
    if options.full:
        sizes += [(1_024, 500, 20), (1_024, 20, 1_000)]
    columns = (
        "ranks × series × steps",
        "files",
        "MB",
        "open, s",
        "MB of memory",
        "one chart, s",
        "its newest step, s",
        "a poll with nothing new, ms",
        "a poll with a step of each rank, ms",
        "open files",
    )
    rows = [[f"{ranks:,} × {series} × {steps:,}", *row(ranks, series, steps)] for ranks, series, steps in sizes]
    note = "Seconds of processor time in a process of its own. A poll is what a page that follows the run asks for."
    yield Table("A run of many ranks", columns, rows, note)


def row(ranks: int, series: int, steps: int) -> list[Cell]:
    """The cells of a run of this size."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TGX_BENCHMARK_FOLDER")) as folder:
        size = [str(each) for each in (ranks, series, steps)]
        found = json.loads(done([sys.executable, "-m", "benchmarks.ranks", folder, *size], cwd=Path(folder)))
    return [found[name] for name in ("files", "mb", "open", "memory", "chart", "newest", "idle", "poll", "open_files")]


def measured(folder: Path, size: tuple[int, int, int]) -> dict[str, float]:
    """Write a run of so many ranks, series and steps, and read it."""
    ranks, _, steps = size
    writers = [_Rank(folder / "run", rank, size) for rank in range(ranks)]
    for writer in writers:
        for step in range(steps):
            writer.step(step)
    files = [one for one in folder.rglob("*") if one.is_file()]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found, record = _seconds(lambda: open_record(folder / "run"))
    model = record.model()
    result = {"files": len(files), "mb": sum(one.stat().st_size for one in files) / 1e6, "open": found}
    chart = model.find(kind="value")[0].id
    result["chart"] = _seconds(lambda: model.history(chart))[0]
    result["newest"] = _seconds(lambda: model.history(chart, len(model) - 1))[0]
    result["idle"] = 1e3 * min(_seconds(record.refresh)[0] for _ in range(3))
    for writer in writers:
        writer.step(steps)
    result["poll"] = 1e3 * _seconds(record.refresh)[0]
    result["memory"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    for writer in writers:
        writer.close()
    result["open_files"] = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (its links are gone when they are asked)
    shutil.rmtree(folder / "run")
    return result


def _seconds(act: Callable[[], Any]) -> tuple[float, Any]:
    """Of processor time, and what it returned."""
    began = time.process_time()
    found = act()
    return time.process_time() - began, found


class _Rank:
    """Writes what one rank of a launch writes, encoded once: the numbers of all its steps are the same."""

    def __init__(self, run_dir: Path, rank: int, size: tuple[int, int, int]) -> None:
        ranks, count, self._last = size
        names = module_names(count)
        series = tuple(Series(at, name, 0, "output", "output", "value") for at, name in enumerate(names))
        self._writer = RecordWriter(run_dir)
        created = 1_000.0 + rank / ranks
        session = replace(SESSION, id=f"rank{rank:06d}", rank=rank, world_size=ranks, created=created, clock=None)
        self._writer.write(session)
        self._writer.write(graph_of(names))
        self._writer.write(series)
        self._body, self._rows = _body(count, rank), count
        ids = np.arange(count, dtype=np.uint32)
        self._head = pb.Frame(graph=0, layout=encode_layout(ids, ids, count))
        encode_facts(self._head, StepFacts("update", 1, 1, ("AdamW",)))

    def step(self, step: int) -> None:
        self._head.step, self._head.time = step, WRITTEN + step
        self._writer._outbox.add(  # type: ignore[union-attr]
            Encoded(frame_record(self._head, self._body, self._rows), step)
        )

    def close(self) -> None:
        self._writer.write(Finished(WRITTEN, ()))
        self._writer.close()


def _body(count: int, seed: int) -> bytes:
    """The rows of a frame: those of normally distributed numbers."""
    rng = np.random.default_rng(seed)
    columns = dict.fromkeys(STATISTICS, np.zeros(count))
    columns |= {"count": np.full(count, 1e3), "sampled": np.full(count, 1e3), "min": np.full(count, -3.0)}
    columns |= {"max": np.full(count, 3.0), "std": rng.random(count) + 1, "l2_norm": np.full(count, 30.0)}
    statistics = np.stack([columns[name] for name in STATISTICS], axis=1).astype(np.float32)
    offsets = (BUCKETS * np.arange(count + 1)).astype(np.uint32)
    buckets = np.tile(np.arange(480, 480 + BUCKETS, dtype=np.int16), count)
    return encode_body(statistics, Histograms(offsets, buckets, np.full(BUCKETS * count, 40, np.uint32)), head_check=0)


if __name__ == "__main__":
    if len(sys.argv) == 5:
        print(json.dumps(measured(Path(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))))
    else:
        main(tables, __doc__)
