"""Comparing two runs: the processor time until the first divergence is known, and until everything is.

Run it with `python -m benchmarks.compare`; `--full` compares longer and wider runs, too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.tables import Cell, Options, Spread, Table, main, spread
from tests.record.examples import SESSION
from tests.record.long_runs import POOL, frames, graph_of
from torchgraph_explorer.comparison.models import Comparison
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Model, compare, open_run
from torchgraph_explorer.schema import Extent, Series

TIMES = 3
ELEMENTS = 16_384


def tables(options: Options) -> Iterator[Table]:
    """The processor time that a comparison takes."""
    sizes = ((1_000, 500), (10_000, 500), (1_000, 5_000)) if options.full else ((1_000, 500),)
    yield Table(
        title="Comparing two runs, seconds of processor time",
        columns=("", "opening both", "equal: everything", "different: first divergence", "everything"),
        rows=[compared(steps, series) for steps, series in sizes],
        note="Everything is the first divergence, series, structure, scalars and settings, without findings. The "
        "second run differs in all series from half of the steps on.",
    )


def compared(steps: int, series: int) -> list[Cell]:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        one, same, other = (Path(folder, name) for name in ("one", "same", "other"))
        for path, parts_at in ((one, steps), (same, steps), (other, steps // 2)):
            write_run(path, steps, series, parts_at=parts_at)
        opening = seconds_of(lambda: (open_run(one), open_run(other)))
        a, b, c = (open_run(path).model() for path in (one, same, other))
        equal = seconds_of(lambda: everything(compare(a, b)))
        first = seconds_of(lambda: compare(a, c).first_divergence)
        return [
            f"{steps:,} steps × {series:,} series",
            opening,
            equal,
            first,
            seconds_of(lambda: everything(compare(a, c))),
        ]


def everything(found: Comparison) -> None:
    """Ask for all that is not asked for by others."""
    assert found.series
    assert found.structure.is_same
    _ = found.first_divergence, found.first_beyond_rounding, found.scalars, found.settings


def write_run(path: Path, steps: int, series: int, *, parts_at: int) -> Model:
    """A run whose tensors are other ones from step `parts_at` on."""
    writer = RecordWriter(path)
    writer.write(replace(SESSION, log_freq="1", clock=None))
    writer.write(graph_of(series))
    writer.write(tuple(Series(at, f"layer{at}", 0, "output", "output", "value") for at in range(series)))
    pool, ids = frames(series, ELEMENTS), np.arange(series, dtype=np.uint64)
    for step in range(steps):
        is_other = step >= parts_at
        frame = pool[min(step * POOL // steps + is_other, POOL - 1)]
        fingerprints = (ids + np.uint64(step * series + is_other)) << np.uint64(2) | np.uint64(Extent.ALL)
        writer.write(replace(frame, step=step, fingerprints=fingerprints))
    writer.close()
    return open_run(path).model()


def seconds_of(act: Callable[[], object]) -> Spread:
    """The processor time that `act` takes."""
    taken = []
    for _ in range(TIMES):
        begun = time.process_time()
        act()
        taken.append(time.process_time() - begun)
    return spread(taken)


if __name__ == "__main__":
    main(tables, __doc__)
