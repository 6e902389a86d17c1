"""Logging a model to W&B: our backend, TorchExplorer's and `wandb.watch`, side by side, with every step logged.

`python -m benchmarks.wandb_logging` needs what the tests need, and the network for TorchExplorer, which gets an
environment of its own. What counts are the ratios: times depend on the machine and its other work.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.children import NotMeasured, done
from benchmarks.peers import TORCHEXPLORER, environment
from benchmarks.tables import Cell, Options, Table, main, spread
from benchmarks.wandb_ways import MODELS, WAYS
from tests.wandb_panel.conftest import run_new_training
from tests.wandb_panel.loopback import loopback

COLUMNS = (
    "",
    "step, processor time",
    "step, wall time",
    "other processes, ms a step",
    "for W&B, kB a step",
    "for W&B, files a step",
    "in the run folder, kB a step",
)


@dataclass(frozen=True)
class Size:
    """How much is measured: processes for each way, blocks of unwatched, watched, watched, unwatched, steps of each."""

    rounds: int
    blocks: int
    steps: int


@dataclass(frozen=True)
class Kept:
    """What a training left on the disk: bytes and files of the W&B run and its artifacts, and bytes of our record."""

    bytes: int
    files: int
    record: int


def tables(options: Options) -> Iterator[Table]:
    """The results."""
    size = Size(rounds=3, blocks=6, steps=10) if options.full else Size(rounds=1, blocks=3, steps=5)
    with tempfile.TemporaryDirectory() as folder:
        pythons = dict.fromkeys(WAYS, sys.executable)
        try:
            pythons["TorchExplorer"] = str(environment(TORCHEXPLORER, Path(folder) / "torchexplorer"))
        except NotMeasured as reason:
            pythons["TorchExplorer"] = ""
            print(f"TorchExplorer is not measured: {reason}", file=sys.stderr)
        for model in MODELS:
            yield compared(model, pythons, size=size)
    yield blocking()


def compared(model: str, pythons: dict[str, str], *, size: Size) -> Table:
    """All ways on one model, one after the other in each round."""
    found: dict[str, list[tuple[Any, Kept]]] = {way: [] for way in WAYS}
    reasons: dict[str, str] = {}
    for _ in range(size.rounds):
        for way, python in pythons.items():
            try:
                found[way].append(measured(way, model, python=python, size=size))
            except NotMeasured as reason:
                reasons[way] = str(reason)
    title, nothing = f"{model}: every step logged to W&B", found.pop("nothing")
    if not nothing:
        return Table(title, COLUMNS, [missing(way) for way in found], f"No W&B run: {reasons['nothing']}.")
    rows = [[way, *cells(runs, nothing)] if runs else missing(way) for way, runs in found.items()]
    unwatched = spread(1e3 * one for told, _ in nothing for one in told["unwatched"])
    note = (
        f"Ratios to the unwatched step, which takes {unwatched} ms: medians of {size.rounds * size.blocks} blocks, "
        f"quartiles in brackets. {nothing[0][0]['logged']} logged steps of an offline run. "
        "wandb.watch takes parameters and their gradients only, the others inputs and outputs too."
    )
    said = [f"{way}: not measured, {reason}." for way, reason in reasons.items() if not found.get(way)]
    return Table(title, COLUMNS, rows, " ".join([note, *said]))


def cells(runs: Sequence[tuple[Any, Kept]], nothing: Sequence[tuple[Any, Kept]]) -> list[Cell]:
    """A row of the table, without what the W&B run takes when no model is watched."""
    logged = runs[0][0]["logged"]
    others = np.median([told["beside"] for told, _ in runs]) - np.median([told["beside"] for told, _ in nothing])
    kept, bare = runs[0][1], nothing[0][1]
    return [
        spread(one for told, _ in runs for one in told["processor"]),
        spread(one for told, _ in runs for one in told["wall"]),
        float(max(0.0, 1e3 * others / logged)),
        (kept.bytes - bare.bytes) / 1e3 / logged,
        (kept.files - bare.files) / logged,
        kept.record / 1e3 / logged,
    ]


def missing(way: str) -> list[Cell]:
    """A row without numbers."""
    return [way, *["not measured"] * (len(COLUMNS) - 1)]


def measured(way: str, model: str, *, python: str, size: Size) -> tuple[Any, Kept]:
    """The results of a process of its own, and the files it left.

    Raises:
        NotMeasured: It failed.
    """
    if not python:
        raise NotMeasured("it could not be installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "benchmarks.wandb_ways", way, model, str(size.blocks), str(size.steps)]
        said = done(command, cwd=Path(folder))
        return json.loads(said.splitlines()[-1]), kept(Path(folder))


def kept(home: Path) -> Kept:
    """The files below the home of a training, without wandb's own logs."""
    places = (home / "wandb", home / "data")
    files = [file for place in places for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    sizes = [file.stat().st_size for file in files if file.suffix != ".log"]
    record = sum(file.stat().st_size for file in (home / "runs").rglob("*") if file.is_file())
    return Kept(sum(sizes), len(sizes), record)


def blocking() -> Table:
    """How long logging delays 2,000 steps, all logged online with at most 256 open files."""
    told: dict[str, list[dict[str, list[float]]]] = {"many_steps": [], "many_steps_recorded": []}
    for way in ("many_steps", "many_steps_recorded", "many_steps_recorded", "many_steps"):
        with loopback() as backend, tempfile.TemporaryDirectory() as home:
            told[way].append(run_new_training(way, backend, Path(home), before="ulimit -n 256").told)
            stored = sum("loss" in row for row in backend.only_run().history)
            uploaded = sum("/media/" in name for name in backend.files)
    logged, recorded = told.values()
    parts = {
        "the whole step, with backend='wandb'": [one["steps"] for one in logged],
        "the whole step, with backend='record'": [one["steps"] for one in recorded],
        "of it: the training thread hands over, and waits": [one["handing over"] for one in logged],
        "beside it: the recorder's thread logs to W&B": [one["writing"] for one in logged],
    }
    rows: list[list[Cell]] = [[part, *quantiles(np.concatenate(seconds))] for part, seconds in parts.items()]
    return Table(
        "2,000 steps, each logged online to a server on this machine, under ulimit -n 256",
        ("milliseconds a step", "median", "99 %", "longest"),
        rows,
        f"Two trainings each. {stored:,} rows of history arrived, and {uploaded} charts and pages.",
    )


def quantiles(seconds: npt.NDArray[np.float64]) -> list[float]:
    """Median, 99 % and longest, in milliseconds."""
    found: list[float] = (1e3 * np.quantile(seconds, [0.5, 0.99, 1])).tolist()
    return found


if __name__ == "__main__":
    main(tables, __doc__)
