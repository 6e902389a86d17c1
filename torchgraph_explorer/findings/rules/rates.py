"""Finds a schedule that takes the learning rate away long before the end of the training.

The evidence is the learning rates of the optimizers' groups at each step, and the ratios of update to weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, largest_rates
from torchgraph_explorer.findings.rules.loss import is_flat, is_solved, judged
from torchgraph_explorer.findings.rules.ratios import measured_ratios
from torchgraph_explorer.findings.rules.rule import Rows, finding, held
from torchgraph_explorer.findings.rules.updates import SLOW_RATIO, SMALL_RATIO

GONE = 1.0001e-4
"""Largest learning rate that is gone, over the largest one before, with some rounding. Usual updates are 1e-4 to 1e-2
of the weights: float32 keeps hardly anything of updates that are smaller by this factor."""

FALLEN = 1.0001e-2
"""As `GONE`, if the updates are then below `SLOW_RATIO` of the weights, and the loss stays where it began."""

EARLY, MOST_OF_RUN = 1.0001e-3, 0.8
"""As `GONE`, and the least share of the recorded steps, and of the training's, at which it is so: the rate falls that
far within the first fifth of the run, in one stage. Schedules that are meant fall so far near the end, if at all."""

HELD = 0.5
"""Least share of the recorded steps, and of the training's, up to the last one, at which the rate is gone. A usual
schedule that ends at zero is near it for the last few percent."""

LEAST_STEPS = 4
"""Fewest recorded steps whose learning rate is known."""


LEAST_CYCLES, LONGEST_CYCLE = 5, 50
"""Fewest times that the rate falls to `FALLEN` of its peak and comes back, and most updates from one such fall to the
next. Restarts are meant to come after epochs: within so few updates, a network cannot settle even once."""


def learning_rate_gone(evidence: Evidence) -> Iterator[Finding]:
    """The learning rate vanishes: for half of the run or more, or again and again within some updates."""
    yield from _restarts(evidence)
    yield from _gone(evidence)


def _restarts(evidence: Evidence) -> Iterator[Finding]:
    """Report a rate that goes down to nothing and up again within a few updates, time after time."""
    rows, known = largest_rates(evidence)
    if not known or max(known) <= 0 or (np.diff(evidence.steps[rows]) != 1).any():
        return  # between recorded steps, the rate is not known
    rates = np.array(known)
    falls = _falls(rates)
    if len(falls) < LEAST_CYCLES or np.median(np.diff(falls)) > LONGEST_CYCLE:
        return
    every = float(np.median(np.diff(falls)))
    yield finding(
        evidence,
        "learning-rate-gone",
        "warning",
        at=None,
        rows=[rows[at] for at in falls],
        numbers={"largest_rate": float(rates.max()), "cycles": len(falls), "updates": every},
        text=f"The learning rate falls from {rates.max():.3g} to 1 % of that or less and rises again {len(falls)} "
        f"times, every {every:.0f} updates. Schedules with restarts usually take epochs for one cycle.",
        advice="If the schedule counts epochs, call its `step()` once an epoch and not at each batch, or give it "
        "numbers of steps.",
    )


def _falls(rates: npt.NDArray[np.float64]) -> list[int]:
    """The places at which the rate falls to `FALLEN` of the largest one, after it was at half of that or more."""
    found, is_high = [], False
    for at, rate in enumerate(rates.tolist()):
        if rate <= FALLEN * rates.max() and is_high:
            found.append(at)
        is_high = rate >= rates.max() / 2 or (is_high and rate > FALLEN * rates.max())
    return found


def _gone(evidence: Evidence) -> Iterator[Finding]:
    """The learning rates of all optimizers have fallen to next to nothing, and stay there for half of the run."""
    rows, known = largest_rates(evidence)
    if len(rows) < LEAST_STEPS:
        return
    rates = np.array(known)
    kept, limit = _kept(evidence, rows, rates, limit=GONE, ratio=SMALL_RATIO), GONE
    if kept is None and (loss := judged(evidence)) is not None and is_flat(loss):
        kept, limit = _kept(evidence, rows, rates, limit=FALLEN, ratio=SLOW_RATIO), FALLEN
    if kept is None and _are_same_groups(evidence, rows):
        kept, limit = _kept(evidence, rows, rates, limit=EARLY, ratio=np.inf, share=MOST_OF_RUN), EARLY
    if kept is None:
        return
    first, most = int(kept[0]), int(rates.argmax())
    yield finding(
        evidence,
        "learning-rate-gone",
        "info" if is_solved(evidence) else "warning",
        at=None,
        rows=[rows[at] for at in kept],
        numbers={"largest_rate": rates[most], "rate": rates[first], "last_rate": rates[-1], "steps": len(kept)},
        text=f"The learning rate falls from {rates[most]:.3g} at step {evidence.steps[rows[most]]} to "
        f"{rates[first]:.3g} at step {evidence.steps[rows[first]]}, and stays below {limit:.0e} of what it was: "
        f"{len(kept)} of {len(rows)} recorded updates change "
        + ("next to nothing." if limit != EARLY else "little beside the first ones."),
        advice="If the schedule counts epochs, call its `step()` once an epoch and not at each batch, or give it "
        "numbers of steps. Look for a factor that is applied again and again.",
    )


def _are_same_groups(evidence: Evidence, rows: list[int]) -> bool:
    """Whether the same optimizers have the same parameters at all rows: a second stage, as of fine-tuning, has others.

    Such a stage may well have a rate of its own.
    """
    return len({tuple((one.optimizer, one.parameters) for one in facts_at(evidence, row).groups) for row in rows}) == 1


def _kept(
    evidence: Evidence,
    rows: list[int],
    rates: npt.NDArray[np.float64],
    *,
    limit: float,
    ratio: float,
    share: float = HELD,
) -> Rows | None:
    """The indices in `rows`, up to the last one, whose rate is at most `limit` of the largest one before.

    None if they are less than `share` of the run, or if their updates, where known, reach `ratio` of the weights.
    """
    kept = held(rates <= limit * np.maximum.accumulate(rates), evidence.steps[rows], share=share)
    if kept is None or not kept[0]:
        return None
    late = [rows[at] for at in kept]
    return kept if _last_long(evidence, late, share=share) and _are_small(evidence, late, ratio=ratio) else None


def _last_long(evidence: Evidence, rows: list[int], *, share: float) -> bool:
    """Whether the steps from the first of these rows on, recorded or not, are a `share` of the training."""
    steps = evidence.steps
    return bool(steps[-1] - steps[rows[0]] >= share * (steps[-1] - steps[0]))


def _are_small(evidence: Evidence, rows: list[int], *, ratio: float) -> bool:
    """Whether the updates at these rows are below `ratio` of the weights in the median, or were not measured."""
    ratios = measured_ratios(evidence)[rows]
    known = ratios[np.isfinite(ratios)]
    return not len(known) or bool(np.median(known) < ratio)
