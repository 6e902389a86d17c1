"""Finds gradients that add up, are cleared too early, or clipped too much or too late, and weights that decay too much.

The evidence is what the live training recorded of each update: the gradients' norms before and after clipping, the
parameters with gradients from before, and the groups of the optimizers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import (
    by_optimizers,
    facts_at,
    module_around,
    numbers_of,
    operations,
    rows_with,
    turns_with,
)
from torchgraph_explorer.findings.rules.participation import moved_and_stuck
from torchgraph_explorer.findings.rules.penalties import penalty_dominates
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, listed, named
from torchgraph_explorer.schema import ParameterGroup, TrainingFacts

Floats = npt.NDArray[np.float64]

LEFTOVER_SHARE = 0.5
"""Least share of the recorded updates with gradients from before the last update, if the loop does not clear them."""

CLIPPED = 0.05
"""Largest share of the gradient's norm that clipping leaves, in the median of the steps, if it clips too much."""

CLIPPED_ADAPTIVE = 1e-3
"""As `CLIPPED`, where all optimizers divide by the usual size of gradients: larger shares are in use on purpose."""

ADAPTIVE = ("Adam", "Adamax", "Lion", "Muon", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "LAMB", "Prodigy")
"""Parts of the names of optimizers that divide by the usual size of gradients, as in `AdamW8bit` or `FusedAdam`."""

CLIPPED_SHARE = 0.95
"""Least share of the recorded steps at which gradients are clipped, or cleared, to be reported."""

SAME_SHARE, OFTEN_WHOLE = 1e-3, 0.1
"""Gradients may be divided by a number at all steps. Then the share of the norm that is left at steps that are not
clipped is the same, up to the first value; and the second value is the least share of such steps."""

LEAST_CLIPPED = 4
"""Fewest recorded steps at which gradients are clipped, or cleared, to be reported."""

LATE_SHARE = 0.5
"""Least share of the recorded updates after which gradients are multiplied, if clipping comes too late."""

SAME_GRADIENT = 0.02
"""Largest difference between a gradient and a multiple of another one, over its largest element, that is rounding: that
of bfloat16. What a further backward pass adds differs by more."""

LEAST_GRADIENT = 1e-5
"""Largest element of a gradient from which on weights are seen to change by it, whatever the optimizer."""

MOST_CLIPPED = 1e18
"""Largest norm whose square is finite in float32. Clipping multiplies gradients with a larger one by zero."""

TOLERANCE = 1e-3
"""A norm that is smaller by less than this share is taken for rounding, not clipping."""

DECAY_RATIO = 1.0
"""Least ratio of decay to gradient that is too large, where the decay is added to the gradient: in the median of the
first quarter of the steps, or of those up to where the weights have shrunk."""

DECOUPLED_RATIO = 0.5
"""Least ratio of decay to update that is too large, where the decay is applied to the weights; at the same steps."""

DECAYED = 0.1
"""Least learning rate times weight decay that is too large: the share of the weights that a decoupled decay takes at
each update."""

SHRUNK = 0.8
"""Largest norm of the weights at the end, over that at the beginning, of weights that have shrunk."""


def no_zero_grad(evidence: Evidence) -> Iterator[Finding]:
    """Gradients of one step are added to those of the steps before."""
    all_known = rows_with(evidence, lambda facts: facts.leftover is not None)
    turns = by_optimizers(evidence, all_known)
    left = {key: [row for row in rows if facts_at(evidence, row).leftover] for key, rows in turns.items()}
    least = LEAST_ROWS if len(turns) > 1 else 1
    kept = [key for key, rows in left.items() if len(rows) >= max(least, LEFTOVER_SHARE * len(turns[key]))]
    rows, known = (sorted(row for key in kept for row in among[key]) for among in (left, turns))
    if not rows:
        return
    names = facts_at(evidence, rows[-1]).leftover or ()
    held = {name for group in facts_at(evidence, rows[-1]).groups for name in group.parameters}
    module = None if len(known) == len(all_known) and held <= {*names} else module_around(names)
    whose = "All gradients are" if module is None else f"The gradients of {named(module)} are"
    yield finding(
        evidence,
        "no-zero-grad",
        "error",
        at=module,
        rows=rows,
        numbers={"updates": len(rows), "known": len(known), "parameters": len(names)},
        text=f"{whose} added to those of earlier steps, which were not cleared after their update, at {len(rows)} of "
        f"{len(known)} recorded updates. Each update follows the sum of all batches so far.",
        advice="Call `optimizer.zero_grad()` once for each update, before `backward()`. To accumulate gradients over "
        "micro-batches, call it after each `optimizer.step()`.",
    )


