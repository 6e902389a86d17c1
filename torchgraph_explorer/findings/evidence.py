"""What the rules look at: the statistics of all series over steps, as matrices, and the module graph.

A matrix has a row for each recorded step and a column for each series, `[steps, series]`. It is NaN where a step lacks
the series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import TorchgraphError
from torchgraph_explorer.findings.places import Places
from torchgraph_explorer.histogram import counts_below
from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.schema import Kind, Role, StepFacts, TrainingFacts

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

MOST_CELLS = 5_000_000
"""How many steps times series are read at most, 48 bytes each. Of longer runs, the first steps are read, and others at
equal distance."""

FIRST_FRAMES = 64
"""How many of the first frames are read in any case."""

HISTOGRAM_FRAMES = 64
"""How many histograms of a series are read at most."""

EARLY = 0.1
"""The share of the recorded steps that counts as the beginning of a series; at least `LEAST_EARLY` steps."""

LEAST_EARLY = 2

OF_TRAINING = ("training", "train")
"""Labels that mark values of the training. Values with other labels are not looked at."""

TELLING = ("count", "min", "max", "mean", "absolute_mean", "std", "l2_norm", "zeros")
"""Two tensors for which all of these statistics are equal are taken for the same."""


class Evidence:
    """The part of a model's record that the rules look at.

    Attributes:
        model: The record.
        frames: The frames that were read, ascending, as indices in `model`.
        steps: Their steps.
        facts: How each of those steps ended; None where that is not known.
        training: What only the live training knew of each of those steps; None where that was not recorded.
        scales: The loss scale that was taken out of the gradients of each; NaN without one.
        left_scales: The loss scale that the record has in the gradients of each, as `watch` was not given the scaler;
            or 1. What is asked of the evidence is without it.
        series: Every series; its index is its column.
        epoch: That of the model: frames and series of another one have other numbers.
        is_of_evaluations: The record is not of training steps, but of passes between them.
        places: Where modules, calls and tensors are in the module graph.
        scalars: What the training loop logged, by name, at every step at which it did so; also to TensorBoard or W&B.
            Of a scalar with labels, the values without a label, or else those of a label in `OF_TRAINING`.
        ends_bad: The step after the last one has NaN or infinity that should not be there.
    """

    def __init__(
        self,
        model: ModelRecord,
        frames: Iterable[int] | None = None,
        *,
        most: int = MOST_CELLS,
        earlier: Evidence | None = None,
    ) -> None:
        """Look at `model`, at all its frames or at the given ones.

        Args:
            model: The record.
            frames: Indices in it, ascending; None for all.
            most: Steps times series that are read.
            earlier: What was read of it before. It is not read again.
        """
        self.model, self.epoch = model, model.epoch
        self.series = model.series
        wanted = np.arange(len(model)) if frames is None else np.fromiter(frames, np.int64)
        self.frames = _few_enough(wanted, most // max(len(self.series), 1))
        self.steps = model.steps[self.frames]
        every = model.facts
        self.facts: tuple[StepFacts | None, ...] = tuple(every[frame] for frame in self.frames.tolist())
        of_training = model.training_facts
        self.training: tuple[TrainingFacts | None, ...] = tuple(of_training[frame] for frame in self.frames.tolist())
        self.scales = model.gradient_scales[self.frames]
        self.left_scales = _left_scales(self.training, self.scales)
        self.is_of_evaluations = any(one.is_of_evaluations for one in model.sessions)
        self.places = Places(model.graphs)
        self.scalars: Mapping[str, Scalar] = _scalars(model)
        self.ends_bad = False
        known = earlier is not None and earlier.epoch == self.epoch
        self._statistics = self._read(self.frames) if not known or earlier is None else self._read_on(earlier)
        self._of_kind: dict[tuple[Kind, Role | None], list[int]] = {}
        self._fingerprints: dict[int, npt.NDArray[np.uint64]] = {}
        self._column = {one.key: number for number, one in enumerate(self.series)}

    def __len__(self) -> int:
        return len(self.frames)

    def _read_on(self, earlier: Evidence) -> Matrix:
        """The statistics. Those that `earlier` has are taken from there, and only the others are read."""
        is_known = np.isin(self.frames, earlier.frames)
        new = self._read(self.frames[~is_known])
        found = np.full((len(COLUMN), len(self.frames), new.shape[2]), np.nan, dtype=np.float32)
        found[:, ~is_known] = new
        kept = earlier._statistics[:, np.isin(earlier.frames, self.frames)]
        found[:, is_known, : kept.shape[2]] = kept
        return found

    def _read(self, frames: npt.NDArray[np.int64]) -> Matrix:
        """The statistics at these frames, `[STATISTICS, frames, series]`, without a loss scale that gradients have."""
        found = self.model.statistics(frames)
        scales = self.left_scales[np.isin(self.frames, frames)]
        if (scales != 1).any():
            gradients = [number for number, one in enumerate(self.series) if one.kind in _SCALED]
            for name in _IN_UNITS:
                found[COLUMN[name]][:, gradients] /= scales[:, None].astype(np.float32)
        return found

    def before(self, step: int) -> Evidence:
        """The evidence of the steps before `step`, at which NaN or infinity began; at least of the first step."""
        stop = max(int(np.searchsorted(self.steps, step)), 1)
        found = copy(self)
        for name in _CACHED:
            found.__dict__.pop(name, None)
        found.frames, found.steps, found.facts = self.frames[:stop], self.steps[:stop], self.facts[:stop]
        found.training = self.training[:stop]
        found.scales, found._statistics, found.ends_bad = self.scales[:stop], self._statistics[:, :stop], True
        found.left_scales = self.left_scales[:stop]
        found.scalars = {name: _before(step, one) for name, one in self.scalars.items()}
        return found

    def matrix(self, statistic: str) -> Matrix:
        """One statistic of all series, `[steps, series]`; not to be changed."""
        found: Matrix = self._statistics[COLUMN[statistic]]
        return found

    def statistics_at(self, row: int, series: npt.NDArray[np.intp]) -> Matrix:
        """All statistics of some series at one row, `[series, STATISTICS]`."""
        return self._statistics[:, row, series].T

    def column(self, statistic: str, series: int) -> Matrix:
        """One statistic of one series, `[steps]`."""
        return self.matrix(statistic)[:, series]

    def telling(self, series: Sequence[int]) -> Matrix:
        """The statistics of some series by which tensors are told apart, `[TELLING, steps, series]`."""
        return np.stack([self.matrix(name)[:, series] for name in TELLING])

    def fingerprints(self, row: int) -> npt.NDArray[np.uint64]:
        """The fingerprints of all series at one row, `[series]`; 0 where there is none."""
        if row not in self._fingerprints:
            self._fingerprints[row] = self.model.rows(self.frames[[row]]).fingerprints[0]
        return self._fingerprints[row]

    def find(self, module: str, call: int | None, role: Role, path: str, kind: Kind = "value") -> int | None:  # noqa: PLR0917  # the parts of `Series.key`, in its order
        """The column of a series; None if it was not recorded."""
        return self._column.get((module, call, role, path, kind))

    def of_kind(self, kind: Kind, role: Role | None = None) -> list[int]:
        """The columns of all series of this kind, and role; not to be changed."""
        if (kind, role) not in self._of_kind:
            self._of_kind[kind, role] = [
                number
                for number, one in enumerate(self.series)
                if one.kind == kind and (role is None or one.role == role)
            ]
        return self._of_kind[kind, role]

    @cached_property
    def is_there(self) -> Flags:
        """Which steps have which series, `[steps, series]`."""
        there: Flags = ~np.isnan(self.matrix("count"))
        return there

    @cached_property
    def has_bad(self) -> Flags:
        """Where there is NaN or infinity of any sort, `[steps, series]`."""
        bad = self.matrix("nan") + self.matrix("positive_infinity") + self.matrix("negative_infinity")
        found: Flags = bad > 0
        return found

    @cached_property
    def peaks(self) -> Floats:
        """The largest magnitude of each series at each step, `[steps, series]`."""
        return np.fmax(np.abs(self.matrix("min")), np.abs(self.matrix("max"))).astype(np.float64)

    @cached_property
    def rms(self) -> Floats:
        """The root mean square of each series at each step, `[steps, series]`."""
        with np.errstate(all="ignore"):
            found: Floats = np.hypot(self.matrix("mean").astype(np.float64), self.matrix("std").astype(np.float64))
        return found

    @cached_property
    def zero_shares(self) -> Floats:
        """The share of zeros of each series at each step, `[steps, series]`."""
        with np.errstate(all="ignore"):
            found: Floats = self.matrix("zeros").astype(np.float64) / self.matrix("sampled")
        return found

    def early(self, series: int) -> npt.NDArray[np.intp]:
        """The rows of the first steps of a series, to which later ones are compared."""
        rows = np.flatnonzero(self.is_there[:, series])
        return rows[: max(LEAST_EARLY, int(len(rows) * EARLY))]

    def shares_within(self, series: int, low: float, high: float) -> tuple[npt.NDArray[np.intp], Floats]:
        """Some rows, and the share of the series' elements at each that lie between `low` and `high`."""
        rows = np.flatnonzero(self.is_there[:, series])
        rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), HISTOGRAM_FRAMES)).astype(np.intp))]
        shares = [self.share_within(series, int(row), (low, high)) for row in rows]
        return rows, np.array(shares, dtype=np.float64)

    def share_within(self, series: int, row: int, between: tuple[float, float]) -> float:
        """The share of the series' elements at a row that lie `between` two numbers; NaN where that is not known."""
        frame = int(self.frames[row])
        try:
            history = self.model.history(series, frame, frame + 1)
        except TorchgraphError:  # damaged, or gone
            return float("nan")
        total = history.histograms.counts.sum(dtype=np.int64)
        if not len(history) or not total:
            return float("nan")
        edges = np.array([between])
        below = counts_below(
            history.histograms, np.zeros(1, np.int64), edges, low=history.column("min"), high=history.column("max")
        )
        return float((below[0, 1] - below[0, 0]) / total)


