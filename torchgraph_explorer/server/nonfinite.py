"""`api/nonfinite`: at which steps a model has NaN or infinity, and where that began. See http_api.md.

Each frame is searched once; a request searches only as many frames as take a short time.
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
"""How long a request searches frames; the next request goes on."""

FRAMES_AT_ONCE = 128
"""Frames that are searched between two checks of the time."""

_COUNTS = {"nan": ("nan",), "infinite": ("positive_infinity", "negative_infinity"), "count": ("count",)}


@dataclass(slots=True)
class _CachedAnswer:
    """What is known of one model in one epoch; the lock is held while that is extended.

    Attributes:
        bad: Whether each searched frame has NaN or infinity.
        first: The answer about the first such frame.
        is_settled: `first` will not change any more, since the frame's graph is known.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    epoch: int = -1
    bad: Flags = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    first: Json | None = None
    is_settled: bool = False


class NonFinite:
    """Where the models of one run have NaN or infinity. Many threads may use it."""

    def __init__(self) -> None:
        self._cached: dict[tuple[str, str | None], _CachedAnswer] = {}
        self._lock = threading.Lock()

    def answer(self, run: RunRecord, model: ModelRecord, *, epoch: int, client: tuple[int, int]) -> Json:
        """The answer to a client that has the epoch and number of frames in `client`.

        `epoch` is the model's, as clients know it. Remaining time is used for the run's other models.
        """
        until = time.monotonic() + SECONDS
        bad, origin = self._look(model, until)
        steps = model.steps
        bad = bad[: len(steps)]
        first = client[1] if client[0] == epoch and client[1] <= len(bad) else 0
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
        """What is known of the model, after more of its frames were searched until the moment `until`."""
        with self._lock:
            cached = self._cached.setdefault((model.name, model.optimizer), _CachedAnswer())
        with cached.lock:
            epoch = model.epoch
            if cached.epoch != epoch:
                cached.bad, cached.first, cached.is_settled, cached.epoch = cached.bad[:0], None, False, epoch
            while len(cached.bad) < len(model) and time.monotonic() < until:
                first = len(cached.bad)
                found = model.nonfinite(first, min(first + FRAMES_AT_ONCE, len(model)))
                cached.bad = np.concatenate((cached.bad, found))
            if not cached.is_settled and cached.bad.any():
                number = int(cached.bad.argmax())
                cached.first, cached.is_settled = origin_of(model, number), int(model.graph_ids[number]) >= 0
            return cached.bad, cached.first


def stretches(steps: npt.NDArray[np.int64], bad: Flags, first: int = 0) -> list[list[int]]:
    """Runs of `bad` frames, from frame `first` on: the steps of the first and last frame, and how many there are."""
    edges = np.diff(bad[first:].astype(np.int8), prepend=0, append=0)
    begins, stops = np.flatnonzero(edges == 1) + first, np.flatnonzero(edges == -1) + first
    columns = (steps[begins], steps[stops - 1], stops - begins)
    return np.stack(columns, axis=-1).tolist() if len(begins) else []


def origin_of(model: ModelRecord, number: int) -> Json:
    """The tensor in which NaN or infinity arose at frame `number`, which has some."""
    where: Json | None = None
    try:
        frame = model.frame(number)
        graph = _graph(model, number)
        found = first_of(model.nonfinite_series(frame), graph)
        where = None if found is None else {**tensor_json(found, graph), **_counts(frame, found)}
    except RecordError:
        pass  # the whole frame is damaged, as the record's warnings say
    return {"step": int(model.steps[number]), "tensor": where}


def tensor_json(series: Series, graph: ModuleGraph | None = None) -> Json:
    """The names of a tensor. A parameter has the first call of its module, or null if that is not known."""
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
