"""Which frames and series a page has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Frame, Series

ORDER = (
    ("output", "value"),
    ("output", "grad_norm"),
    ("edge", "grad_norm"),
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
        others: The same series of other runs, which are kept with them.
    """

    model: int
    series: tuple[int, ...]
    rank: tuple[int, ...]
    entries: int
    others: tuple[Candidate, ...] = ()


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


Place: TypeAlias = "tuple[str, int, str, str, str]"
"""What the same series has in all runs: module, call (−1 for a parameter), role, path and kind."""


def joined(models: Sequence[ModelRecord], offered: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of several runs, so that a series is kept of all runs or of none; `entries` are those of all."""
    first: dict[tuple[Place, ...], int] = {}
    found: list[Candidate] = []
    for one in offered:
        places = tuple(sorted(_place(models[one.model], series) for series in one.series))
        at = first.setdefault(places, len(found))
        if at == len(found):
            found.append(one)
        else:
            held = found[at]
            found[at] = replace(held, others=(*held.others, one), entries=held.entries + one.entries)
    return found


def _place(model: ModelRecord, series: int) -> Place:
    one = model.series[series]
    return (one.module, one.call if one.call is not None else -1, one.role, one.path, one.kind)


def group_series(kept: Sequence[Candidate], model: int) -> list[int]:
    """The series of a model among `kept`."""
    every = [one for group in kept for one in (group, *group.others)]
    return [series for one in every if one.model == model for series in one.series]


def beside(models: Sequence[ModelRecord], frames: Sequence[list[int]]) -> list[list[int]]:
    """`frames` of several runs, those of the others at the steps that the first run's have, as far as they have them.

    As many frames of each run are kept as before; its first and last one always are.
    """
    if not frames or not frames[0]:
        return list(frames)
    wanted = models[0].steps[frames[0]]
    return [frames[0], *(_at_steps(model, own, wanted) for model, own in zip(models[1:], frames[1:], strict=True))]


def _at_steps(model: ModelRecord, own: list[int], wanted: npt.NDArray[np.int64]) -> list[int]:
    kept = sorted({own[0], own[-1]}) if own else []
    common = [frame for frame in np.flatnonzero(np.isin(model.steps, wanted)).tolist() if frame not in kept]
    kept += _some(common, len(own) - len(kept))
    return sorted(kept + _some([frame for frame in own if frame not in kept], len(own) - len(kept)))


def _some(frames: Sequence[int], most: int) -> list[int]:
    """At most `most` of the frames, evenly spread."""
    return [frames[at] for at in spread(len(frames), most)] if most > 0 else []