def gradients_cleared(evidence: Evidence) -> Iterator[Finding]:
    """The backward passes leave gradients, and these are zero or gone when the optimizer steps."""
    updates = {row for row, facts in enumerate(evidence.facts) if facts is not None and facts.end == "update"}
    known = [row for row in rows_with(evidence, lambda facts: facts.gradient_norm is not None) if row in updates]
    without = _without_gradient(evidence, updates)
    rows = [row for row in known if _is_gone(facts_at(evidence, row))] + without
    known += without
    cleared = {*rows}
    known = [row for turn in turns_with(evidence, known, lambda rows: _is_mostly(cleared, rows)) for row in turn]
    rows = sorted(cleared & {*known})
    if not rows:
        yield from _cleared_in_between(evidence, updates)
        return
    yield finding(
        evidence,
        "gradients-cleared",
        "error",
        at=None,
        rows=rows,
        numbers={"updates": len(rows), "known": len(known)},
        text=f"At {len(rows)} of {len(known)} recorded updates, the backward pass leaves gradients, but none is left "
        "when the optimizer steps. Something clears them between the two.",
        advice="Call `optimizer.zero_grad()` before `backward()` or after `optimizer.step()`, not between the two.",
    )


def _without_gradient(evidence: Evidence, updates: set[int]) -> list[int]:
    """The updates of those optimizers that had no gradient at any, and never changed a weight that got some."""
    moved, stuck = moved_and_stuck(evidence)
    stepped = [row for row in rows_with(evidence, _is_stepped) if row in updates]
    found: list[int] = []
    for rows in by_optimizers(evidence, stepped).values() if stuck else ():
        groups = [group for row in rows for group in facts_at(evidence, row).groups]
        modules = {name.rpartition(".")[0] for group in groups for name in group.parameters}
        is_known = any(facts_at(evidence, row).gradient_norm is not None for row in rows)
        if not is_known and modules & stuck and not modules & moved:
            found += [row for row in rows if _has_gradient(evidence, row)]
    return found


def _is_mostly(rows: set[int], known: Sequence[int], *, share: float = CLIPPED_SHARE) -> bool:
    """Whether `share` of the updates `known` are among `rows`, and enough of them."""
    found = sum(row in rows for row in known)
    return found >= LEAST_CLIPPED and found >= share * len(known)


def _cleared_in_between(evidence: Evidence, updates: set[int]) -> Iterator[Finding]:
    """Report that the gradients of all backward passes before an update are cleared, but for those of the last one."""
    seen = {row: cleared.numbers for row, cleared in operations(evidence, "cleared") if row in updates}
    cleared = {row for row, (passes, times, *_) in seen.items() if times == passes - 1}
    turns = turns_with(evidence, sorted(updates), lambda rows: _is_mostly(cleared, rows))
    known = sorted(row for turn in turns for row in turn)
    rows = [row for row in known if row in cleared]
    if not rows:
        return
    passes = int(np.median([seen[row][0] for row in rows]))
    yield finding(
        evidence,
        "gradients-cleared",
        "warning",
        at=None,
        rows=rows,
        numbers={"updates": len(rows), "passes": passes},
        text=f"Only the last of {passes} backward passes before an update counts: the gradients of each earlier pass "
        f"are gone when the next one begins. This is so at {len(rows)} of {len(known)} recorded updates.",
        advice="Call `optimizer.zero_grad()` once for each update, not for each micro-batch or each loss.",
    )


