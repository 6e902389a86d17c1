"""What is unusual at the steps of a finding or a condition, and before them: series, scalars and other findings.

Each answer comes with the score that chance alone gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.changes import is_no_output, once_each
from torchgraph_explorer.findings.measures import LOGARITHMS, MEASURES, Floats, measures_of
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.scalars.index import Scalar
from torchgraph_explorer.schema import Series

Ints: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

MOST_CELLS = 1_000_000
"""How many steps times series are read at most."""

MOST_STEPS = 1_000
"""How many steps are read at most, at equal distance; and how many of the finding's steps."""

LEAST_OTHERS = 8
"""At least so many recorded steps without the finding are needed."""

BEFORE = 16
"""How many recorded steps before the finding's first one are searched for a series that was unusual already."""

SHIFTS = 99
"""How often the finding is shifted in time at random, to find out what chance gives."""

CONFIDENCE = 0.95

USUAL = 0.95
"""A value is unusual if it is above, or below, this share of the other steps."""

FLOORS = {"size": 0.02, "mean": 0.02, "zeros": 0.005, "nonfinite": 1e-9}
"""The measures that are looked at. The spread of each is taken to be at least this."""

FARTHEST = 20.0
"""A step counts at most as so many spreads away from the median; for NaN and infinity, twice as many."""

_NORMAL = 1.4826
"""The standard deviation of a normal distribution, divided by its median absolute deviation."""


@dataclass(frozen=True, slots=True)
class CoOccurrence:
    """How unusual something is while a finding lasts.

    Attributes:
        what: The series, or the name of a scalar.
        measure: Which of its measures: one of `MEASURES`, or `value` of a scalar.
        score: How much larger the measure is at the finding's steps than at others, in robust standard deviations;
            negative if it is smaller. A step counts at most `FARTHEST`.
        share: Of the finding's steps, at how many the measure is above (below) what 95 % of the other steps have.
        elsewhere: Of the other steps, at how many it is.
        ahead: For how many steps it was so already when the finding began, without a break.
        is_beyond_chance: The score is larger than `CoOccurrences.chance`.
    """

    what: Series | str
    measure: str
    score: float
    share: float
    elsewhere: float
    ahead: int
    is_beyond_chance: bool


@dataclass(frozen=True, slots=True)
class FindingRate:
    """How often a finding is there at the steps that are asked about.

    Attributes:
        finding: The finding.
        share: Of the steps that are asked about, at how many it is there.
        elsewhere: Of the other steps, at how many it is there.
        chance: In 19 of 20 cases, `share` is at most this if the two have nothing to do with each other. It is found by
            shifting the steps that are asked about in time.
        is_beyond_chance: `share` is larger than `chance`.
    """

    finding: Finding
    share: float
    elsewhere: float
    chance: float
    is_beyond_chance: bool


