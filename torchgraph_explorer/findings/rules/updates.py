"""Finds updates of the weights that are too small to learn, too large to settle, or skipped again and again.

The evidence is the recorded ratios of update to weight; without these, how statistics of the weights change; and how
each step ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.attention import attention_logits_growing
from torchgraph_explorer.findings.rules.facts import largest_rates, rates_rise
from torchgraph_explorer.findings.rules.growth import exploding_activation
from torchgraph_explorer.findings.rules.learning import learns
from torchgraph_explorer.findings.rules.left_scale import factor_in_gradients
from torchgraph_explorer.findings.rules.loss import is_flat, judged, loss_diverging
from torchgraph_explorer.findings.rules.participation import all_unchanged, none_has_gradient
from torchgraph_explorer.findings.rules.ratios import measured_matrices, measured_ratios, trained_matrices
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, listed, share_of_training
from torchgraph_explorer.findings.rules.sure_policies import policy_is_sure
from torchgraph_explorer.findings.rules.zero_gradients import rows_of_zeros
from torchgraph_explorer.schema import Series

SMALL_RATIO = 5e-6
"""Nothing is learned if the ratio of the norms of update and weight never reaches this."""

NO_LOSS, LEAST_ZEROS = 1e-6, 8
"""Largest magnitude of a logged loss that is zero but for rounding, and fewest values that are."""

SLOW_RATIO = 3e-5
"""Nothing is learned if the median of that ratio over the run does not reach this, and the logged loss stays where it
began."""

LARGE_RATIO = 0.1
"""Largest ratio of the norms of update and weight, in the median of the weights, that is not too large."""

LARGE_SHARE = 0.3
"""Least share of the recorded steps with updates that are too large, to be reported."""

LEAST_UPDATES = 25
"""Fewest steps from the first to the last recorded one after which such a share is reported: in the first updates, Adam
moves each element by the whole learning rate, and weights that begin small grow."""

REPLACING_RATIO = 1.0
"""Largest ratio of a single update that is not reported by itself: beyond it, the update is larger than the weights."""

FOLLOWING = (exploding_activation, attention_logits_growing, loss_diverging, policy_is_sure)
"""Rules for what large updates lead to. Fewer large updates are reported if one of these finds something after them."""

SKIPPED_SHARE = 0.3
"""Least share of the recorded steps whose update was skipped, to be reported."""

LEAST_SKIPPED = 3
"""Fewest recorded steps whose update was skipped, to be reported."""

LEAST_SCALE = 1.0
"""Least loss scale of a scaler that works: a smaller one makes gradients smaller, not larger."""

STILL = 1e-5
"""Largest change of any statistic of the weights over the whole run, over their standard deviation at first, of weights
that stay the same."""

LEAST_STEPS = 30
"""Fewest steps from the first to the last recorded one of a run whose weights are said to stay the same."""

MOST_PERCENT = 10.0
"""Update over weights from which on a sentence gives no percentage."""

KNOWN_SHARE = 0.5
"""Least share of the training that `LARGE_SHARE` is of, where updates are known of a smaller part of it."""

FIRST_SHARE = 0.1
"""The share of the training that counts as its beginning."""

SEARCHING = "LBFGS"
"""Class of optimizers that search for the length of each update: the first ones may well replace the weights."""

OF_CURVATURE = ("ngd", "adahessian")
"""Classes of optimizers, in small letters, that divide by an estimate of the curvature: GPyTorch's natural gradients,
and AdaHessian. Their first updates may well replace the weights."""

OF_LENGTH = "muon"
"""Part of the names of optimizers, in small letters, whose updates have a length of their own, whatever the gradient's:
they move all directions of a matrix alike. A tenth of the weights is no rare choice, and falls with the rate."""

MOVES = 10.0
"""Least largest update of a matrix, over `SMALL_RATIO`, of a layer that learns beside others that do not."""

ROUNDED, MOSTLY = 2.0**-24, 0.5
"""Least update over the weights that float32 keeps, by its precision; and the largest share of zeros in the gradient of
a layer whose updates round to nothing."""

WARMING_UP = 100
"""In so many steps, a learning rate that rises may still be too small to change anything."""


def _ratios(evidence: Evidence, *, of_first_norm: bool = False) -> npt.NDArray[np.float64]:
    """The `measured_ratios` of update and weight, `[steps]`; without recorded updates, lower bounds of these."""
    measured = measured_ratios(evidence, of_first_norm=of_first_norm)
    return measured if np.isfinite(measured).any() else _bounds(evidence)


def _bounds(evidence: Evidence) -> npt.NDArray[np.float64]:
    """The relative change of the weights' norms to the next step, `[steps]`: the update is at least as large.

    NaN where the next step was not recorded. All NaN if no change is large, as a small one tells nothing.
    """
    weights = trained_matrices(evidence)
    found = np.full(len(evidence), np.nan)
    if not weights or len(evidence) < LEAST_ROWS:
        return found
    norms = evidence.matrix("l2_norm")[:, weights].astype(np.float64)
    changes = np.abs(np.diff(norms, axis=0)) / norms[:-1]
    is_next = (np.diff(evidence.steps) == 1) & np.isfinite(changes).all(axis=1)
    bounds = np.median(changes, axis=1)
    found[:-1][is_next & (bounds > LARGE_RATIO)] = bounds[is_next & (bounds > LARGE_RATIO)]
    if np.isfinite(found).any():
        found[:-1][is_next] = bounds[is_next]
    return found


def _are_still(evidence: Evidence) -> bool:
    """Whether all weights that get gradients stay nearly the same over the whole run."""
    weights = trained_matrices(evidence)
    if not weights or int(evidence.steps[-1] - evidence.steps[0]) < LEAST_STEPS:
        return False
    sizes = evidence.matrix("std")[:, weights].astype(np.float64)
    for name in ("mean", "std", "min", "max", "absolute_mean"):
        values = evidence.matrix(name)[:, weights].astype(np.float64)
        if not (np.nanmax(np.abs(values - values[0]), axis=0) <= STILL * sizes[0]).all():
            return False
    return not _are_sampled(evidence, weights)


def _are_sampled(evidence: Evidence, weights: list[int]) -> bool:
    """Whether the statistics of any of these weights are of a sample of its elements."""
    count, sampled = (evidence.matrix(name)[:, weights] for name in ("count", "sampled"))
    return bool((count != sampled).any())


def update_too_small(evidence: Evidence) -> Iterator[Finding]:
    """The weights get gradients, and hardly change or do not change at all."""
    ratios = _ratios(evidence)
    rows = np.flatnonzero(np.isfinite(ratios))
    is_small = len(rows) > LEAST_ROWS and _are_small(ratios[rows], is_flat=_is_loss_flat(evidence))
    is_unchanged = all_unchanged(evidence)
    if not len(rows):
        is_small, ratios, rows = _are_still(evidence), np.zeros(len(evidence)), np.arange(len(evidence))
    if not is_small and not is_unchanged:
        yield from _rounded_beside_others(evidence)
    if (not is_small and not is_unchanged) or none_has_gradient(evidence) or _warms_up(evidence):
        return
    if rows_of_zeros(evidence) is not None:  # no gradient comes back, which `no_gradient` says
        return
    most = float(ratios[rows].max()) if len(rows) else 0.0
    how = "None of the weights changes at all" if is_unchanged or not most else f"Updates are {_size(ratios[rows])}"
    still = [] if is_unchanged or not most else _still_beside_others(evidence)
    whole = "The network does not learn."
    if still:
        how = f"Updates of {listed(still)} are {_size(ratios[rows])}"
        whole = "These layers do not learn, while others do: look at the learning rate of their group."
    loss = judged(evidence)
    is_zero = loss is not None and len(loss.values) >= LEAST_ZEROS and np.abs(loss.values).max() < NO_LOSS
    why, advice = _why_unchanged(evidence) if is_unchanged or not most else ("", _CHECK)
    yield finding(
        evidence,
        "update-too-small",
        "warning",
        at=still[0] if still else None,
        rows=rows if is_small else range(len(evidence)),
        numbers={"largest_ratio": most},
        text=f"{how}, although gradients come back.{why} {whole}{_NOTHING_LEFT if is_zero else ''}",
        advice="Look at what the loss compares." if is_zero else advice,
    )


_CHECK = (
    "Raise the learning rate. Check that `optimizer.step()` is called, that the optimizer has this model's "
    "parameters, and that a schedule does not begin at zero."
)


def _why_unchanged(evidence: Evidence) -> tuple[str, str]:
    """A sentence on why no weight changes, as far as it is known, and what to do."""
    _, rates = largest_rates(evidence)
    if rates and not any(rates):
        return (
            " The learning rate is 0 at all recorded steps.",
            "Look at the schedule: print `optimizer.param_groups[0]['lr']` in the loop. A factor of whole numbers, "
            "such as `step // warmup`, stays 0 until the warm-up is over; and a schedule that has come to its end may "
            "stay at 0.",
        )
    if all(facts is not None and facts.end == "pass" for facts in evidence.facts):
        return (
            " No optimizer has updated any parameter of this model at any recorded step.",
            "Call `optimizer.step()`. If the loop calls it, the optimizer has the parameters of another model: one of "
            "an earlier fold, or one that this model is a copy of. Make the optimizer after the model that is trained.",
        )
    return "", _CHECK


_NOTHING_LEFT = (
    " The logged loss is zero at all steps, the first ones included: there is nothing to learn, as where a model is "
    "compared with itself, or a mask leaves nothing."
)


def _rounded_beside_others(evidence: Evidence) -> Iterator[Finding]:
    """Report layers whose updates all round to nothing, while those of others do not.

    Most of their elements get a gradient at all steps, and an optimizer holds them with a learning rate above zero.
    """
    held = {
        name
        for facts in evidence.training
        if facts is not None
        for group in facts.groups
        if group.learning_rate is None or group.learning_rate > 0
        for name in group.parameters
    }
    columns = measured_matrices(evidence)
    most = {column: float(np.nanmax(evidence.column("mean", column), initial=0)) for column in columns}
    still = [
        series
        for series in (evidence.series[column] for column, ratio in most.items() if ratio < ROUNDED)
        if f"{series.module}.{series.path}".lstrip(".") in held and _is_always_taught(evidence, series)
    ]
    if not still or max(most.values()) < MOVES * SMALL_RATIO or int(evidence.steps[-1]) < LEAST_STEPS:
        return
    modules = sorted({one.module for one in still}, key=evidence.places.order)
    yield finding(
        evidence,
        "update-too-small",
        "warning",
        at=modules[0],
        rows=range(len(evidence)),
        numbers={"largest_ratio": max(most[one.id] for one in still)},
        text=f"Updates of {listed(modules)} are so small that they round to nothing, although gradients come back. "
        "These layers do not learn, while others do.",
        advice="Look at the learning rate of their group, and at what their outputs are multiplied by: a gate that is "
        "shut, or a very small weight of their part of the loss.",
    )


def _is_always_taught(evidence: Evidence, ratio: Series) -> bool:
    """Whether most elements of the parameter of an update's `ratio` get a gradient at all steps."""
    column = evidence.find(ratio.module, ratio.call, ratio.role, ratio.path, "grad")
    if column is None:
        return False
    shares = evidence.zero_shares[:, column]
    return bool(len(shares) and np.isfinite(shares).all() and (shares < MOSTLY).all())


