"""How often the rules name what is wrong in programs with a known fault, and how often they warn of healthy ones."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch

from benchmarks.programs.program import STEPS
from benchmarks.recorded import BASELINES, AnyProgram, Job, baseline, programs_of, recorded
from benchmarks.tables import Options, Table
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.engine import find
from torchgraph_explorer.record.scalars.index import LoggedSoFar, Scalar
from torchgraph_explorer.run import Model, open_run

SEEDS, FULL_SEEDS = (0,), (0, 1, 2)
EVERY = (1, 50)
PROCESSES = 2
HALVES = {
    "the thresholds were chosen on": ("chosen", "earlier", "further"),
    "were only measured": ("measured",),
    "are in other people's styles": ("fresh",),
    "were written for other kinds of networks": ("unseen",),
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
WAYS = (*OURS, *(Way(name, 1) for name in BASELINES))


@dataclass(frozen=True, slots=True)
class Result:
    """What was told of a program with one seed, at warnings and errors alone.

    Attributes:
        program: The program.
        every: Its `log_freq`.
        told: Of the broken one; empty if it is always healthy.
        mended: Of the mended or healthy one.
    """

    program: AnyProgram
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
    twins = [
        (
            Job(name, at, seed, broken=True, log_freq=every) if one.kinds else None,
            Job(name, at, seed, broken=False, log_freq=every),
        )
        for every in EVERY
        for name, of in programs.items()
        for at, one in enumerate(of)
        for seed in seeds
    ]
    told = judged([job for pair in twins for job in pair if job])
    results = {
        way: [
            Result(programs[twin.module][twin.number], way.every, told[job][way] if job else (), told[twin][way])
            for job, twin in twins
            if twin.log_freq == way.every
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


def judged(jobs: Sequence[Job]) -> dict[Job, dict[Way, Findings]]:
    """What each way tells of each training. What is not recorded yet is trained, which takes most of the time."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, context, initializer=_prepare) as pool:
        return dict(zip(jobs, pool.map(findings_of, jobs), strict=True))


def _prepare() -> None:
    os.nice(5)
    torch.set_num_threads(1)


class Unlogged(Model):
    """A model as if nothing had been logged."""

    @property
    def logged(self) -> LoggedSoFar:
        """Nothing, with a label or without."""
        return LoggedSoFar(epoch=0, blocks=0, every=(), notes=())

    def scalars_elsewhere(self) -> Mapping[str, Scalar]:
        """None."""
        return {}


def findings_of(job: Job) -> dict[Way, Findings]:
    """The warnings and errors of one training in each way; without baselines of a script."""
    folder = recorded(job)
    run = open_run(folder)
    models = {"rules": run.model(), "rules, without watcher.log": run._model(Unlogged, None)}
    told = {way: _severe(models[way.name]) for way in OURS if way.every == job.log_freq}
    return {**told, **{way: baseline(folder, way.name) for way in WAYS[len(OURS) :] if way.every == job.log_freq}}


def _severe(model: Model) -> Findings:
    return tuple(one for one in find(model) if one.is_at_least("warning"))


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
