"""How often the rules name what is wrong in programs with a known fault, and how often they warn of healthy ones."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch

from benchmarks.baselines import Plain, deepchecker, sagemaker
from benchmarks.programs.program import STEPS, Program, Setup, train
from benchmarks.programs.script import Script, run_script
from benchmarks.tables import Options, Table
from torchgraph_explorer.findings.engine import find
from torchgraph_explorer.findings.finding import Finding
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.run import Model, open_run

SEEDS, FULL_SEEDS = (0,), (0, 1, 2)
EVERY = (1, 50)
PROCESSES = 2
HALVES = {
    "the thresholds were chosen on": ("chosen", "earlier", "further"),
    "were only measured": ("measured",),
    "are in other people's styles, and were only measured": ("fresh",),
}
"""The modules of `benchmarks.programs` with the programs of each half."""

ON_TIME = 25
"""Steps after its beginning at which a fault has to be dated, and as many before; beyond that, `log_freq`."""

Findings: TypeAlias = "tuple[Finding, ...]"


class Way(NamedTuple):
    """Who looked at a training, at which of its steps."""

    name: str
    every: int


OURS = tuple(Way(name, every) for name in ("rules", "rules, without watcher.log") for every in EVERY)
BASELINES = {Way("SageMaker Debugger", 1): sagemaker, Way("TheDeepChecker", 1): deepchecker}
WAYS = (*OURS, *BASELINES)


class Job(NamedTuple):
    """A program of a module of `benchmarks.programs`, by its number, with one seed."""

    module: str
    number: int
    seed: int


@dataclass(frozen=True, slots=True)
class Result:
    """What was told of a program with one seed, at warnings and errors alone.

    Attributes:
        program: The program.
        every: The steps between those that were looked at.
        told: Of the broken one; empty if it is always healthy.
        mended: Of the mended or healthy one.
    """

    program: Program | Script
    every: int
    told: Findings
    mended: Findings

    @property
    def right(self) -> Findings:
        """Those of a right kind."""
        return tuple(one for one in self.told if one.kind in self.program.kinds)

    @property
    def is_right(self) -> bool:
        """A right kind was told, and not of the mended twin as well."""
        return bool(self.right) and not any(one.kind in self.program.kinds for one in self.mended)

    @property
    def is_first(self) -> bool:
        """The first finding of the list has a right kind."""
        return self.is_right and self.told[0].kind in self.program.kinds

    @property
    def is_in_place(self) -> bool:
        """A finding of a right kind names the right module."""
        wanted = self.program.modules
        return self.is_right and (not wanted or any(one.module in wanted for one in self.right))

    @property
    def is_on_time(self) -> bool:
        """A finding of a right kind is dated near the step at which the fault begins."""
        near = ON_TIME + self.every
        return self.is_right and any(abs(one.step - self.program.since) <= near for one in self.right)


def tables(options: Options) -> Iterator[Table]:
    """A table of each half, and one of what went wrong."""
    seeds = FULL_SEEDS if options.full else SEEDS
    for title, modules in HALVES.items():
        yield from measured(title, modules, seeds)


def measured(title: str, modules: Sequence[str], seeds: Sequence[int]) -> Iterator[Table]:
    """The tables of one half."""
    programs = {name: programs_of(name) for name in modules}
    jobs = [Job(name, at, seed) for name, of in programs.items() for at in range(len(of)) for seed in seeds]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, initializer=_prepare) as pool:
        found = [*pool.map(findings_of_job, jobs)]
    results = {
        way: [
            Result(programs[job.module][job.number], way.every, *told[way])
            for job, told in zip(jobs, found, strict=True)
        ]
        for way in WAYS
    }
    every = [one for of in programs.values() for one in of]
    faulty = [one for one in every if one.kinds]
    yield Table(
        f"Programs that {title}",
        ["who", "log_freq", "right kind", "first", "right place", "on time", "false, mended", "false, healthy"],
        [[way.name, str(way.every), *summary(some)] for way, some in results.items()],
        f"{len(faulty)} faulty programs with their mended twins and {len(every) - len(faulty)} others, "
        f"{len(seeds)} seeds each, {STEPS} steps.",
    )
    yield Table(
        f"What the rules missed or falsely told, of the programs that {title}",
        ["program", "who", "log_freq", "wanted", "told", "of the twin"],
        [row for way in OURS for row in misses(way, results[way])],
    )


def programs_of(module: str) -> tuple[Program | Script, ...]:
    """The faulty and healthy programs of a module."""
    half = import_module(f"benchmarks.programs.{module}")
    return (*half.FAULTY, *half.HEALTHY)


def _prepare() -> None:
    os.nice(5)
    torch.set_num_threads(1)


def findings_of_job(job: Job) -> dict[Way, tuple[Findings, Findings]]:
    """What each way tells of the broken program and of the mended one."""
    program = programs_of(job.module)[job.number]
    told = findings_of(program, job.seed, broken=True) if program.kinds else dict.fromkeys(WAYS, ())
    mended = findings_of(program, job.seed, broken=False)
    return {way: (told[way], mended[way]) for way in WAYS}


class Unlogged(Model):
    """A model as if nothing had been logged."""

    def scalars(self) -> Mapping[str, Scalar]:
        """None."""
        return {}


def findings_of(program: Program | Script, seed: int, *, broken: bool) -> dict[Way, Findings]:
    """The warnings and errors of one training in each way; without baselines of a script."""
    plain: list[Plain] = []

    def observe(setup: Setup) -> Plain:
        plain.append(Plain(setup))
        return plain[0]

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(program, Script):
            run_script(program, Path(folder), broken=broken, seed=seed)
        else:
            train(program, Path(folder), broken=broken, seed=seed, observe=observe)
        run = open_run(folder)
        models = {"rules": run.model(), "rules, without watcher.log": run._model(Unlogged, None)}
        told = {way: _severe(models[way.name], way.every) for way in OURS}
    return {**told, **{way: say(plain[0].seen if plain else []) for way, say in BASELINES.items()}}


def _severe(model: Model, every: int) -> Findings:
    frames = [at for at, step in enumerate(model.steps.tolist()) if step % every == 0]
    return tuple(one for one in find(model, frames=frames) if one.is_at_least("warning"))


def summary(results: Sequence[Result]) -> list[str]:
    """The cells of a row."""
    faulty = [one for one in results if one.program.kinds]
    healthy = [one for one in results if not one.program.kinds]
    counted = [
        (faulty, "is_right"),
        (faulty, "is_first"),
        (faulty, "is_in_place"),
        (faulty, "is_on_time"),
        (faulty, "mended"),
        (healthy, "mended"),
    ]
    return [share(sum(bool(getattr(one, name)) for one in some), len(some)) for some, name in counted]


def share(count: int, whole: int) -> str:
    """A count and its share."""
    return f"{count} of {whole} ({count / whole:.0%})"


def misses(way: Way, results: Sequence[Result]) -> Iterator[list[str]]:
    """A row for each program that was not told rightly, at the right place, or falsely warned of."""
    for one in results:
        if one.mended or (one.program.kinds and not (one.is_first and one.is_in_place)):
            wanted = " or ".join(one.program.kinds) or "nothing"
            yield [one.program.name, way.name, str(way.every), wanted, _named(one.told), _named(one.mended)]


def _named(findings: Findings) -> str:
    return ", ".join(dict.fromkeys(f"{one.kind} ({one.module})" for one in findings)) or "–"