def _still_beside_others(evidence: Evidence) -> list[str]:
    """The modules whose matrices hardly change while those of others do, as with learning rates of their own."""
    columns = measured_matrices(evidence)
    most = {column: float(np.nanmax(evidence.column("mean", column), initial=0)) for column in columns}
    series = (evidence.series[column] for column, ratio in most.items() if ratio < SMALL_RATIO)
    still = [one.module for one in series if _gets_gradient(evidence, one)]
    moves = any(ratio > MOVES * SMALL_RATIO for ratio in most.values())
    return sorted({*still}, key=evidence.places.order) if moves else []


def _gets_gradient(evidence: Evidence, ratio: Series) -> bool:
    """Whether the parameter of an update's `ratio` got a gradient that was not zero."""
    gradient = evidence.find(ratio.module, ratio.call, ratio.role, ratio.path, "grad")
    return gradient is not None and bool(np.nanmax(evidence.column("l2_norm", gradient), initial=0) > 0)


def _warms_up(evidence: Evidence) -> bool:
    """Whether the run is short, and its learning rate still rises: a warm-up of thousands of steps begins near 0."""
    return int(evidence.steps[-1] - evidence.steps[0]) < WARMING_UP and rates_rise(evidence)


def _are_small(ratios: npt.NDArray[np.float64], *, is_flat: bool) -> bool:
    """Whether nothing is learned with updates of these ratios. If the loss is flat, larger ratios count as small."""
    return bool(ratios.max() < SMALL_RATIO or (is_flat and np.median(ratios) < SLOW_RATIO))


