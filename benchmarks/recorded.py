"""Recorded trainings of `benchmarks.programs`, which are kept as long as the code that records them is the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch

from benchmarks.baselines import Plain, Seen, deepchecker, sagemaker
from benchmarks.programs.program import STEPS, Program, Setup, train
from benchmarks.programs.script import Script, run_script
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.report import from_plain, plain

ROOT = Path(__file__).parents[1]
MEASURES = ("schema", "capture", "reduce")
"""Folders of the package that decide what is measured. Others carry it on, and the rules only read it."""

BASELINES: Mapping[str, Callable[[list[Seen]], tuple[Finding, ...]]] = {
    "SageMaker Debugger": sagemaker,
    "TheDeepChecker": deepchecker,
}
TOLD = "baselines.json"
"""What the baselines said, beside the run."""

AnyProgram: TypeAlias = "Program | Script"


class Job(NamedTuple):
    """One training: a program of a module of `benchmarks.programs`, by its number, with one seed and `log_freq`."""

    module: str
    number: int
    seed: int
    broken: bool
    log_freq: int = 1


def cache_folder() -> Path:
    """Where recordings are kept, some 2 MB each."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torchgraph-explorer", "findings")


def programs_of(module: str) -> tuple[AnyProgram, ...]:
    """The faulty and healthy programs of a module."""
    half = import_module(f"benchmarks.programs.{module}")
    return (*half.FAULTY, *half.HEALTHY)


def recorded(job: Job) -> Path:
    """The folder of the job's recording, which is made if there is none of the present code."""
    program = programs_of(job.module)[job.number]
    kept = cache_folder() / job.module / folder_name(program, job)
    folder = kept / version_of(job.module)
    if not folder.exists():
        kept.mkdir(parents=True, exist_ok=True)
        for older in kept.iterdir():
            shutil.rmtree(older, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
            record(program, Path(scratch, "run"), job=job)
            with suppress(OSError):  # another process has recorded it meanwhile
                Path(scratch, "run").rename(folder)
    return folder


def folder_name(program: AnyProgram, job: Job) -> str:
    """The name of the job's folder, which says what it is."""
    title = re.sub(r"[^a-z0-9]+", "-", program.name.lower())
    every = f"-{job.log_freq}" if job.log_freq != 1 else ""
    return f"{title}-{job.seed}-{'broken' if job.broken else 'mended'}{every}"


def record(program: AnyProgram, folder: Path, *, job: Job) -> None:
    """Train and record, and note what the baselines say: of a `Program` whose every step is recorded."""
    looked: list[Plain] = []

    def observe(setup: Setup) -> Plain:
        looked.append(Plain(setup))
        return looked[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(program, Script):
            run_script(program, folder, broken=job.broken, seed=job.seed, log_freq=job.log_freq)
        else:
            observed = observe if job.log_freq == 1 else None
            train(program, folder, broken=job.broken, seed=job.seed, log_freq=job.log_freq, observe=observed)
    seen = looked[0].seen if looked else []
    (folder / TOLD).write_text(json.dumps({name: plain(say(seen)) for name, say in BASELINES.items()}))


def baseline(folder: Path, name: str) -> tuple[Finding, ...]:
    """What a baseline said of a recorded training."""
    return from_plain(json.loads((folder / TOLD).read_text())[name])


@cache
def version_of(module: str) -> str:
    """Changes with whatever a recording of the module's programs depends on."""
    digest = sha256(f"{torch.__version__} {STEPS}".encode())
    for file in sorted(_sources(module)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _sources(module: str) -> Iterator[Path]:
    package = ROOT / "torchgraph_explorer"
    for folder in MEASURES:
        yield from (one for one in (package / folder).rglob("*.*") if one.suffix in {".py", ".c"})
    yield ROOT / "benchmarks" / "baselines.py"
    yield from _programs([module])


def _programs(modules: Sequence[str]) -> set[Path]:
    """The files of some modules of programs, and of those that they import."""
    found: set[Path] = set()
    waiting = list(modules)
    while waiting:
        file = ROOT / "benchmarks" / "programs" / f"{waiting.pop()}.py"
        if file not in found:
            found.add(file)
            waiting += re.findall(r"^from benchmarks\.programs\.(\w+) import", file.read_text(), re.MULTILINE)
    return found
