"""Runs the programs of this folder with and without the line that watches them, and compares: `make examples`.

`python -m examples.loops ppo dqn` runs some of them. Each must train to the same weights, to the last bit; its steps
must be the updates that the program counts; and the record must have every module that was called, and every gradient.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchgraph_explorer import list_runs, open_run
from torchgraph_explorer.run import Run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = sorted(file.stem for file in HERE.glob("*.py") if file.stem not in ("__init__", "__main__", "program"))
EVERY = 3
"""The programs' `log_freq`."""


@dataclass(frozen=True)
class Told:
    """What a program has told at its end.

    Attributes:
        weights: A digest of its model's parameters and buffers.
        updates: How many it counts.
        called: The modules of its model that were called in training; none where it is watched.
        moved: The parameters that have a gradient.
        warnings: Of this package.
    """

    weights: str
    updates: int
    called: Sequence[str]
    moved: Sequence[str]
    warnings: Sequence[str] = ()


def python(*arguments: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python with `arguments` in a process of its own."""
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def faults(name: str, run: Callable[..., subprocess.CompletedProcess[str]] = python) -> list[str]:
    """What is wrong with the program called `name` once it is watched; nothing if all is well."""
    with tempfile.TemporaryDirectory() as folder:
        plain, watched = (_told(run, name, how=how, folder=Path(folder)) for how in ("without", "with"))
        [record] = [open_run(each.path) for each in list_runs(Path(folder, "runs"))]
        return list(differences(record, plain, watched))


def differences(run: Run, plain: Told, watched: Told) -> Iterator[str]:
    """Where the training is not that of the unwatched program, and what its record lacks."""
    if watched.weights != plain.weights:
        yield "the weights are not those of the unwatched training"
    yield from watched.warnings
    yield from _missing(run, plain)


def _missing(run: Run, plain: Told) -> Iterator[str]:
    """What the record lacks of what the unwatched training did."""
    model = run.model()
    counted = model.finished.steps if model.finished is not None else None
    if counted != plain.updates:
        yield f"{counted} steps were counted, and the program made {plain.updates} updates"
    if (steps := model.steps.tolist()) != list(range(0, plain.updates, EVERY)):
        yield f"the recorded steps are {steps}"
    yield from model.notes
    yield from model.finished.notes if model.finished is not None else ()
    series = {(each.module, each.role, each.kind) for each in model.series}
    gradients = {f"{each.module}.{each.path}".strip(".") for each in model.series if each.kind == "grad"}
    yield from (f"no output of {each!r}" for each in plain.called if (each, "output", "value") not in series)
    yield from (f"no gradient of {each!r}" for each in plain.moved if each not in gradients)


def _told(run: Callable[..., subprocess.CompletedProcess[str]], name: str, *, how: str, folder: Path) -> Told:
    """What the program called `name` has told, `how` is `with` or `without` its marked lines."""
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    surroundings = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = run("-m", "examples.loops.program", name, how, cwd=folder, env=surroundings)
    if done.returncode:
        raise RuntimeError(f"{name} failed, {how} its marked lines:\n{done.stderr}")
    warnings = [line for line in done.stderr.splitlines() if "TorchgraphWarning" in line]
    return Told(**json.loads(done.stdout.splitlines()[-1]), warnings=warnings)


def main(names: list[str]) -> int:
    """Print a line for each program; returns how many have a fault."""
    faulty = 0
    for name in names or PROGRAMS:
        began = time.perf_counter()
        found = faults(name)
        faulty += bool(found)
        print(f"{name}: {'; '.join(found) or 'as unwatched, and complete'} ({time.perf_counter() - began:.0f} s)")
    return faulty


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