def _size(ratios: npt.NDArray[np.float64]) -> str:
    """Words for how large these ratios are."""
    most, usual = float(ratios.max()), float(np.median(ratios))
    if most < SLOW_RATIO:
        return f"at most {most:.1g} of the weights"
    return f"{usual:.1g} of the weights in the median, after {most:.1g} at most"


def _is_loss_flat(evidence: Evidence) -> bool:
    loss = judged(evidence)
    return loss is not None and is_flat(loss)


def update_too_large(evidence: Evidence) -> Iterator[Finding]:
    """Updates change the weights by a tenth or more, again and again, or replace them at once."""
    names = {name for facts in evidence.facts if facts is not None for name in facts.optimizers}
    if any(SEARCHING in name for name in names):
        return
    ratios = _ratios(evidence, of_first_norm=True)
    rows = np.flatnonzero(np.isfinite(ratios))
    if len(rows) < LEAST_ROWS and not evidence.ends_bad:  # as of a loop that updates by hand: of steps 0 and 1 alone
        return
    large = rows[ratios[rows] > LARGE_RATIO]
    settles = _settles(evidence, rows, large)
    is_early = evidence.steps[-1] - evidence.steps[0] < LEAST_UPDATES and not evidence.ends_bad
    is_one = len(trained_matrices(evidence)) == 1  # it may well go far from its initial weights
    if is_one and (settles or (is_early and learns(evidence))):
        return
    may_begin_large = _only_begins_large(evidence, rows, large) and (
        any(name.partition(" ")[0].lower() in OF_CURVATURE for name in names) or learns(evidence)
    )
    is_replaced = len(rows) > 0 and ratios[rows].max() > REPLACING_RATIO and not may_begin_large
    is_chosen = any(OF_LENGTH in name.lower() for name in names)
    is_lasting = _last(evidence, rows, large) and not is_early and not settles and not is_chosen
    follows = None
    if not is_replaced and not is_lasting:
        follows = _what_follows(evidence, rows, large)
        if follows is None:
            return
    usual, most = float(np.median(ratios[rows])), rows[np.argmax(ratios[rows])]
    median = f"{usual:.1%}" if usual < MOST_PERCENT else f"{usual:.3g} times the weights"
    text = (
        f"{len(large)} of {len(rows)} recorded updates change the weights by more than {LARGE_RATIO:.0%}; "
        f"the median is {median}. About 0.1% is usual."
    )
    if is_replaced:
        text = f"The update of step {evidence.steps[most]} is {ratios[most]:.3g} times as large as the weights. {text}"
    if follows is not None:
        text = f"{text} `{follows.kind}` follows, from step {follows.step} on."
    factor = factor_in_gradients(evidence)
    if factor is not None:
        text = (
            f"{text} The gradients at the model's output are about {factor:.0f} times those of the cross entropy that "
            "was logged, as where the factor of a `GradScaler` is not taken out."
        )
    yield finding(
        evidence,
        "update-too-large",
        "warning",
        at=None,
        rows=large,
        numbers={"median_ratio": usual, "largest_ratio": ratios[most], "steps": len(large)},
        text=text,
        advice="Lower the learning rate by a factor of 10, or warm it up."
        if factor is None
        else "Call `scaler.step(optimizer)` and `scaler.update()` instead of `optimizer.step()`.",
    )


