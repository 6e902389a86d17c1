"""The output of the benchmarks: Markdown tables of medians with their spread."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeAlias

import numpy as np


@dataclass(frozen=True, slots=True)
class Spread:
    """A quantity that was measured several times: its median and quartiles, in one unit."""

    median: float
    low: float
    high: float

    def __truediv__(self, divisor: float) -> Spread:
        """The same in another unit."""
        return Spread(self.median / divisor, self.low / divisor, self.high / divisor)

    def __str__(self) -> str:
        if self.low == self.high:
            return number(self.median)
        return f"{number(self.median)} ({number(self.low)}–{number(self.high)})"


Cell: TypeAlias = "str | int | float | Spread"


@dataclass(frozen=True, slots=True)
class Table:
    """A result.

    Attributes:
        title: What was measured.
        columns: Heads, with units; the first one is that of the rows' names.
        rows: Cells of each row.
        note: What a reader has to know, in sentences.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line.

    Attributes:
        full: Measure at the sizes that docs/performance.md reports, which takes long.
    """

    full: bool = False


Part: TypeAlias = Callable[[Options], Iterable[Table]]
"""A benchmark: measures, and yields each table when it is ready."""


def spread(values: Iterable[float]) -> Spread:
    """The median of `values`, and the quartiles around it."""
    low, median, high = np.quantile(np.fromiter(values, np.float64), [0.25, 0.5, 0.75]).tolist()
    return Spread(median, low, high)


def number(value: float) -> str:
    """A number with three digits, and commas between thousands."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = max(0, 2 - int(np.floor(np.log10(abs(value)))))
    return f"{round(value, digits):,.{digits}f}"


def markdown(table: Table) -> str:
    """The table as in docs/performance.md."""
    rows = [[_text(cell) for cell in row] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(table.columns, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = ["| " + " | ".join(_aligned(row, widths)) + " |" for row in (table.columns, rule, *rows)]
    return "\n".join([f"**{table.title}**", "", *lines, *(["", table.note] if table.note else [])])


def machine(packages: Sequence[str] = ("torch", "numpy")) -> str:
    """Date, machine and versions, in one line."""
    versions = [f"{name} {_version(name)}" for name in ("torchgraph-explorer", *packages)]
    python = f"Python {platform.python_version()}"
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    return ", ".join([str(date.today()), f"{os.cpu_count()} × {_processor()}", system, python, *versions])


def run(parts: Iterable[Part], options: Options) -> None:
    """Print the machine, and the tables of each of `parts` as soon as they are ready."""
    print(machine(), flush=True)
    for part in parts:
        for table in part(options):
            print(f"\n{markdown(table)}", flush=True)


def main(part: Part, description: str | None) -> None:
    """The command line of a single benchmark."""
    parser = argparse.ArgumentParser(description=description)
    add_full(parser)
    run([part], Options(full=parser.parse_args().full))


def add_full(parser: argparse.ArgumentParser) -> None:
    """The option that all benchmarks have."""
    parser.add_argument("--full", action="store_true", help="the sizes of docs/performance.md, which take long")


def _text(cell: Cell) -> str:
    return number(cell) if isinstance(cell, int | float) else str(cell)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *others = zip(row, widths, strict=True)
    return [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _processor() -> str:
    """The processor's name, if the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
