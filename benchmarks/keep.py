"""Tensors kept whole: the time of a step that keeps them, and the bytes they take.

Run it with `python -m benchmarks.keep`; `--full` measures more steps of more models.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.models import SUBJECTS, Subject
from benchmarks.tables import Cell, Options, Spread, Table, main, spread
from torchgraph_explorer import Keep, open_run, watch
from torchgraph_explorer.run import Model

FEW, ALL = ("narrow",), ("narrow", "deep", "resnet18", "transformer", "digits")


def tables(options: Options) -> Iterator[Table]:
    """Steps that keep every output, input and parameter, beside steps that are logged only."""
    names, steps = (ALL, 20) if options.full else (FEW, 4)
    yield Table(
        title=f"A step that keeps the outputs, inputs and parameters of all modules, {steps} steps",
        columns=(
            "",
            "samples",
            "step, ms",
            "logged, ms",
            "kept, ms",
            "copying what was kept once, ms",
            "kept, MB a step",
            "bytes an element",
        ),
        rows=[measured(SUBJECTS[name](), samples, steps) for name in names for samples in (8, None)],
        note="Each tensor counts as often as it has a series, and statistics of neurons take bytes too. Steps of the "
        "three kinds are made in turn.",
    )


def measured(subject: Subject, samples: int | None, steps: int) -> list[Cell]:
    """A row of the table."""
    optimizer = torch.optim.SGD(subject.model.parameters(), lr=1e-4)
    keep = Keep("*", "*:input", samples=samples, megabytes=1e5)
    seconds: dict[str, list[float]] = {"plain": [], "logged": [], "kept": []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(3):
            seconds["plain"] += timed(subject, optimizer, steps)
            for kind in ("logged", "kept"):
                run = f"{kind} {turn}"
                with watch(
                    subject.model,
                    log_freq=1,
                    backend="record",
                    logdir=folder,
                    run=run,
                    keep=keep if kind == "kept" else None,
                    verbose=False,
                ):
                    seconds[kind] += timed(subject, optimizer, steps)
        model = open_run(Path(folder, run)).model()
        elements, copying = contents(model)
        size = model.kept.bytes / len(model.kept.steps)
    times = [spread(each) / 1e-3 for each in seconds.values()]
    return [subject.name, samples or "all", *times, copying, size / 1e6, size / elements]


def timed(subject: Subject, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Seconds of each step but the first two, which are traced or begin something."""
    found = []
    for _ in range(steps + 2):
        start = time.perf_counter()
        optimizer.zero_grad()
        subject.backward(subject.model)
        optimizer.step()
        found.append(time.perf_counter() - start)
    return found[2:]


def contents(model: Model) -> tuple[int, Spread]:
    """The elements that were kept at the last step, and the milliseconds that copying them once takes."""
    step = int(model.kept.steps[-1])
    arrays = [model.tensor(series, step).values for series in model.kept.series]
    targets = [np.empty_like(array) for array in arrays]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        for source, target in zip(arrays, targets, strict=True):
            np.copyto(target, source)
        seconds.append(time.perf_counter() - start)
    return sum(array.size for array in arrays), spread(seconds) / 1e-3


if __name__ == "__main__":
    main(tables, __doc__)
