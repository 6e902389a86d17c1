"""`api/nonfinite`: at which steps a model holds NaN or infinity, and where that began. See http_api.md.

Found out once, and then only of what is new; so much at a time that no request takes long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.origin import first_of
from torchgraph_explorer.record.run_record import RunRecord
from torchgraph_explorer.schema import STATISTICS, Frame, ModuleGraph, Series

Json = dict[str, Any]
Flags = npt.NDArray[np.bool_]

SECONDS = 0.1
"""How long a request looks at frames; the next one goes on."""

FRAMES_AT_ONCE = 128
"""Frames looked at between two looks at the clock."""

_COUNTS = {"nan": ("nan",), "infinite": ("positive_infinity", "negative_infinity"), "count": ("count",)}


@dataclass(slots=True)
class _CachedAnswer:
    """What is known of one model in one epoch; the lock is held while that is added to.

    Attributes:
        bad: Of each frame that was looked at, whether it holds NaN or infinity.
        first: Of the first one of those, what the answer says.
        is_settled: That will not change any more: its graph is known.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    epoch: int = -1
    bad: Flags = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    first: Json | None = None
    is_settled: bool = False


class NonFinite:
    """Where the models of one run hold NaN or infinity. For many threads."""

    def __init__(self) -> None:
        self._cached: dict[str, _CachedAnswer] = {}
        self._lock = threading.Lock()

    def answer(self, run: RunRecord, model: ModelRecord, *, epoch: int, held: tuple[int, int]) -> Json:
        """What is new for who holds so many frames of an epoch, `held`; `epoch` is the model's as clients know it.

        What is left of the time goes to the run's other models.
        """
        until = time.monotonic() + SECONDS
        bad, origin = self._look(model, until)
        steps = model.steps
        bad = bad[: len(steps)]
        first = held[1] if held[0] == epoch and held[1] <= len(bad) else 0
        others = [run.model(name) for name in run.models if name != model.name]
        looked = [(one, self._look(one, until)[0]) for one in others]
        return {
            "epoch": epoch,
            "from": first,
            "frames": len(bad),
            "bad": stretches(steps, bad, first),
            "first": origin,
            "others": [one.name for one, found in looked if found.any()],
            "is_complete": len(bad) == len(steps),
            "are_others_complete": all(len(found) >= len(one) for one, found in looked),
        }

    def _look(self, model: ModelRecord, until: float) -> tuple[Flags, Json | None]:
        """What is known of the model, looking at more of it until the time is up."""
        with self._lock:
            held = self._cached.setdefault(model.name, _CachedAnswer())
        with held.lock:
            epoch = model.epoch
            if held.epoch != epoch:
                held.bad, held.first, held.is_settled, held.epoch = held.bad[:0], None, False, epoch
            while len(held.bad) < len(model) and time.monotonic() < until:
                first = len(held.bad)
                found = model.nonfinite(first, min(first + FRAMES_AT_ONCE, len(model)))
                held.bad = np.concatenate((held.bad, found))
            if not held.is_settled and held.bad.any():
                number = int(held.bad.argmax())
                held.first, held.is_settled = origin_of(model, number), int(model.graph_ids[number]) >= 0
            return held.bad, held.first


def stretches(steps: npt.NDArray[np.int64], bad: Flags, first: int = 0) -> list[list[int]]:
    """Frames in a row that are `bad`, from frame `first` on: the steps of the first and the last, and how many."""
    edges = np.diff(bad[first:].astype(np.int8), prepend=0, append=0)
    begins, stops = np.flatnonzero(edges == 1) + first, np.flatnonzero(edges == -1) + first
    columns = (steps[begins], steps[stops - 1], stops - begins)
    return np.stack(columns, axis=-1).tolist() if len(begins) else []


def origin_of(model: ModelRecord, number: int) -> Json:
    """Where NaN or infinity came up first at frame `number`, which holds some."""
    where: Json | None = None
    try:
        frame = model.frame(number)
        graph = _graph(model, number)
        found = first_of(model.nonfinite_series(frame), graph)
        where = None if found is None else {**tensor_json(found, graph), **_counts(frame, found)}
    except RecordError:
        pass  # damaged as a whole; the record's warnings tell of it
    return {"step": int(model.steps[number]), "tensor": where}


def tensor_json(series: Series, graph: ModuleGraph | None = None) -> Json:
    """What a tensor is called; a parameter has the call that reads it first, null where that is not known."""
    call = series.call
    if call is None and graph is not None:
        call = next((one.call for one in graph.calls if one.module == series.module), None)
    return {"module": series.module, "call": call, "role": series.role, "path": series.path, "kind": series.kind}


def _graph(model: ModelRecord, number: int) -> ModuleGraph | None:
    graphs, graph = model.graphs, int(model.graph_ids[number])
    return graphs[graph] if graph >= 0 else next(iter(graphs), None)


def _counts(frame: Frame, series: Series) -> dict[str, int]:
    row = frame.statistics[frame.rows[frame.series == series.id][0]]
    return {name: _total(row, columns) for name, columns in _COUNTS.items()}


def _total(row: npt.NDArray[np.float32], columns: Sequence[str]) -> int:
    values = [float(row[STATISTICS.index(name)]) for name in columns]
    return int(sum(value for value in values if np.isfinite(value)))
