"""The x-ray of a model's whole record: modules by columns of recorded steps, and the loss over the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.cells.reading import CellReader, Wanted
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, TENSOR_STATISTICS
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.server.xray import available, unit_for
from torchgraph_explorer.xray.order import execution_order

MAX_COLUMNS, LEAST_COLUMNS = 64, 8
"""Columns; each stands for one recorded step, or for several: then its cells are the largest of theirs."""

MAX_CELLS = 250_000
"""Cells of all statistics together, 2 characters each. A model of very many modules has fewer columns."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """A scalar over the columns of an x-ray.

    Attributes:
        name: As it was logged.
        low: The least finite value logged at the steps of each column, NaN without any.
        high: The largest one.
        mean: The mean of the finite ones.
        is_bad: Whether a value there was not finite.
    """

    name: str
    low: Floats
    high: Floats
    mean: Floats
    is_bad: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class XrayData:
    """The x-ray of all recorded steps.

    Attributes:
        modules: In the order of execution.
        first: The first step of each column.
        last: The last one.
        codes: `[modules, columns]` by name of the statistic, see `record/cells/codes.py`. Only recorded statistics.
        loss: The first logged scalar whose name ends in `loss`, else the first one; None without any.
    """

    modules: tuple[str, ...]
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    codes: Mapping[str, Codes]
    loss: Curve | None


def xray_data(model: ModelRecord) -> XrayData | None:
    """The x-ray of all steps that are recorded so far; None without any."""
    recorded, reader = available(model.series), CellReader()
    names = [one.name for one in TENSOR_STATISTICS if one.name in recorded]
    modules = len({one.module for one in model.series})
    if not len(model) or not modules or not names:
        return None
    most = min(MAX_COLUMNS, max(LEAST_COLUMNS, MAX_CELLS // (modules * len(names))))
    unit = unit_for(0, len(model), most=most)
    columns = model.cells(Wanted(STATISTIC_NAMES[0], unit=unit), reader)
    order = execution_order(columns.modules, model.graphs)
    rows = [columns.modules.index(name) for name in order]
    codes = {name: model.cells(Wanted(name, unit=unit), reader).codes[:, rows].T for name in names}
    first, last = model.steps[columns.first], model.steps[columns.last]
    return XrayData(tuple(order), first, last, codes, _loss(model, first))


def _loss(model: ModelRecord, first: npt.NDArray[np.int64]) -> Curve | None:
    scalars = model.scalars()
    losses = (one for name, one in scalars.items() if name.lower().endswith("loss"))
    found = next(losses, None) or next(iter(scalars.values()), None)
    return curve(found, first) if found is not None else None


def curve(scalar: Scalar, first: npt.NDArray[np.int64]) -> Curve:
    """`scalar` over columns that begin at the steps `first`. Steps before the first column count to it."""
    column = np.maximum(np.searchsorted(first, scalar.steps, side="right") - 1, 0)
    is_finite = np.isfinite(scalar.values)
    at, values = column[is_finite], scalar.values[is_finite]
    low, high, total = np.full(len(first), np.inf), np.full(len(first), -np.inf), np.zeros(len(first))
    np.minimum.at(low, at, values)
    np.maximum.at(high, at, values)
    np.add.at(total, at, values)
    count = np.bincount(at, minlength=len(first))
    mean = np.divide(total, count, out=np.full(len(first), np.nan), where=count > 0)
    low[count == 0] = high[count == 0] = np.nan
    bad = np.bincount(column[~is_finite], minlength=len(first)) > 0
    return Curve(scalar.name, low, high, mean, bad)