def _is_gone(facts: TrainingFacts) -> bool:
    """Whether the backward passes of a step left a gradient, and none is left when the optimizer steps.

    Gradients with an infinite square do not count: clipping makes zeros of them.
    """
    return 0 < (facts.gradient_norm or 0) < MOST_CLIPPED and facts.clipped_norm == 0


def _is_stepped(facts: TrainingFacts) -> bool:
    """Whether an optimizer with a learning rate other than zero steps parameters of the model."""
    return any(group.parameters and group.learning_rate for group in facts.groups)


def _has_gradient(evidence: Evidence, row: int) -> bool:
    """Whether any parameter has a gradient at a row that is large enough for its update to show."""
    return bool(np.nanmax(evidence.peaks[row, evidence.of_kind("grad", "param")], initial=0) > LEAST_GRADIENT)


def clipping_always(evidence: Evidence) -> Iterator[Finding]:
    """Clipping takes away nearly all of the gradient, at nearly every step."""
    known = rows_with(evidence, lambda facts: bool(facts.gradient_norm) and facts.clipped_norm is not None)
    turns = turns_with(evidence, known, lambda rows: _is_clipped_too_much(evidence, rows))
    if not turns:
        return
    rows = sorted(row for rows in turns for row in rows)
    clipped = float(np.median([facts_at(evidence, row).clipped_norm or 0 for row in rows]))
    remains = np.concatenate([_remaining(evidence, rows) for rows in turns])
    is_clipped = remains < 1 - TOLERANCE
    steps = sorted(np.concatenate(turns)[is_clipped])
    facts = [facts_at(evidence, row) for row in rows]
    is_divided = all(map(is_adaptive, facts))
    module, whose = _whose(evidence, rows, known)
    yield finding(
        evidence,
        "clipping-always",
        "info" if is_divided and np.median(remains) > CLIPPED_ADAPTIVE else "warning",
        at=module,
        rows=steps,
        numbers={"remains": np.median(remains), "clipped_norm": clipped, "steps": len(rows)},
        text=f"Clipping shortens the gradient at {is_clipped.mean():.0%} of the recorded updates{whose}, to "
        f"{np.median(remains):.2g} of its norm in the median. {_DIVIDED if is_divided else _LIMITED}",
        advice=f"{_advice_on_scaler(facts)}Raise the limit, from about {clipped:.2g} to the gradient's usual norm"
        f"{'' if is_divided else _AND_LOWER}. If the gradients are larger than they should be, find out why.",
    )


def _is_clipped_too_much(evidence: Evidence, rows: Sequence[int]) -> bool:
    """Whether clipping takes away nearly all of the gradient at nearly all of these updates. Clearing leaves none."""
    if len(rows) < LEAST_CLIPPED:
        return False
    remains = _remaining(evidence, rows)
    return bool((remains < 1 - TOLERANCE).mean() >= CLIPPED_SHARE and 0 < np.median(remains) <= CLIPPED)


def _remaining(evidence: Evidence, rows: Sequence[int]) -> Floats:
    """The share of the gradient's norm that clipping leaves at each of these updates of the same optimizers."""
    known = [facts_at(evidence, row) for row in rows]
    norms = [(facts.gradient_norm or 1, facts.clipped_norm or 0) for facts in known]
    before, after = np.array(norms, dtype=np.float64).T
    return _without_factor(np.where(np.isfinite(after / before), after / before, 1.0), before)


def clipping_after_step(evidence: Evidence) -> Iterator[Finding]:
    """Gradients are multiplied by a number after the update, and then dropped."""
    updates = rows_with(evidence, _is_stepped)
    changes = dict(_late_changes(evidence, updates))
    late = {row for row, (factor, off) in changes.items() if 0 < factor < 1 + TOLERANCE and off < SAME_GRADIENT}
    turns = turns_with(evidence, updates, lambda rows: _is_mostly(late, rows, share=LATE_SHARE))
    known = sorted(row for turn in turns for row in turn)
    rows = [row for row in known if row in late]
    shorter = [changes[row][0] for row in rows if changes[row][0] < 1 - TOLERANCE]
    if not shorter:
        return
    module, whose = _whose(evidence, known, updates)
    yield finding(
        evidence,
        "clipping-after-step",
        "warning",
        at=module,
        rows=rows,
        numbers={"steps": len(rows), "factor": float(np.median(shorter))},
        text=f"After {len(rows)} of {len(known)} recorded updates{whose}, something multiplies the gradients by a "
        f"number (by {np.median(shorter):.2g} in the median of those that get smaller), and they are cleared then. The "
        "optimizer had already used them, so this has no effect.",
        advice="Clip between `backward()` and `optimizer.step()`. With a `GradScaler`, call "
        "`scaler.unscale_(optimizer)` before you clip.",
    )


