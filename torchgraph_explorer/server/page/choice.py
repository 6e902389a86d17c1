"""Which frames and series a page has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Frame, Series

ORDER = (
    ("output", "value"),
    ("output", "grad_norm"),
    ("param", "grad"),
    ("param", "value"),
    ("input", "value"),
    ("input", "grad_norm"),
)
"""The order in which series of equally deep modules are kept. Attached tensors come before everything."""

Tensor: TypeAlias = "tuple[str, int | None, str]"
"""Module, call and path."""

_UNKNOWN_ENTRIES = 60
"""Assumed size of the histogram of a series that none of the latest frames has."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Series of one model that share a row: one tensor is the output of a call and the input of the next.

    Attributes:
        model: Number of the model.
        series: Their ids.
        rank: Orders the candidates; the smallest is kept first.
        entries: Buckets in the latest histogram.
    """

    model: int
    series: tuple[int, ...]
    rank: tuple[int, ...]
    entries: int


def spread(frames: int, most: int) -> list[int]:
    """At most `most` of this many frames, evenly spread, including the first and the last; if `most` is 1, the last."""
    if most == 1:
        return [frames - 1] if frames else []
    return np.unique(np.linspace(0, frames - 1, min(most, frames)).round().astype(int)).tolist() if frames else []


def with_frame(frames: list[int], wanted: int | None) -> list[int]:
    """`frames` with `wanted` in place of the nearest frame that is neither the first nor the last, if there is one."""
    return with_frames(frames, [wanted])


def with_frames(frames: list[int], wanted: Iterable[int | None]) -> list[int]:
    """`frames` with each of `wanted` as in `with_frame`; with the first of them if there is not room for all."""
    kept: set[int] = set()
    for one in wanted:
        free = [frame for frame in frames[1:-1] if frame not in kept]
        if one is not None and one not in frames and free:
            frames = sorted({*frames, one} - {min(free, key=lambda frame: abs(frame - one))})
        kept.update(() if one is None else (one,))
    return frames


def candidates(models: Sequence[ModelRecord], first: Sequence[Collection[Tensor]]) -> list[Candidate]:
    """All series of all models, in the order in which they are kept: from the model itself to ever deeper modules.

    Those of attached tensors, and then of the tensors that `first` names of each model, come before all others.
    """
    found = [one for number, model in enumerate(models) for one in _of_model(number, model, first[number])]
    return sorted(found, key=lambda one: one.rank)


def _of_model(number: int, model: ModelRecord, first: Collection[Tensor]) -> Iterable[Candidate]:
    groups: dict[tuple[int, int], list[Series]] = {}
    entries: dict[tuple[int, int], int] = {}
    row_of: dict[int, tuple[int, int]] = {}
    for at, frame in _latest_frames(model):
        sizes = np.diff(frame.histograms.offsets.astype(np.int64))
        for series, row in zip(frame.series.tolist(), frame.rows.tolist(), strict=True):
            row_of.setdefault(series, (at, row))
            entries[at, row] = int(sizes[row])
    for one in model.series:
        groups.setdefault(row_of.get(one.id, (-1, one.id)), []).append(one)
    for key, group in groups.items():
        rank = min(_rank(one, number, first) for one in group)
        yield Candidate(number, tuple(one.id for one in group), rank, entries.get(key, _UNKNOWN_ENTRIES))


def _latest_frames(model: ModelRecord) -> list[tuple[int, Frame]]:
    """The latest frame of each graph, the latest of all first, without damaged ones."""
    latest = {graph: at for at, graph in enumerate(model.graph_ids.tolist())}
    found = []
    for at in sorted(latest.values(), reverse=True):
        try:
            found.append((at, model.frame(at)))
        except RecordError:
            continue
    return found


def _rank(series: Series, model: int, first: Collection[Tensor]) -> tuple[int, ...]:
    if series.role == "attached":
        return (-2, 0, model, series.id)
    if (series.module, series.call, series.path) in first:
        return (-1, 0, model, series.id)
    depth = len(series.module.split(".")) if series.module else 0
    what = (series.role, series.kind)
    return (depth, ORDER.index(what) if what in ORDER else len(ORDER), model, series.id)