_SCALED: tuple[Kind, ...] = ("grad", "grad_norm")
"""Kinds of series that a loss scale multiplies."""

_IN_UNITS = ("min", "max", "mean", "absolute_mean", "std", "l2_norm")
"""Statistics that a loss scale multiplies."""

_CACHED = ("is_there", "has_bad", "peaks", "rms", "zero_shares")


def _left_scales(training: Iterable[TrainingFacts | None], taken_out: Floats) -> Floats:
    known = (facts.loss_scale if facts and facts.loss_scale else 1.0 for facts in training)
    return np.where(np.isnan(taken_out), np.fromiter(known, np.float64, len(taken_out)), 1.0)


def _scalars(model: ModelRecord) -> Mapping[str, Scalar]:
    logged, found = model.logged, dict(model.scalars_elsewhere())
    for label in (*OF_TRAINING, None):
        found |= logged.labelled(label)
    return found


def _before(step: int, scalar: Scalar) -> Scalar:
    stop = int(np.searchsorted(scalar.steps, step))
    times, values = scalar.times[:stop], scalar.values[:stop]
    return Scalar(scalar.name, scalar.steps[:stop], times, values, scalar.label)


def _few_enough(frames: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """`frames`, or some of them if they are more than `most`.

    These are the first ones, the last one, and every second, fourth, eighth, … of the rest. When a record grows, no
    frame is chosen that lies between those chosen before, so that little is read anew.
    """
    most = max(most, 4)
    if len(frames) <= most:
        return frames
    first = min(FIRST_FRAMES, most // 2)
    stride = 2
    while first + (len(frames) - first) // stride + 1 >= most:
        stride *= 2
    at = np.concatenate([np.arange(first), np.arange(first, len(frames), stride), [len(frames) - 1]])
    chosen: npt.NDArray[np.int64] = frames[np.unique(at)]
    return chosen
