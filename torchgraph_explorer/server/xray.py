"""`api/xray`: the whole training in one picture. See http_api.md."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.record.cells.reading import CellCache, CellReader, Columns, Wanted
from torchgraph_explorer.record.cells.statistics import CELL_STATISTICS, STATISTIC_NAMES
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Series
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.xray.order import execution_order

Json = dict[str, Any]

MOST_CELLS = 900_000
"""Cells of one answer, 2 bytes each."""

LEAST_COLUMNS = 16

SECONDS = 0.4
"""How long a request computes cells of frames that are in no block of the index; the next request goes on."""


@dataclass(frozen=True, slots=True)
class WantedXray:
    """Which part of the picture a client asks for.

    Attributes:
        statistic: One of `STATISTIC_NAMES`; None for the first one that the model has.
        first_step: The first step of the stretch.
        last_step: The last one; None for all.
        most: Columns, at most.
        version: What the client has.
    """

    statistic: str | None
    first_step: int
    last_step: int | None
    most: int
    version: str = ""


@dataclass(slots=True)
class CellReaders:
    """What was computed of the models of one run, in a cache that several runs may share. For many threads."""

    cache: CellCache = field(default_factory=CellCache)
    readers: dict[tuple[str, str | None], CellReader] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, model: ModelRecord) -> CellReader:
        """The reader of a model's cells."""
        with self.lock:
            return self.readers.setdefault((model.name, model.optimizer), CellReader(self.cache))


def xray_answer(model: ModelRecord, wanted: WantedXray, *, reader: CellReader, epoch: int) -> bytes:
    """`api/xray`."""
    series, steps = model.series, model.steps
    there = available(series)
    name = wanted.statistic or next(iter(there), STATISTIC_NAMES[0])
    if name not in STATISTIC_NAMES:
        raise OptionError(f"statistic={name[:40]!r} is not one of {', '.join(STATISTIC_NAMES)}.")
    first = int(np.searchsorted(steps, wanted.first_step))
    stop = len(steps) if wanted.last_step is None else int(np.searchsorted(steps, wanted.last_step, side="right"))
    modules = len({one.module for one in series})
    unit = unit_for(first, stop, most=max(LEAST_COLUMNS, min(wanted.most, MOST_CELLS // max(modules, 1))))
    record = (epoch, model.optimizer or "all", len(steps), len(series), len(model.graphs))
    version = ".".join(map(str, (*record, name, first, stop, unit)))
    if version == wanted.version:
        return pack({"version": version, "is_same": True}, {})
    columns = model.cells(Wanted(name, first, stop, unit, SECONDS), reader)
    version = version if columns.is_complete else ""
    facts = {"version": version, "is_same": False, "is_complete": columns.is_complete, "available": there}
    return pack(*_packed(model, columns, {**facts, "statistic": name, "unit": unit}))


def _packed(model: ModelRecord, columns: Columns, facts: Json) -> tuple[Json, dict[str, Any]]:
    order, codes = ordered(model, columns)
    steps = model.steps
    spans = {
        "first": steps[columns.first].astype(np.float64),
        "last": steps[columns.last].astype(np.float64),
        "codes": codes.view(np.int16),
    }
    return {**facts, "modules": order, "statistics": statistics_json()}, spans


def ordered(model: ModelRecord, columns: Columns) -> tuple[list[str], Any]:
    """The modules in the order of execution, and their codes, `[modules, columns]`."""
    order = execution_order(columns.modules, model.graphs)
    number = {name: at for at, name in enumerate(columns.modules)}
    return order, np.ascontiguousarray(columns.codes[:, [number[name] for name in order]].T)


def statistics_json() -> list[Json]:
    """What there is to choose from."""
    return [{"name": one.name, "label": one.label, "is_share": one.is_share} for one in CELL_STATISTICS]


def available(series: tuple[Series, ...]) -> list[str]:
    """The statistics that a model with these series can have."""
    kinds = {(one.role, one.kind) for one in series}
    return [one.name for one in CELL_STATISTICS if one.role is None or (one.role, one.kind) in kinds]


def unit_for(first: int, stop: int, *, most: int) -> int:
    """The smallest power of two such that the frames make at most `most` columns of so many frames, counted from 0."""
    unit = 1
    while stop > first and (stop - 1) // unit - first // unit >= most:
        unit *= 2
    return unit


MOST_PAGE_BYTES = 200_000
"""Cells on an exported page, of all statistics, before compression."""


def page_xray(model: ModelRecord) -> tuple[Json, dict[str, Any]]:
    """The picture of all recorded steps for an exported page: facts, and arrays by name."""
    there, reader = available(model.series), CellReader()
    modules = len({one.module for one in model.series})
    most = max(LEAST_COLUMNS, min(256, MOST_PAGE_BYTES // max(2 * modules * len(there), 1)))
    wanted = Wanted(STATISTIC_NAMES[0], unit=unit_for(0, len(model), most=most))
    facts: Json = {"modules": [], "statistics": statistics_json(), "available": there, "unit": wanted.unit}
    arrays: dict[str, Any] = {}
    for name in there:
        facts, spans = _packed(model, model.cells(replace(wanted, statistic=name), reader), facts)
        arrays |= {"first": spans["first"], "last": spans["last"], f"codes.{name}": spans["codes"]}
    return facts, arrays
