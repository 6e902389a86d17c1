"""What is said while healthy programs train: their recordings, given to the rules step by step as they were written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.recorded import Job, programs_of, recorded
from torchgraph_explorer.findings.live import LiveModel
from torchgraph_explorer.record.scan import Scanner
from torchgraph_explorer.run import Run, open_run


class Replayed(NamedTuple):
    """A training, and the kinds of warnings and errors that were said of it while it went on."""

    program: str
    steps: int
    said: tuple[str, ...]


def healthy_jobs(module: str) -> list[Job]:
    """The mended and healthy trainings of a module of `benchmarks.programs`."""
    return [Job(module, number, 0, broken=False) for number in range(len(programs_of(module)))]


def replayed(job: Job) -> Replayed:
    """Look after each recorded step, as often as the record has grown enough, and never rest."""
    [segment] = recorded(job).rglob("*.tgraph")
    data, said = segment.read_bytes(), []
    scanner = Scanner(str(segment))
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder, "run", "plugins", "torchgraph", segment.name)
        grown.parent.mkdir(parents=True)
        run: Run | None = None
        live: LiveModel | None = None
        steps = written = 0
        with grown.open("ab", buffering=0) as file:
            while (found := scanner.next(lambda start, size: data[start : start + size], len(data))) is not None:
                file.write(data[written : scanner.position])
                written = scanner.position
                if found.head is None or not found.head.HasField("frame"):
                    continue
                steps += 1
                run = run or open_run(Path(folder, "run"))
                run.refresh()
                live = live or LiveModel(run.model(), clock=lambda: 0.0)
                said += [one.kind for one in live.look() if one.is_at_least("warning")]
    return Replayed(programs_of(job.module)[job.number].name, steps, tuple(said))