def _last(evidence: Evidence, rows: Rows, large: Rows) -> bool:
    """Whether updates at the rows `large` are that of a share of the training, by number and by what they stand for.

    `rows` are those with a known ratio. Where only the first few are known, they do not stand for the rest.
    """
    if len(large) < max(LEAST_ROWS, LARGE_SHARE * len(rows)):
        return False
    known = max(share_of_training(evidence, rows), KNOWN_SHARE)
    return share_of_training(evidence, large) >= LARGE_SHARE * known


def _settles(evidence: Evidence, rows: Rows, large: Rows) -> bool:
    """Whether there are large updates, none of them in the last quarter, and the training learns."""
    late = rows[3 * len(rows) // 4 :]
    return len(large) > 0 and not np.isin(large, late).any() and learns(evidence)


def _only_begins_large(evidence: Evidence, rows: Rows, large: Rows) -> bool:
    """Whether only the first updates are large, as where weights begin very small."""
    steps = evidence.steps
    is_first = steps[rows] - steps[0] < FIRST_SHARE * (steps[-1] - steps[0])
    is_first[:LEAST_ROWS] = True
    return bool(np.isin(large, rows[is_first]).all())


def _what_follows(evidence: Evidence, rows: Rows, large: Rows) -> Finding | None:
    """The first finding of a rule of `FOLLOWING` that the updates at the rows `large` have led to; None without any.

    `rows` are those with a known ratio. Of the updates before the finding, the first ones or a share of all have to be
    large. Later updates do not count: the weights have grown by then, so the same update is a smaller part of them.
    """
    if not len(large):
        return None
    found = (result for rule in FOLLOWING for result in rule(evidence))
    for result in sorted(found, key=lambda result: result.step):
        before = rows[evidence.steps[rows] < result.step]
        count = int(np.isin(before, large).sum())
        if count and (np.isin(before[:LEAST_ROWS], large).all() or count >= LARGE_SHARE * len(before)):
            return result
    return None


def loss_scale_loop(evidence: Evidence) -> Iterator[Finding]:
    """The scaler skips update after update, and halves the loss scale."""
    ends = np.array([facts.end if facts else "" for facts in evidence.facts])
    rows = np.flatnonzero(ends == "skipped")
    is_going_on = (
        len(rows) >= LEAST_SKIPPED
        and share_of_training(evidence, rows) >= SKIPPED_SHARE
        and 2 * (evidence.steps[rows[-1]] - evidence.steps[0]) >= evidence.steps[-1] - evidence.steps[0]
    )
    is_too_low = np.nanmin(evidence.scales, initial=np.inf) < LEAST_SCALE
    if len(rows) < LEAST_SKIPPED or not (is_going_on or is_too_low):
        return
    scales = evidence.scales[np.isfinite(evidence.scales)]
    last = float(scales[-1]) if len(scales) else float("nan")
    yield finding(
        evidence,
        "loss-scale-loop",
        "error",
        at=None,
        rows=rows,
        numbers={"skipped": len(rows), "steps": len(evidence), **({"last_scale": last} if len(scales) else {})},
        text=f"{len(rows)} of {len(evidence)} recorded updates were skipped, because gradients were not finite "
        "in the low precision. The loss scale falls and the network does not learn.",
        advice="Look for the first module with infinite gradients at a skipped step; compute it in float32, use "
        "bfloat16, "
        "or clip its activations.",
    )
