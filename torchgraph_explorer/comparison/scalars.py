"""How the scalars of two runs differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.schema import titled


@dataclass(frozen=True, slots=True)
class ScalarDifference:
    """A scalar that both logged.

    Attributes:
        name: As it was logged, and its label in parentheses if it has one.
        common: At how many steps both logged it.
        first_different: The first of those at which the values differ; None if they never do.
        largest: The largest difference at one of those, relative to the larger magnitude there; from 0 to 2, and
            infinite where only one is finite.
        last_a: The last value of the first run.
        last_b: Likewise of the second run.
    """

    name: str
    common: int
    first_different: int | None
    largest: float
    last_a: float
    last_b: float


@dataclass(frozen=True, slots=True)
class Scalars:
    """The scalars of two runs.

    Attributes:
        both: Those that both logged, the ones that differ most first.
        only_a: Names of those of the first run alone.
        only_b: Likewise of the second run.
    """

    both: tuple[ScalarDifference, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def scalars(a: ModelRecord, b: ModelRecord) -> Scalars:
    """Compare what was logged with `watcher.log`."""
    one, other = ({titled(each.name, each.label): each for each in model.logged.every} for model in (a, b))
    both = [_difference(name, one[name], other[name]) for name in one if name in other]
    both.sort(key=lambda found: -found.largest)
    return Scalars(
        tuple(both), tuple(name for name in one if name not in other), tuple(name for name in other if name not in one)
    )


def _difference(name: str, a: Scalar, b: Scalar) -> ScalarDifference:
    steps, at_a, at_b = np.intersect1d(a.steps, b.steps, assume_unique=True, return_indices=True)
    one, other = a.values[at_a], b.values[at_b]
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(all="ignore"):
        gaps = np.abs(one - other) / np.maximum(np.abs(one), np.abs(other))
    gaps = np.where(is_same, 0.0, np.where(np.isfinite(gaps), gaps, np.inf))
    differ = steps[~is_same]
    last_a, last_b = (float(each.values[-1]) if len(each) else float("nan") for each in (a, b))
    first = int(differ[0]) if len(differ) else None
    return ScalarDifference(name, len(steps), first, float(gaps.max(initial=0.0)), last_a, last_b)
