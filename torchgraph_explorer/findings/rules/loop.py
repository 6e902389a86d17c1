"""What the training loop does to gradients and weights: leaves gradients in place, clips, and decays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, module_around, operations, rows_with
from torchgraph_explorer.findings.rules.participation import all_unchanged
from torchgraph_explorer.findings.rules.penalties import penalty_dominates
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named
from torchgraph_explorer.schema import ParameterGroup, TrainingFacts

Floats = npt.NDArray[np.float64]

LEFTOVER_SHARE = 0.5
"""Share of the recorded updates to which gradients from before the last one were added."""

CLIPPED = 0.05
"""What remains of the gradient's norm after clipping, in the median."""

CLIPPED_ADAPTIVE = 1e-3
"""The same where all optimizers divide by the usual size of gradients, from below which on it is no recipe."""

ADAPTIVE = ("Adam", "Adamax", "Lion", "Muon", "RMSprop", "Adagrad", "Adadelta", "Adafactor", "LAMB", "Prodigy")
"""Words of the names of such optimizers, as in `AdamW8bit` or `FusedAdam`."""

CLIPPED_SHARE = 0.95
"""Share of the recorded steps at which it is clipped at all."""

SAME_SHARE, OFTEN_WHOLE = 1e-3, 0.1
"""How nearly the same share is left of gradients, and at which share of the steps, where they are only divided."""

LEAST_CLIPPED = 4

LEAST_GRADIENT = 1e-5
"""Largest element of a gradient by which weights change, whatever the optimizer."""

MOST_CLIPPED = 1e18
"""Norms from about here on are infinite where they are computed in float32, as a limit over such a norm is zero."""

TOLERANCE = 1e-3
"""A norm that is smaller by less than this share is taken for rounding."""

DECAY_RATIO = 1.0
"""Decay over gradient, in the median of the first quarter of the steps, or up to where the norm has shrunk, where the
decay is added to the gradient."""

DECOUPLED_RATIO = 0.5
"""Decay over what a step changes, likewise, where the decay is applied to the weights."""

DECAYED = 0.1
"""Learning rate times weight decay: the share of the weights that a decoupled decay takes at each update."""

SHRUNK = 0.8
"""The norm of the weights at the end over that at the beginning, at most."""


def no_zero_grad(evidence: Evidence) -> Iterator[Finding]:
    """Gradients of one step are added to those of the steps before."""
    known = rows_with(evidence, lambda one: one.leftover is not None)
    rows = [row for row in known if facts_at(evidence, row).leftover]
    if not rows or len(rows) < LEFTOVER_SHARE * len(known):
        return
    names = facts_at(evidence, rows[-1]).leftover or ()
    held = {name for one in facts_at(evidence, rows[-1]).groups for name in one.parameters}
    module = None if held <= {*names} else module_around(names)
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
    """Gradients come back, and are zero or gone when the optimizer steps."""
    updates = {row for row, one in enumerate(evidence.facts) if one is not None and one.end == "update"}
    known = [row for row in rows_with(evidence, lambda one: one.gradient_norm is not None) if row in updates]
    rows = [row for row in known if _is_gone(facts_at(evidence, row))]
    if not known and all_unchanged(evidence):  # the optimizer had no gradient at any step
        rows = [row for row in rows_with(evidence, _is_stepped) if row in updates and _has_gradient(evidence, row)]
        known = rows
    if len(rows) < LEAST_CLIPPED or len(rows) < CLIPPED_SHARE * len(known):
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


def _cleared_in_between(evidence: Evidence, updates: set[int]) -> Iterator[Finding]:
    """Of several backward passes before an update, all but the last one are cleared."""
    seen = {row: one.numbers for row, one in operations(evidence, "cleared") if row in updates}
    rows = [row for row, (passes, cleared, *_) in seen.items() if cleared == passes - 1]
    if len(rows) < LEAST_CLIPPED or len(rows) < CLIPPED_SHARE * len(updates):
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
        f"are gone when the next one begins. This is so at {len(rows)} of {len(updates)} recorded updates.",
        advice="Call `optimizer.zero_grad()` once for each update, not for each micro-batch or each loss.",
    )


def _is_gone(facts: TrainingFacts) -> bool:
    """Whether a gradient was there, and none is left. One whose square is not finite is clipped to nothing, too."""
    return 0 < (facts.gradient_norm or 0) < MOST_CLIPPED and facts.clipped_norm == 0


def _is_stepped(facts: TrainingFacts) -> bool:
    return any(group.parameters and group.learning_rate for group in facts.groups)


def _has_gradient(evidence: Evidence, row: int) -> bool:
    """Whether there was one, and not only so small that no update of it shows."""
    return bool(np.nanmax(evidence.peaks[row, evidence.of_kind("grad", "param")], initial=0) > LEAST_GRADIENT)


def clipping_always(evidence: Evidence) -> Iterator[Finding]:
    """Clipping takes away nearly all of the gradient, at nearly every step."""
    rows = rows_with(evidence, lambda one: bool(one.gradient_norm) and one.clipped_norm is not None)
    if len(rows) < LEAST_CLIPPED:
        return
    norms = [(one.gradient_norm or 1, one.clipped_norm or 0) for one in (facts_at(evidence, row) for row in rows)]
    before, after = np.array(norms, dtype=np.float64).T
    remains = _without_factor(np.where(np.isfinite(after / before), after / before, 1.0), before)
    is_clipped = remains < 1 - TOLERANCE
    if is_clipped.mean() < CLIPPED_SHARE or not 0 < np.median(remains) <= CLIPPED:  # none is left by clearing
        return
    clipped, is_divided = float(np.median(after)), all(_is_adaptive(facts_at(evidence, row)) for row in rows)
    yield finding(
        evidence,
        "clipping-always",
        "info" if is_divided and np.median(remains) > CLIPPED_ADAPTIVE else "warning",
        at=None,
        rows=np.array(rows)[is_clipped],
        numbers={"remains": np.median(remains), "clipped_norm": clipped, "steps": len(rows)},
        text=f"Clipping shortens the gradient at {is_clipped.mean():.0%} of the recorded steps, to "
        f"{np.median(remains):.2g} of its norm in the median. {_DIVIDED if is_divided else _LIMITED}",
        advice=f"{_scaled([facts_at(evidence, row) for row in rows])}Raise the limit, from about {clipped:.2g} to the "
        "gradient's usual norm, or lower the learning rate instead. If the gradients are larger than they should be, "
        "find out why.",
    )