def _late_changes(evidence: Evidence, updates: Sequence[int]) -> Iterator[tuple[int, tuple[float, ...]]]:
    """The updates whose gradients were changed after them, and how: it is seen in a later step."""
    for row, numbers in numbers_of(evidence, "late"):
        if (before := bisect_left(updates, row)) > 0:
            yield updates[before - 1], numbers


def _whose(evidence: Evidence, rows: Sequence[int], known: Sequence[int]) -> tuple[str | None, str]:
    """The optimizers that made the updates `rows`: the module around their parameters, and their names for a sentence.

    None and nothing if `rows` are all of `known`.
    """
    if len(rows) == len(known):
        return None, ""
    groups = [group for row in rows for group in facts_at(evidence, row).groups]
    names = dict.fromkeys(group.optimizer for group in groups)
    return module_around({name for group in groups for name in group.parameters}), f" of {listed([*names])}"


def _without_factor(remains: Floats, before: Floats) -> Floats:
    """The shares of the norms `before` that clipping leaves, `[steps]`, without what else divides the gradients.

    `remains` are the shares that are left at the update. Where a loop multiplies the loss by a number, and divides the
    gradients by it, the same largest share is left at all steps that are not clipped, however long the gradients are.
    """
    most = remains.max()
    is_unclipped = np.abs(remains - most) <= SAME_SHARE * most
    varies = before[is_unclipped].max() > (1 + 10 * SAME_SHARE) * before[is_unclipped].min()
    is_often = is_unclipped.sum() >= LEAST_CLIPPED and is_unclipped.mean() > OFTEN_WHOLE
    return remains / most if most > 0 and varies and is_often else remains


def _advice_on_scaler(known: Sequence[TrainingFacts]) -> str:
    """What to check first where a `GradScaler` has a scale above 1; empty without one."""
    scales = [facts.loss_scale for facts in known if facts.loss_scale is not None and facts.loss_scale > 1]
    if not scales:
        return ""
    return (
        "Call `scaler.unscale_(optimizer)` before you clip, if you do not do so yet: without it, the limit applies to "
        f"gradients that are {scales[-1]:g} times as large. Otherwise: "
    )


_AND_LOWER = ", and lower the learning rate by the same factor, since updates grow with the limit"
_LIMITED = "The limit, and not the learning rate, decides how far each update goes."
_DIVIDED = (
    "The optimizer divides by the usual size of gradients, so updates are not smaller. But all batches count the same, "
    "however large their gradients are."
)


def is_adaptive(facts: TrainingFacts) -> bool:
    """Whether all optimizers of an update divide by the usual size of gradients, by their names."""
    names = {group.optimizer.lower() for group in facts.groups}
    return bool(names) and all(any(word.lower() in name for word in ADAPTIVE) for name in names)


