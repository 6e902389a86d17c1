"""Which statistics a cell can have, and how they follow from the statistics of a module's series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.moments import COLUMN, NON_FINITE
from torchgraph_explorer.record.cells.codes import Codes, Flags, Floats, encode
from torchgraph_explorer.record.nonfinite import Traits, are_nonfinite, traits
from torchgraph_explorer.schema import COSTS, Kind, Role, Series

Ints: TypeAlias = npt.NDArray[np.int64]
Statistics: TypeAlias = npt.NDArray[np.float32]
Column: TypeAlias = "Callable[[str], Floats]"
Total: TypeAlias = "Callable[[Floats], Floats]"


@dataclass(frozen=True, slots=True)
class CellStatistic:
    """A statistic of a module at a step.

    Attributes:
        name: As in a record, an address and on the command line.
        label: What people read.
        role: Of the module's series that it is of; None for all of them.
        kind: Of those series; None for all.
        of: Computes it. `column` gives a column of `STATISTICS` of the series, 0 where they have none, and `total` adds
            numbers of a module's series up.
        is_share: It lies between 0 and 1, and is not drawn logarithmically.
    """

    name: str
    label: str
    role: Role | None
    kind: Kind | None
    of: Callable[[Column, Total], Floats]
    is_share: bool = False


def _mean(name: str) -> Callable[[Column, Total], Floats]:
    """The mean of a statistic over the sampled elements."""
    return lambda column, total: total(column("sampled") * column(name)) / total(column("sampled"))


def _root_mean_square(name: str) -> Callable[[Column, Total], Floats]:
    return lambda column, total: np.sqrt(total(column("sampled") * column(name) ** 2) / total(column("sampled")))


def _norm(column: Column, total: Total) -> Floats:
    """The l2 norm of all tensors together; NaN without elements."""
    return np.sqrt(total(column("l2_norm") ** 2)) * (total(column("sampled")) / total(column("sampled")))


def _sum(column: Column, total: Total) -> Floats:
    """The sum of single numbers; NaN without any."""
    return total(column("mean")) * (total(column("sampled")) / total(column("sampled")))


def _zeros(column: Column, total: Total) -> Floats:
    return total(column("zeros")) / total(column("sampled"))


def _nonfinite(column: Column, total: Total) -> Floats:
    return total(column("bad")) / total(column("count"))


CELL_STATISTICS = (
    CellStatistic("output_gradient", "Gradient of outputs", "output", "grad_norm", _mean("mean")),
    CellStatistic("parameter_gradient", "Gradient of parameters", "param", "grad", _norm),
    CellStatistic("output_std", "Output std", "output", "value", _root_mean_square("std")),
    CellStatistic("output_magnitude", "Output absolute mean", "output", "value", _mean("absolute_mean")),
    CellStatistic("zeros", "Output share of zeros", "output", "value", _zeros, is_share=True),
    CellStatistic("update_ratio", "Update ratio", "param", "update_ratio", _mean("mean")),
    CellStatistic("parameter_norm", "Parameter norm", "param", "value", _norm),
    CellStatistic("time", "Time of forward, in seconds", "output", "time", _sum),
    CellStatistic("memory", "Memory of outputs, in bytes", "output", "memory", _sum),
    CellStatistic("nonfinite", "NaN and infinite", None, None, _nonfinite, is_share=True),
)
"""Every statistic.

- `output_gradient`: mean, over the samples, of the l2 norm of the gradient of a module's outputs.
- `parameter_gradient`, `parameter_norm`: l2 norm of the gradients, and of the values, of its own parameters together.
- `output_std`: standard deviation of its outputs, the root mean square over them if there are several.
- `output_magnitude`: mean magnitude of its outputs. `zeros`: share of zeros in them.
- `update_ratio`: size of its parameters' update divided by their own, the mean over them.
- `time`: seconds from the beginning of its calls to their end. `memory`: bytes of their outputs. Sums over its calls.
- `nonfinite`: share of NaN and infinite elements in all of its tensors. What masks something does not count.
"""

STATISTIC_NAMES = tuple(one.name for one in CELL_STATISTICS)

TENSOR_STATISTICS = tuple(one for one in CELL_STATISTICS if one.kind not in COSTS)
"""Those of tensors: not what calls cost. W&B's chart has these, by number."""


