"""How often the rules name what is wrong in programs with a known fault, and how often they warn of healthy ones."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from benchmarks.programs.program import Program, train
from benchmarks.tables import Options, Table
from torchgraph_explorer.findings.engine import find
from torchgraph_explorer.findings.finding import Finding
from torchgraph_explorer.run import open_run

SEEDS = (0, 1)
EVERY = (1, 50)
HALVES = {"the thresholds were chosen on": "chosen", "were only measured": "measured"}

Findings: TypeAlias = "tuple[Finding, ...]"


@dataclass(frozen=True, slots=True)
class Result:
    """What was told of a program with one seed, at warnings and errors alone.

    Attributes:
        program: The program.
        told: Of the broken one; empty if it is always healthy.
        mended: Of the mended or healthy one.
    """

    program: Program
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


def tables(_options: Options) -> Iterator[Table]:
    """A table of each half, and one of what went wrong."""
    for title, name in HALVES.items():
        yield from measured(title, import_module(f"benchmarks.programs.{name}"))


def measured(title: str, half: object) -> Iterator[Table]:
    """The tables of one half."""
    faulty: Sequence[Program] = half.FAULTY  # type: ignore[attr-defined]
    healthy: Sequence[Program] = half.HEALTHY  # type: ignore[attr-defined]
    results = {every: [] for every in EVERY}  # type: dict[int, list[Result]]
    for program in (*faulty, *healthy):
        for seed in SEEDS:
            for every, result in zip(EVERY, results_of(program, seed), strict=True):
                results[every].append(result)
    yield Table(
        f"Programs that {title}",
        [
            "log_freq",
            "right kind",
            "first in the list",
            "right place",
            "false warning, mended",
            "false warning, healthy",
        ],
        [[str(every), *summary(some)] for every, some in results.items()],
        f"{len(faulty)} faulty programs with their mended twins and {len(healthy)} others, {len(SEEDS)} seeds each.",
    )
    rows = [row for every, some in results.items() for row in misses(every, some)]
    yield Table(
        f"What was missed or falsely told, of the programs that {title}",
        ["program", "log_freq", "wanted", "told", "of the twin"],
        rows,
    )


def results_of(program: Program, seed: int) -> list[Result]:
    """One training of the program, read at each of `EVERY`."""
    told = findings_of(program, seed, broken=True) if program.kinds else [()] * len(EVERY)
    mended = findings_of(program, seed, broken=False)
    return [Result(program, one, other) for one, other in zip(told, mended, strict=True)]


def findings_of(program: Program, seed: int, *, broken: bool, every: Iterable[int] = EVERY) -> list[Findings]:
    """The warnings and errors of one training, read at each of its frames and at every so many steps."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(program, Path(folder), broken=broken, seed=seed)
        model = open_run(folder).model()
        steps = model.steps.tolist()
        frames = [[at for at, step in enumerate(steps) if step % one == 0] for one in every]
        return [tuple(one for one in find(model, frames=some) if one.is_at_least("warning")) for some in frames]


def summary(results: Sequence[Result]) -> list[str]:
    """The cells of a row."""
    faulty = [one for one in results if one.program.kinds]
    healthy = [one for one in results if not one.program.kinds]
    counted = [
        (faulty, "is_right"),
        (faulty, "is_first"),
        (faulty, "is_in_place"),
        (faulty, "mended"),
        (healthy, "mended"),
    ]
    return [share(sum(bool(getattr(one, name)) for one in some), len(some)) for some, name in counted]


def share(count: int, whole: int) -> str:
    """A count and its share."""
    return f"{count} of {whole} ({count / whole:.0%})"


def misses(every: int, results: Sequence[Result]) -> Iterator[list[str]]:
    """A row for each program that was not told rightly, at the right place, or falsely warned of."""
    for one in results:
        if one.mended or (one.program.kinds and not (one.is_first and one.is_in_place)):
            wanted = " or ".join(one.program.kinds) or "nothing"
            yield [one.program.name, str(every), wanted, _named(one.told), _named(one.mended)]


def _named(findings: Findings) -> str:
    return ", ".join(dict.fromkeys(f"{one.kind} ({one.module})" for one in findings)) or "–"