def weight_decay_dominates(evidence: Evidence) -> Iterator[Finding]:
    """The weights shrink by weight decay more than the gradient moves them, from the beginning."""
    yield from penalty_dominates(evidence)
    rows = rows_with(evidence, lambda facts: any(group.weight_decay for group in facts.groups))
    if len(rows) < LEAST_ROWS:
        return
    every = [(row, _decay(evidence, row)) for row in rows]
    known = [(row, decay) for row, decay in every if np.isfinite(decay.ratio)]
    decays = [decay for _, decay in known]
    early = decays[: max(LEAST_ROWS, min(len(known) // 4, _until_shrunk([decay.norm for decay in decays])))]
    if len(known) < LEAST_ROWS:
        return
    ratio, limit = np.median([decay.ratio for decay in early]), np.median([decay.limit for decay in early])
    first, last = decays[0].norm, decays[-1].norm
    is_shrunk = last <= SHRUNK * first and ratio >= limit
    if not is_shrunk and not _takes_a_tenth(facts_at(evidence, rows[0])):
        return
    strongest = max(group.weight_decay or 0 for group in facts_at(evidence, rows[0]).groups)
    yield finding(
        evidence,
        "weight-decay-dominates",
        "warning",
        at=None,
        rows=[row for row, decay in known if not is_shrunk or decay.ratio > limit],
        numbers={"ratio": ratio, "weight_decay": strongest, "norm_first": first, "norm_last": last},
        text=f"At first, a weight decay of {strongest:g} pulls the weights to zero {ratio:.2g} times as hard as the "
        f"gradient moves them. Their norm was {first:.3g} then, and is {last:.3g} at the end.",
        advice="Lower `weight_decay`: 0.01 to 0.1 is usual with AdamW, 1e-4 with SGD and Adam.",
    )


def _takes_a_tenth(facts: TrainingFacts) -> bool:
    """Whether decay takes a tenth of the weights of a group at each update: they only keep the last few updates."""
    return any(
        group.is_decoupled and (group.learning_rate or 0) * (group.weight_decay or 0) >= DECAYED
        for group in facts.groups
    )


def _until_shrunk(norms: list[float]) -> int:
    """How many norms there are up to the first that has shrunk. Weights that have shrunk hardly decay any more."""
    return next((row for row, norm in enumerate(norms) if norm < SHRUNK * norms[0]), len(norms)) + 1


class _Decay(NamedTuple):
    """The weight decay of the matrices of a parameter group, at one step.

    Attributes:
        ratio: The norm of what decay takes, over that of the gradient or of the update; NaN if it is not known.
        limit: The ratio from which on decay is too strong.
        norm: The norm of the weights.
    """

    ratio: float
    limit: float
    norm: float


def _decay(evidence: Evidence, row: int) -> _Decay:
    """The decay at one row of the parameter group with the largest ratio, over its limit."""
    strongest = _Decay(float("nan"), DECAY_RATIO, float("nan"))
    for group in facts_at(evidence, row).groups:
        if not group.weight_decay:
            continue
        found = _decay_of(evidence, row, group)
        if not np.isfinite(strongest.ratio) or found.ratio / found.limit > strongest.ratio / strongest.limit:
            strongest = found
    return strongest


def _decay_of(evidence: Evidence, row: int, group: ParameterGroup) -> _Decay:
    """The decay of a parameter group at one row.

    Where it is applied to the weights and the update is not recorded, each element is taken to move by the learning
    rate, as Adam's do.
    """
    norms: dict[str, list[float]] = {"value": [], "grad": [], "update": []}
    elements = 0.0
    for name in group.parameters:
        module, _, path = name.rpartition(".")
        columns = {kind: evidence.find(module, None, "param", path, kind) for kind in norms}  # type: ignore[arg-type]
        value = columns["value"]
        if value is None or dimensions(evidence.places.tensor(evidence.series[value])) < 2:
            continue
        elements += float(evidence.column("count", value)[row])
        for kind, column in columns.items():
            norms[kind].append(float("nan") if column is None else float(evidence.column("l2_norm", column)[row]))
    weights, gradients, updates = (float(np.linalg.norm(norms[kind])) for kind in ("value", "grad", "update"))
    decay = (group.weight_decay or 0) * weights
    if not group.is_decoupled:
        return _Decay(decay / gradients if gradients > 0 else float("nan"), DECAY_RATIO, weights)
    if np.isfinite(updates) and updates > 0 and group.learning_rate:
        return _Decay(group.learning_rate * decay / updates, DECOUPLED_RATIO, weights)
    return _Decay(decay / np.sqrt(elements) if elements else float("nan"), DECOUPLED_RATIO, weights)