class _Group:
    """The series that some statistics are of, module by module.

    Attributes:
        series: Their positions.
        starts: Where each module's begin in `series`.
        modules: The numbers of these modules.
    """

    def __init__(self, series: Sequence[Series], of_series: Ints, *, role: Role | None, kind: Kind | None) -> None:
        """Those of `series`, whose modules are `of_series`, that have this `role` and `kind`; None stands for all."""
        wanted = [
            at
            for at, each in enumerate(series)
            if (role is None or each.role == role) and (kind is None or each.kind == kind)
        ]
        found = np.array(wanted, dtype=np.int64)
        self.series = found[np.argsort(of_series[found], kind="stable")]
        modules = of_series[self.series]
        self.starts = np.flatnonzero(np.diff(modules, prepend=-1))
        self.modules = modules[self.starts]

    def total(self, of_series: Floats) -> Floats:
        """Numbers of the group's series `[steps, series]`, added up module by module."""
        found: Floats = np.add.reduceat(of_series, self.starts, axis=1)
        return found


class CellTable:
    """Computes the cells of steps from the statistics of all series.

    Attributes:
        modules: Names of the modules, in the order of their first series: the rows of cells.
    """

    def __init__(self, series: Sequence[Series]) -> None:
        """`series` are all series, by id from 0."""
        numbers: dict[str, int] = {}
        of_series = np.array([numbers.setdefault(one.module, len(numbers)) for one in series], dtype=np.int64)
        self.modules = tuple(numbers)
        self._traits: Traits = traits(series)
        self._of_series = of_series
        asked = dict.fromkeys((one.role, one.kind) for one in CELL_STATISTICS)
        self._groups = {(role, kind): _Group(series, of_series, role=role, kind=kind) for role, kind in asked}

    @property
    def written(self) -> list[int]:
        """Indices of the statistics that are written: not those of what calls cost, where that is not recorded."""
        return [
            at
            for at, one in enumerate(CELL_STATISTICS)
            if one.kind not in COSTS or len(self._groups[one.role, one.kind].series)
        ]

    def cells(self, statistics: Statistics) -> Codes:
        """The codes of steps whose series have these `statistics`, `[STATISTICS, steps, series]`.

        Returns:
            `[CELL_STATISTICS, steps, modules]`.
        """
        with np.errstate(all="ignore"):  # a record may hold any bits
            return self._cells(statistics)

    def _cells(self, statistics: Statistics) -> Codes:
        counts = np.add.reduce([_numbers(statistics[column]) for column in NON_FINITE])
        is_bad = np.zeros((statistics.shape[1], len(self.modules)), dtype=np.bool_)
        bad = np.zeros(counts.shape)
        if counts.any():
            unwanted = self._unwanted(statistics, counts)
            at, series = np.nonzero(unwanted)
            is_bad[at, self._of_series[series]] = True
            bad = np.nan_to_num(np.where(unwanted, counts, 0.0))  # a record may hold counts beyond all numbers
        values = np.full((len(CELL_STATISTICS), *is_bad.shape), np.nan)
        columns = {of: _columns(statistics, bad, group) for of, group in self._groups.items()}
        for value, one in zip(values, CELL_STATISTICS, strict=True):
            group = self._groups[one.role, one.kind]
            if len(group.series):
                value[:, group.modules] = one.of(columns[one.role, one.kind], group.total)
        return encode(values, is_bad)

    def _unwanted(self, statistics: Statistics, counts: Floats) -> Flags:
        """Where series have NaN or infinity that should not be there, `[steps, series]`."""
        found = np.zeros(counts.shape, dtype=np.bool_)
        every = np.arange(counts.shape[1])
        for step in np.flatnonzero((counts > 0).any(axis=1)).tolist():  # hardly ever any
            there = every[~np.isnan(statistics[COLUMN["count"], step])]
            found[step, there] = are_nonfinite(there, statistics[:, step, there].T, self._traits)
        return found


def _columns(statistics: Statistics, bad: Floats, group: _Group) -> Column:
    """What gives a column of the group's series, `[steps, series]`: several statistics are of the same ones."""

    @cache
    def column(name: str) -> Floats:
        return bad[:, group.series] if name == "bad" else _numbers(statistics[COLUMN[name]][:, group.series])

    return column


def _numbers(statistics: Statistics) -> Floats:
    """0 for NaN, and the largest number for an infinite one."""
    numbers = statistics.astype(np.float64)
    return numbers if np.isfinite(numbers).all() else np.nan_to_num(numbers, copy=False, nan=0.0)
