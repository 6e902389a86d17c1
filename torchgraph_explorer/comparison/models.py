"""Two models held against each other: `compare` gives this."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.comparison.differences import (
    DISTANCE_FRAMES,
    FLOAT32_ROUNDING,
    ROUNDING,
    Differences,
    differences,
    frame_distances,
)
from torchgraph_explorer.comparison.divergence import Divergence, Step, sentence
from torchgraph_explorer.comparison.matching import (
    Alignment,
    MatchedFrames,
    match_frames,
    match_series,
    module_map,
    rename_rules,
)
from torchgraph_explorer.comparison.scalars import Scalars, scalars
from torchgraph_explorer.comparison.structure import Changed, Structure, latest_graph, settings, structure
from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import ModuleGraph, Series

Flags: TypeAlias = "npt.NDArray[np.bool_]"
Judge: TypeAlias = Callable[[ModelRecord], Sequence[Finding]]

MOST_CELLS = 10_000_000
"""Frames times series that are compared, about 50 bytes each. Of longer runs, frames at equal distance are, and then
those between which the first difference is."""

_SPREAD = ("mean", "absolute_mean", "std", "min", "max")


@dataclass(frozen=True, slots=True)
class SeriesDifference:
    """How a series that both runs have differs.

    Attributes:
        series: In the first run.
        other: In the second run, where its module may have another name.
        steps: At how many of the compared steps both have it.
        first_different: The first of those at which it differs in bits; None if it never does.
        first_beyond_rounding: The first one at which it differs by more than rounding.
        first_beyond_fluctuation: The first one from which on it differs by more than it changes from step to step.
        distance: The largest distance of the histograms, from 0 to 1, at up to 16 steps, the last one included.
        distance_step: The step of it; None if no histograms were compared.
        gap: The largest difference of a statistic at one of all steps, relative to the tensor's magnitude, or of the
            numbers of elements; infinite where they have other numbers of NaN or infinity.
    """

    series: Series
    other: Series
    steps: int
    first_different: int | None
    first_beyond_rounding: int | None
    first_beyond_fluctuation: int | None
    distance: float
    distance_step: int | None
    gap: float


class Comparison:
    """How two models differ. Steps are those of the first one.

    Attributes:
        a: The first model.
        b: The second one.
        alignment: `exact`: steps that both logged are compared. `nearest`: they have no logged step in common, so each
            step of the one with fewer is compared with the nearest one of the other, and the first divergence is
            unknown. `none`: one of them has no steps.
        steps: The compared steps of both models, `[n, 2]` int64.

    Example:
        >>> compare("runs", "runs").is_equal
        True
    """

    def __init__(
        self, a: ModelRecord, b: ModelRecord, *, rename: Mapping[str, str] | None = None, judge: Judge | None = None
    ) -> None:
        """Compare `a` with `b`, whose modules are found by `rename`; `judge` gives the findings of a model.

        Raises:
            OptionError: `rename` does not map names.
            RecordError: A run is gone.
        """
        self.a, self.b = a, b
        self._judge = judge
        self._modules = module_map(_modules(a), _modules(b), rename_rules(rename))
        self._matched = match_series(a.series, b.series, self._modules)
        every = match_frames(a.steps, b.steps)
        self.alignment: Alignment = every.alignment
        self._series = tuple(a.series[at] for at in self._matched.a.tolist())
        self._frames, self._found = self._compared(every)
        self.steps = np.stack([self._frames.steps_a, self._frames.steps_b], axis=1)

    def __repr__(self) -> str:
        return (
            f"<Comparison of {self.a.name!r} and {self.b.name!r}: {len(self.steps)} steps, {len(self._series)} series>"
        )

    @cached_property
    def first_divergence(self) -> Divergence | None:
        """The first place at which they differ, in bits if the record has fingerprints; None if they are equal.

        It is also None if they have no logged step in common.
        """
        return self._divergence(self._found.bits)

    @cached_property
    def first_beyond_rounding(self) -> Divergence | None:
        """The first place at which they differ by more than rounding, such as that of another version of torch."""
        return self._divergence(self._found.rounding)

    @cached_property
    def series(self) -> tuple[SeriesDifference, ...]:
        """Every series that both have, those that differ most first: by the distance, then by the gap."""
        found = self._found
        looked_at = self._frames.of(_spread_over(len(self._frames), DISTANCE_FRAMES))
        distances = frame_distances((self.a, self.b), self._matched, looked_at)
        steps = looked_at.steps_a
        firsts = [self._firsts(flags) for flags in (found.bits, found.rounding, found.fluctuation)]
        known = found.known.sum(axis=0).tolist()
        gaps = np.fmax.reduce(found.gaps, axis=0, initial=0.0).tolist()
        largest = np.fmax.reduce(distances, axis=0, initial=0.0).tolist()
        has_distance = np.atleast_1d(np.isfinite(distances).any(axis=0))
        at = np.argmax(np.nan_to_num(distances, nan=-1.0), axis=0).tolist() if len(steps) else [0] * len(largest)
        other = self.b.series
        made = [
            SeriesDifference(
                one,
                other[int(self._matched.b[i])],
                known[i],
                firsts[0][i],
                firsts[1][i],
                firsts[2][i],
                largest[i],
                int(steps[at[i]]) if has_distance[i] else None,
                gaps[i],
            )
            for i, one in enumerate(self._series)
        ]
        return tuple(sorted(made, key=lambda each: (-each.distance, -each.gap)))

    @cached_property
    def structure(self) -> Structure:
        """How the modules, calls, shapes and series differ."""
        return structure(self.a, self.b, self._matched, modules=self._modules)

    @cached_property
    def scalars(self) -> Scalars:
        """How the logged scalars differ."""
        return scalars(self.a, self.b)

    @cached_property
    def settings(self) -> tuple[Changed, ...]:
        """Settings of `watch`, versions, batch size and optimizers that differ."""
        return settings(self.a, self.b)

    @cached_property
    def findings(self) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        """The findings that only the first run has, and those that only the second has. May take seconds."""
        if self._judge is None:
            return (), ()
        one, other = tuple(self._judge(self.a)), tuple(self._judge(self.b))
        keys_a = {(each.kind, self._renamed(each.module), each.path) for each in one}
        keys_b = {(each.kind, each.module, each.path) for each in other}
        return (
            tuple(each for each in one if (each.kind, self._renamed(each.module), each.path) not in keys_b),
            tuple(each for each in other if (each.kind, each.module, each.path) not in keys_a),
        )

    @property
    def is_equal(self) -> bool:
        """Nothing that was compared differs: structure, every series at every common step, and scalars."""
        scalars = self.scalars
        return (
            self.first_divergence is None
            and self.alignment == "exact"
            and self.structure.is_same
            and not (scalars.only_a or scalars.only_b)
            and all(one.first_different is None for one in scalars.both)
        )

    def _renamed(self, module: str | None) -> str | None:
        return None if module is None else self._modules.get(module)

    def _compared(self, every: MatchedFrames) -> tuple[MatchedFrames, Differences]:
        """The frames that are compared, and the differences there."""
        most = max(2, MOST_CELLS // max(1, len(self._series)))
        frames = every.of(_spread_over(len(every), most))
        found = self._differences(frames)
        while len(frames) < len(every):
            differ = np.flatnonzero(found.bits.any(axis=1))
            if not len(differ):
                break
            last = int(np.searchsorted(every.a, frames.a[differ[0]]))
            first = int(np.searchsorted(every.a, frames.a[differ[0] - 1])) if differ[0] else last
            between = np.arange(first, last + 1)[_spread_over(last + 1 - first, most)]
            more = np.union1d(np.searchsorted(every.a, frames.a), between)
            if len(more) == len(frames):
                break
            frames = every.of(more)
            found = self._differences(frames)
        return frames, found

    def _differences(self, frames: MatchedFrames) -> Differences:
        rounding = _roundings(self._series, latest_graph(self.a))
        return differences((self.a, self.b), self._matched, frames, rounding=rounding)

    def _firsts(self, flags: Flags) -> list[int | None]:
        """The step of the first flag of each series."""
        if not len(flags):
            return [None] * flags.shape[1]
        at = flags.argmax(axis=0)
        has = flags[at, np.arange(flags.shape[1])]
        steps = self._frames.steps_a[at]
        return [int(step) if there else None for step, there in zip(steps, has, strict=True)]

    def _divergence(self, flags: Flags) -> Divergence | None:
        first_row = self._first_row(flags)
        if first_row is None:
            return None
        row, differ = first_row
        frames, found = self._frames, self._found
        step, before = int(frames.steps_a[row]), int(frames.steps_a[row - 1]) if row else None
        graph = self.a.graph_ids[frames.a[row]]
        within = Step(self._series, differ, self.a.graphs[graph] if graph >= 0 else latest_graph(self.a))
        is_gap = before is not None and step > before + 1
        first = within.first(data_first=is_gap, suspects=self._suspects(row) if is_gap else None)
        series = self._series[first.at]
        pair = self._matched.only(first.at)
        distance = frame_distances((self.a, self.b), pair, frames.of(np.array([row])))[0, 0]
        is_rounding = not found.rounding[row, first.at]
        return Divergence(
            step=step,
            last_equal_step=before,
            kind=first.kind,
            module=series.module if first.module is None else first.module,
            call=series.call if first.module is None else first.call,
            path=series.path,
            series=series,
            distance=float(np.nan_to_num(distance)),
            gap=float(found.gaps[row, first.at]),
            is_rounding=is_rounding,
            differing=int(differ.sum()),
            compared=int(found.known[row].sum()),
            text=sentence(first, series, step=step, last_equal=before, is_rounding=is_rounding),
        )

    def _first_row(self, flags: Flags) -> tuple[int, Flags] | None:
        """The first compared step at which a series has a flag and can be read with its histogram, and which ones can.

        None if there is none. It is read once: the file may be gone the next time.
        """
        if self.alignment != "exact":
            return None
        for row in np.flatnonzero(flags.any(axis=1)).tolist():
            differ = flags[row] & self._sound(row)
            if differ.any():
                return row, differ
        return None

    def _sound(self, row: int) -> Flags:
        """Which series have rows at a compared step whose histograms can be read."""
        frames = (self.a, self._frames.a, self._matched.a), (self.b, self._frames.b, self._matched.b)
        sound = np.ones(len(self._series), np.bool_)
        for model, numbers, series in frames:
            try:
                sound &= np.isin(series, model.frame(int(numbers[row])).series)
            except RecordError:  # the whole frame is damaged
                sound[:] = False
        return sound

    def _suspects(self, row: int) -> npt.NDArray[np.float64]:
        """How much each series differs at a compared step, in units of how much it changed since the one before.

        Of parameters that differ since a change to one of them, that one differs by more than the training moved it.
        """
        columns = [COLUMN[name] for name in _SPREAD]
        a = self.a.rows(self._frames.a[row - 1 : row + 1]).statistics[columns][..., self._matched.a].astype(np.float64)
        b = self.b.rows(self._frames.b[[row]]).statistics[columns][:, 0, self._matched.b].astype(np.float64)
        scale = np.fmax(np.abs(a[:, 1]).max(axis=0), 1e-30)
        with np.errstate(all="ignore"):
            moved = np.abs(a[:, 1] - a[:, 0]).max(axis=0) / scale
            apart = np.abs(a[:, 1] - b).max(axis=0) / scale
            scores: npt.NDArray[np.float64] = np.nan_to_num(apart / np.fmax(moved, FLOAT32_ROUNDING), nan=0.0)
        return scores


def _modules(model: ModelRecord) -> Iterator[str]:
    """Every module of a model that its record names."""
    yield from (one.name for graph in model.graphs for one in graph.modules)
    yield from (one.module for one in model.series)


def _spread_over(count: int, most: int) -> npt.NDArray[np.intp]:
    """At most `most` of `count` indices, the first and the last included, at equal distance."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def _roundings(series: Sequence[Series], graph: ModuleGraph | None) -> npt.NDArray[np.float32]:
    """How much each of `series` may differ by rounding, by the dtype of its tensor in `graph`."""
    dtypes: dict[tuple[str, int | None, str], str] = {}
    if graph is not None:
        for module in graph.modules:
            dtypes |= {(module.name, None, one.path): one.dtype for one in module.params}
        for call in graph.calls:
            dtypes |= {(call.module, call.call, one.path): one.dtype for one in (*call.inputs, *call.outputs)}
    found = [ROUNDING.get(dtypes.get((one.module, one.call, one.path), ""), FLOAT32_ROUNDING) for one in series]
    return np.array(found, np.float32)
