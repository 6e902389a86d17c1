"""Which series and scalars move with one of them, or before it: rank correlation of changes, with a lag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.findings.changes import is_no_output, once_each
from torchgraph_explorer.findings.cooccurrence import at_steps
from torchgraph_explorer.findings.measures import MEASURES, Floats, measures_of
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.schema import Series

MOST_CELLS = 4_000_000
"""How many steps times series are read at most. Of longer runs, steps at equal distance are read."""

MOST_STEPS = 2_000

LEAST_STEPS = 12
"""At least so many recorded steps are needed."""

LAGS = 8
"""The most recorded steps that a series may be ahead."""

SHIFTS = 99
"""How often the target is shifted in time at random, to find out what chance gives."""

CONFIDENCE = 0.95

_SIZE = MEASURES.index("size")


@dataclass(frozen=True, slots=True)
class Relation:
    """How a series or scalar moves with another one.

    Attributes:
        what: The series, or the name of the scalar.
        correlation: Spearman's, between the changes of both from step to step, from -1 to 1.
        ahead: How many steps it moves before the other one; 0 if they move together.
        is_beyond_chance: Its magnitude is larger than `Related.chance`.
    """

    what: Series | str
    correlation: float
    ahead: int
    is_beyond_chance: bool


@dataclass(frozen=True, slots=True)
class Related:
    """What moves with a series or scalar, or before it.

    Attributes:
        target: Its name.
        ranked: The other series and scalars, the strongest relation first; of those with the same numbers, one.
        chance: In 19 of 20 cases, the strongest of so many relations of series that have nothing to do with the target
            is weaker than this. It is found by shifting the target in time: of relations that are weaker, none tells
            anything by itself.
        steps: How many steps were compared.
        spacing: Recorded steps from one to the next of them.
    """

    target: str
    ranked: tuple[Relation, ...]
    chance: float
    steps: int
    spacing: int


def find_related(model: ModelRecord, target: Series | str) -> Related:
    """Rank the series of `model` by how they move with `target`; see `Model.related`."""
    frames, spacing = _frames(model)
    if len(frames) < LEAST_STEPS:
        raise NotFoundError(
            f"Model {model.name!r} has {len(frames)} recorded steps; related series are found from {LEAST_STEPS} on."
        )
    steps, scalars = model.steps[frames], _scalars(model, target)
    lines = [at_steps(scalar, steps)[:, None] for scalar in scalars.values()]
    values = np.concatenate([measures_of(model.statistics(frames))[_SIZE], *lines], axis=1)
    known: list[Series | str] = [*model.series, *scalars]
    followed = values[:, known.index(target) if isinstance(target, str) else target.id]
    moves, wanted = _ranks(np.diff(values, axis=0)), _ranks(np.diff(followed)[:, None])
    if not wanted.any():
        raise NotFoundError(f"{_name(target)} never changed at the recorded steps, so nothing can be related to it.")
    targets = np.concatenate([wanted, _shifted(wanted[:, 0])], axis=1)
    lags = range(min(LAGS, len(moves) // 4) + 1)
    found = np.stack([_correlations(moves, targets, lag) for lag in lags])  # [lags, series, 1 + shifts]
    found[:, known.index(target)] = 0.0
    chance = float(np.quantile(np.abs(found[:, :, 1:]).max(axis=(0, 1)), CONFIDENCE))
    strongest = np.abs(found[:, :, 0]).argmax(axis=0)
    correlation = np.take_along_axis(found[:, :, 0], strongest[None], axis=0)[0]
    gap = int(np.median(np.diff(steps)))
    ranked = tuple(
        Relation(known[at], float(correlation[at]), int(strongest[at]) * gap, bool(abs(correlation[at]) > chance))
        for at in _once_each(model, correlation)
        if known[at] != target and correlation[at] != 0
    )
    return Related(_name(target), ranked, chance, len(frames), spacing)


def _name(target: Series | str) -> str:
    return target if isinstance(target, str) else f"{target.module}, {target.path}, {target.kind}"


def _frames(model: ModelRecord) -> tuple[npt.NDArray[np.int64], int]:
    most = min(MOST_STEPS, max(LEAST_STEPS, MOST_CELLS // max(len(model.series), 1)))
    spacing = max(1, -(-len(model) // most))
    return np.arange(0, len(model), spacing), spacing


def _once_each(model: ModelRecord, correlation: Floats) -> list[int]:
    """The strongest first. Of series with the same numbers, only one."""
    is_last = np.append(is_no_output(model.series), np.zeros(len(correlation) - len(model.series), dtype=np.bool_))
    return once_each(model.frame(-1), np.lexsort((is_last, -np.abs(correlation))))


def _scalars(model: ModelRecord, target: Series | str) -> dict[str, Scalar]:
    """The scalars with a finite value, and the target if that is a scalar."""
    if isinstance(target, str) and not np.isfinite(model.scalar(target).values).any():
        raise NotFoundError(f"Scalar {target!r} has no finite value, so nothing can be related to it.")
    return {name: one for name, one in model.scalars().items() if np.isfinite(one.values).any()}


def _ranks(changes: Floats) -> Floats:
    """The ranks of each column's changes around 0, with length 1; 0 where there is no change, or no number."""
    is_there = ~np.isnan(changes)
    filled = np.where(is_there, changes, np.inf)
    order = np.argsort(filled, axis=0, kind="stable")
    ranks = np.empty(changes.shape)
    np.put_along_axis(ranks, order, np.arange(len(changes), dtype=np.float64)[:, None], axis=0)
    ordered = np.take_along_axis(filled, order, axis=0)
    is_constant = (ordered[:-1] == ordered[1:]).mean(axis=0) > 1 / 2  # mostly ties: ranks would be made up
    counts = np.maximum(is_there.sum(axis=0), 1)
    ranks = np.where(is_there, ranks - (counts - 1) / 2, 0.0)
    length = np.sqrt((ranks**2).sum(axis=0))
    found: Floats = np.where((length > 0) & ~is_constant, ranks / np.maximum(length, 1e-300), 0.0)
    return found


def _shifted(wanted: Floats) -> Floats:
    """The target rolled by random numbers of steps, `[steps, SHIFTS]`. So it keeps its own rhythm."""
    steps = len(wanted)
    least = min(LAGS + 1, steps // 3)
    by = np.random.default_rng(0).integers(least, max(least + 1, steps - least), SHIFTS)
    return np.stack([np.roll(wanted, one) for one in by], axis=1)


def _correlations(moves: Floats, targets: Floats, lag: int) -> Floats:
    """The correlation of each series with each target, if the series is `lag` steps ahead; `[series, targets]`."""
    stop = len(moves) - lag
    found: Floats = moves[:stop].T @ targets[lag:]
    return found