@dataclass(frozen=True, slots=True)
class CoOccurrences:
    """What is unusual at the steps of a finding, or at those at which a condition holds.

    Attributes:
        target: The finding's kind and place, or the condition.
        ranked: Series and scalars, the largest score first; of those with the same numbers, one.
        chance: In 19 of 20 cases, the largest score of as many series and scalars is smaller than this at as many steps
            that have nothing to do with them. It is found by shifting the finding in time.
        steps: How many of the finding's steps were compared.
        others: With how many other ones.
        findings: How often findings are there: the largest difference between `share` and `elsewhere` first.
    """

    target: str
    ranked: tuple[CoOccurrence, ...]
    chance: float
    steps: int
    others: int
    findings: tuple[FindingRate, ...] = ()


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of values: of a scalar, or of one measure of a series."""

    what: Series | str
    measure: str


@dataclass(frozen=True, slots=True)
class Condition:
    """Steps at which something is above or below a limit.

    Attributes:
        what: A series, or the name of a scalar.
        above: It holds where the value is larger; None for no such limit.
        below: It holds where the value is smaller; None for no such limit.
        measure: Of a series: which of its measures.
    """

    what: Series | str
    above: float | None = None
    below: float | None = None
    measure: str = "size"

    @property
    def name(self) -> str:
        """In words."""
        what = self.what if isinstance(self.what, str) else f"{self.what.module}, {self.what.path}, {self.measure}"
        limits = [
            f"{word} {limit:g}" for word, limit in (("above", self.above), ("below", self.below)) if limit is not None
        ]
        return f"{what} {' and '.join(limits)}"

    def holds(self, values: Floats) -> Flags:
        """At which of `values` the condition holds. It does not hold at NaN."""
        found: Flags = np.isfinite(values)
        if self.above is not None:
            found = found & (values > self.above)
        return found & (values < self.below) if self.below is not None else found


def find_cooccurrences(
    model: ModelRecord, first: int, last: int, *, name: str, findings: Sequence[Finding] = ()
) -> CoOccurrences:
    """Rank what is unusual at the steps from `first` to `last`; see `Model.related`. `name` is what lasts so long."""
    steps = model.steps
    frames, during = _frames(model, (steps >= first) & (steps <= last))
    return _at_steps_of(model, frames, during, name=name, findings=findings)


def find_conditional(model: ModelRecord, condition: Condition, findings: Sequence[Finding] = ()) -> CoOccurrences:
    """Rank what is unusual at the steps at which `condition` holds; see `Model.related`."""
    steps, what = model.steps, condition.what
    if isinstance(what, str):
        scalar = model.scalar(what)
        if not np.isfinite(scalar.values).any():
            raise NotFoundError(f"Scalar {what!r} has no finite value, so {condition.name} holds nowhere.")
        holds = condition.holds(at_steps(scalar, steps))
    else:
        history = model.history(what)
        measured = measures_of(history.statistics.T)[MEASURES.index(condition.measure)]
        measured = np.exp(measured) if condition.measure in LOGARITHMS else measured
        holds = np.zeros(len(steps), dtype=np.bool_)
        holds[history.frames] = condition.holds(measured)
    frames, during = _frames(model, holds)
    return _at_steps_of(model, frames, during, name=condition.name, findings=findings)


def _at_steps_of(
    model: ModelRecord, frames: Ints, during: Flags, *, name: str, findings: Sequence[Finding]
) -> CoOccurrences:
    if not during.any():
        raise NotFoundError(
            f"{name} is at none of the recorded steps. Choose a finding of this model, or another limit."
        )
    if (~during).sum() < LEAST_OTHERS:
        raise NotFoundError(
            f"{name} is at {during.sum()} of {len(during)} recorded steps. To say what is unusual then, at least "
            f"{LEAST_OTHERS} other steps are needed to compare with."
        )
    columns, values = _values(model, frames)
    masks = _shifted(during)
    scores, chance = _scores(_standardized(columns, values), masks)
    order = _once_each(model, columns, np.argsort(-np.abs(scores), kind="stable"))
    when = model.steps[frames], during
    ranked = (_facts(columns[at], values[:, at], float(scores[at]), when=when, chance=chance) for at in order)
    rates = tuple(_rates(model.steps[frames], masks, findings))
    return CoOccurrences(name, tuple(ranked), chance, int(during.sum()), int((~during).sum()), rates)


def _rates(steps: Ints, masks: Floats, findings: Sequence[Finding]) -> list[FindingRate]:
    """How often each finding is there at the steps of the first of `masks`, those of the largest difference first."""
    if not findings:
        return []
    is_there = np.stack([(steps >= one.step) & (steps <= one.last_step) for one in findings]).astype(np.float64)
    shares = is_there @ masks.T / masks.sum(axis=1)
    elsewhere = is_there @ (1 - masks[0]) / (1 - masks[0]).sum()
    chance = np.quantile(shares[:, 1:], CONFIDENCE, axis=1)
    order = np.argsort(-(shares[:, 0] - elsewhere), kind="stable").tolist()
    facts = zip(findings, shares[:, 0].tolist(), elsewhere.tolist(), chance.tolist(), strict=True)
    rates = [FindingRate(one, share, other, most, share > most) for one, share, other, most in facts]
    return [rates[at] for at in order]


def finding_name(finding: Finding) -> str:
    """The kind and the place of a finding, in words."""
    place = [finding.module or "the model", finding.path] if finding.module is not None else ["the run"]
    return f"{finding.kind} of {', '.join(filter(None, place))}"


def _frames(model: ModelRecord, wanted: Flags) -> tuple[Ints, Flags]:
    """The frames to read, and which of them are `wanted`.

    They are frames at equal distance: some of all frames, of the wanted ones, and of those before the first wanted one.
    """
    most = min(MOST_STEPS, max(4 * LEAST_OTHERS, MOST_CELLS // max(2 * len(model.series), 1)))
    there = np.flatnonzero(wanted)
    start = int(there[0]) if len(there) else 0
    parts = (np.arange(len(wanted)), there, np.arange(max(0, start - BEFORE), start))
    frames = np.unique(np.concatenate([part[:: max(1, -(-len(part) // most))] for part in parts]))
    return frames, wanted[frames]


def _values(model: ModelRecord, frames: Ints) -> tuple[list[_Column], Floats]:
    """All columns, and their values, `[steps, columns]`. The columns of one series are neighbours."""
    measured = measures_of(model.statistics(frames))
    of_series = np.stack([measured[MEASURES.index(name)] for name in FLOORS], axis=2)
    columns = [_Column(one, name) for one in model.series for name in FLOORS]
    scalars = {name: found for name, found in model.scalars().items() if np.isfinite(found.values).any()}
    steps = model.steps[frames]
    lines = [at_steps(scalar, steps)[:, None] for scalar in scalars.values()]
    values = np.concatenate([of_series.reshape(len(frames), -1), *lines], axis=1)
    return columns + [_Column(name, "value") for name in scalars], values


def at_steps(scalar: Scalar, steps: Ints) -> Floats:
    """The values of a scalar at `steps`, interpolated linearly between its finite values."""
    is_there = np.isfinite(scalar.values)
    found: Floats = np.interp(steps, scalar.steps[is_there], scalar.values[is_there])
    return found


def _standardized(columns: list[_Column], values: Floats) -> Floats:
    """The distance of each value from the median of its column, in robust standard deviations; 0 for NaN."""
    floors = np.array([FLOORS.get(one.measure, 1e-12) for one in columns])
    median = _median(values)
    spread = np.maximum(_NORMAL * _median(np.abs(values - median)), floors)
    most = np.array([2 * FARTHEST if one.measure == "nonfinite" else FARTHEST for one in columns])
    distances: Floats = np.nan_to_num(np.clip((values - median) / spread, -most, most), nan=0.0)
    return distances


def _median(values: Floats) -> Floats:
    """The median over the steps, of the values that are not NaN; 0 without any."""
    ordered = np.sort(values, axis=0)  # NaN last
    count = (~np.isnan(values)).sum(axis=0)
    found: Floats = np.take_along_axis(ordered, np.maximum(count - 1, 0)[None] // 2, axis=0)[0]
    return np.nan_to_num(found, nan=0.0)


def _shifted(during: Flags) -> Floats:
    """`during` as the first row, then `during` rolled by random numbers of steps, `[1 + SHIFTS, steps]`."""
    by = np.random.default_rng(0).integers(1, len(during), SHIFTS)
    return np.stack([during, *(np.roll(during, one) for one in by)]).astype(np.float64)


def _scores(standardized: Floats, masks: Floats) -> tuple[Floats, float]:
    """The score of each column at the steps of the first of `masks`, and the score that chance gives.

    The other masks, which are shifted in time, show what chance gives.
    """
    weights = masks / masks.sum(axis=1, keepdims=True) - (1 - masks) / (1 - masks).sum(axis=1, keepdims=True)
    found: Floats = weights @ standardized
    return found[0], float(np.quantile(np.abs(found[1:]).max(axis=1, initial=0.0), CONFIDENCE))


def _once_each(model: ModelRecord, columns: list[_Column], order: Ints) -> list[int]:
    """The best column of each series and scalar, in `order`, without series that share their numbers with another."""
    best: dict[Series | str, int] = {}
    for at in order.tolist():
        best.setdefault(columns[at].what, at)
    place = {one: number for number, one in enumerate(best)}
    series = sorted(
        (one for one in best if isinstance(one, Series)), key=lambda one: (is_no_output([one])[0], place[one])
    )
    kept = set(once_each(model.frame(-1), np.array([one.id for one in series], dtype=np.int64)))
    return [at for one, at in best.items() if isinstance(one, str) or one.id in kept]


def _facts(column: _Column, values: Floats, score: float, *, when: tuple[Ints, Flags], chance: float) -> CoOccurrence:
    steps, during = when
    sign = 1.0 if score >= 0 else -1.0
    directed = sign * values
    others = directed[~during & ~np.isnan(directed)]
    limit = float(np.quantile(others, USUAL)) if len(others) else np.inf
    is_beyond = directed > limit
    first = int(np.flatnonzero(during)[0])
    before = is_beyond[:first][::-1]
    length = len(before) if before.all() else int(np.argmin(before))
    ahead = int(steps[first] - steps[first - length]) if length else 0
    share, elsewhere = float(is_beyond[during].mean()), float(is_beyond[~during].mean())
    return CoOccurrence(column.what, column.measure, score, share, elsewhere, ahead, abs(score) > chance)