def _without_factor(remains: Floats, before: Floats) -> Floats:
    """What clipping leaves, if the gradients are also divided by a number, as where the loss was multiplied by it.

    At the steps that are not clipped, the same share is left of gradients of different lengths.
    """
    most = remains.max()
    is_whole = np.abs(remains - most) <= SAME_SHARE * most
    varies = before[is_whole].max() > (1 + 10 * SAME_SHARE) * before[is_whole].min()
    return (
        remains / most
        if most > 0 and varies and is_whole.sum() >= LEAST_CLIPPED and is_whole.mean() > OFTEN_WHOLE
        else remains
    )


def _scaled(known: Sequence[TrainingFacts]) -> str:
    """What to do first under a GradScaler whose scale is larger than what is left of the gradient says."""
    scales = [one.loss_scale for one in known if one.loss_scale is not None and one.loss_scale > 1]
    if not scales:
        return ""
    return (
        "Call `scaler.unscale_(optimizer)` before you clip, if you do not do so yet: without it, the limit applies to "
        f"gradients that are {scales[-1]:g} times as large. Otherwise: "
    )


_LIMITED = "The limit, and not the learning rate, decides how far each update goes."
_DIVIDED = (
    "The optimizer divides by the usual size of gradients, so updates are not smaller. But all batches count the same, "
    "however large their gradients are."
)


def _is_adaptive(facts: TrainingFacts) -> bool:
    names = {group.optimizer.lower() for group in facts.groups}
    return bool(names) and all(any(word.lower() in name for word in ADAPTIVE) for name in names)


def weight_decay_dominates(evidence: Evidence) -> Iterator[Finding]:
    """The weights shrink by weight decay more than the gradient moves them, from the beginning."""
    yield from penalty_dominates(evidence)
    rows = rows_with(evidence, lambda one: any(group.weight_decay for group in one.groups))
    if len(rows) < LEAST_ROWS:
        return
    pairs = [(row, *_decay(evidence, row)) for row in rows]
    told = [(row, ratio, limit, norm) for row, ratio, limit, norm in pairs if np.isfinite(ratio)]
    early = told[: max(LEAST_ROWS, min(len(told) // 4, _until_shrunk([one[3] for one in told])))]
    if len(told) < LEAST_ROWS:
        return
    ratio, limit = np.median([one[1] for one in early]), np.median([one[2] for one in early])
    is_shrunk = told[-1][3] <= SHRUNK * told[0][3] and ratio >= limit
    if not is_shrunk and not _takes_a_tenth(facts_at(evidence, rows[0])):
        return
    decay = max(group.weight_decay or 0 for group in facts_at(evidence, rows[0]).groups)
    yield finding(
        evidence,
        "weight-decay-dominates",
        "warning",
        at=None,
        rows=[one[0] for one in told if not is_shrunk or one[1] > limit],
        numbers={"ratio": ratio, "weight_decay": decay, "norm_first": told[0][3], "norm_last": told[-1][3]},
        text=f"At first, a weight decay of {decay:g} pulls the weights to zero {ratio:.2g} times as hard as the "
        f"gradient moves them. Their norm was {told[0][3]:.3g} then, and is {told[-1][3]:.3g} at the end.",
        advice="Lower `weight_decay`: 0.01 to 0.1 is usual with AdamW, 1e-4 with SGD and Adam.",
    )


def _takes_a_tenth(facts: TrainingFacts) -> bool:
    """Whether decay alone takes a tenth of the weights at each update: these only know the last few steps."""
    return any(
        one.is_decoupled and (one.learning_rate or 0) * (one.weight_decay or 0) >= DECAYED for one in facts.groups
    )


def _until_shrunk(norms: list[float]) -> int:
    """The rows up to the first with a norm that has shrunk: later, what is left of the weights hardly decays."""
    return next((row for row, norm in enumerate(norms) if norm < SHRUNK * norms[0]), len(norms)) + 1


def _decay(evidence: Evidence, row: int) -> tuple[float, float, float]:
    """Decay over gradient or step of the matrices that decay, its limit, and their norm, at one row."""
    best = (float("nan"), DECAY_RATIO, float("nan"))
    for group in facts_at(evidence, row).groups:
        if not group.weight_decay:
            continue
        found = _decay_of(evidence, row, group)
        if not np.isfinite(best[0]) or found[0] / found[1] > best[0] / best[1]:
            best = found
    return best


def _decay_of(evidence: Evidence, row: int, group: ParameterGroup) -> tuple[float, float, float]:
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
        return decay / gradients if gradients > 0 else float("nan"), DECAY_RATIO, weights
    if np.isfinite(updates) and updates > 0 and group.learning_rate:
        return group.learning_rate * decay / updates, DECOUPLED_RATIO, weights
    return decay / np.sqrt(elements) if elements else float("nan"), DECOUPLED_RATIO, weights  # steps of 1, as Adam's
