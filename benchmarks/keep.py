"""Tensors kept whole: the time of a step that keeps them, and the bytes they take.

Run it with `python -m benchmarks.keep`; `--full` measures more steps of more models.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch

from benchmarks.models import SUBJECTS, Subject
from benchmarks.tables import Cell, Options, Table, main, spread
from torchgraph_explorer import Keep, open_run, watch
from torchgraph_explorer.run import Model

UNMEASURED = 3
"""Steps at the beginning, which are traced or begin something."""

FEW = ("narrow", 8), ("narrow", None)
ALL = (*FEW, ("digits", 8), ("small_modules", 8))
"""Models, and how many samples are kept; None for all."""


def tables(options: Options) -> Iterator[Table]:
    """Steps that keep every output, input and parameter, beside steps that are logged only."""
    subjects, steps = (ALL, 30) if options.full else (FEW, 12)
    yield Table(
        title="A step that keeps the outputs, inputs and parameters of all modules",
        columns=(
            "",
            "samples",
            "logged, ms",
            "kept, ms",
            "kept / logged",
            "goal",
            "wall time, kept / logged",
            "kept, MB a step",
            "bytes an element",
        ),
        rows=[measured(name, samples, steps) for name, samples in subjects],
        note=f"Processor time of the training's thread with {torch.get_num_threads()} threads of torch, median and "
        f"quartiles of {steps} steps, and the ratio of the sums of their wall times. Logged and kept steps take turns, "
        "on two equal models. The goal is the logged step and one copy of the elements that are kept. Each tensor "
        "counts as often as it has a series, and statistics of neurons take bytes too.",
    )


def measured(name: str, samples: int | None, steps: int) -> list[Cell]:
    """A row of the table."""
    keep = Keep("*", "*:input", samples=samples, megabytes=1e5)
    subjects = {"logged": SUBJECTS[name](), "kept": SUBJECTS[name]()}
    seconds: dict[str, list[tuple[float, float]]] = {kind: [] for kind in subjects}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as watches:
        where = {"backend": "record", "logdir": folder, "log_freq": 1, "verbose": False}
        for kind, subject in subjects.items():
            kept = keep if kind == "kept" else None
            watches.enter_context(watch(subject.model, run=kind, keep=kept, **where))  # type: ignore[arg-type]
        optimizers = {kind: torch.optim.SGD(one.model.parameters(), lr=1e-4) for kind, one in subjects.items()}
        for number in range(steps + UNMEASURED):
            for kind in sorted(subjects, reverse=bool(number % 2)):
                seconds[kind].append(timed(subjects[kind], optimizers[kind]))
        watches.close()
        model = open_run(Path(folder, "kept")).model()
        elements, copying = contents(model)
        size = model.kept.bytes / len(model.kept.steps)
    (logged, of_logged), (taken, of_kept) = (np.array(seconds[kind][UNMEASURED:]).T for kind in ("logged", "kept"))
    goal = (np.median(logged) + copying) / np.median(logged)
    times = [spread(each) / 1e-3 for each in (logged, taken)]
    title = subjects["kept"].name
    return [
        title,
        samples or "all",
        *times,
        spread(taken / logged),
        float(goal),
        of_kept.sum() / of_logged.sum(),
        size / 1e6,
        size / elements,
    ]


def timed(subject: Subject, optimizer: torch.optim.Optimizer) -> tuple[float, float]:
    """Seconds of a step: of this thread's processor time, and that pass."""
    start, began = time.thread_time(), time.perf_counter()
    optimizer.zero_grad()
    subject.backward(subject.model)
    optimizer.step()
    return time.thread_time() - start, time.perf_counter() - began


def contents(model: Model) -> tuple[int, float]:
    """The elements that were kept at the last step, and the seconds that copying them once takes."""
    step = int(model.kept.steps[-1])
    arrays = [model.tensor(series, step).values for series in model.kept.series]
    targets = [np.empty_like(array) for array in arrays]
    seconds = []
    for _ in range(5):
        start = time.thread_time()
        for source, target in zip(arrays, targets, strict=True):
            np.copyto(target, source)
        seconds.append(time.thread_time() - start)
    return sum(array.size for array in arrays), float(np.median(seconds))


if __name__ == "__main__":
    main(tables, __doc__)
