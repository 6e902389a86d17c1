"""Updates of the weights: too small to learn, too large to settle, or skipped again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.attention import attention_logits_growing
from torchgraph_explorer.findings.rules.growth import exploding_activation
from torchgraph_explorer.findings.rules.learning import learns
from torchgraph_explorer.findings.rules.loss import is_flat, judged, loss_diverging
from torchgraph_explorer.findings.rules.participation import all_unchanged, none_has_gradient
from torchgraph_explorer.findings.rules.ratios import measured_ratios, trained_matrices
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding

SMALL_RATIO = 5e-6
"""Largest ratio of the norms of update and weight, over the whole run, below which nothing is learned."""

SLOW_RATIO = 3e-5
"""The same for the median of the run, if the loss was logged and stays where it began."""

LARGE_RATIO = 0.1
"""Ratio of the norms of update and weight, in the median of the weights, above which an update is too large."""

LARGE_SHARE = 0.3
"""Share of the recorded steps with updates that are too large."""

REPLACING_RATIO = 1.0
"""A single update that is larger than the weights themselves is too large."""

FOLLOWING = (exploding_activation, attention_logits_growing, loss_diverging)
"""Rules of what large updates lead to. Fewer of these count before what they have led to."""

SKIPPED_SHARE = 0.3
"""Share of the recorded steps whose update was skipped."""

LEAST_SKIPPED = 3

LEAST_SCALE = 1.0
"""A loss scale below this does the opposite of what it is for."""

STILL = 1e-5
"""Largest relative change of any statistic of the weights, over the whole run, below which nothing is learned."""

SEARCHING = "LBFGS"
"""Optimizer that finds out how far to go: its first updates may well replace the weights."""

LEAST_STEPS = 30
"""Steps that the whole run must have for that."""


def _ratios(evidence: Evidence, *, of_first_norm: bool = False) -> npt.NDArray[np.float64]:
    """The ratio of update and weight at each row, `measured_ratios`. Without recorded updates, a lower bound of it."""
    measured = measured_ratios(evidence, of_first_norm=of_first_norm)
    return measured if np.isfinite(measured).any() else _bounds(evidence)


def _bounds(evidence: Evidence) -> npt.NDArray[np.float64]:
    """How much the norms of the weights change to the next recorded step, if that is the next step.

    An update is at least as large as the change of the norm.
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
    if (not is_small and not is_unchanged) or none_has_gradient(evidence):
        return
    most = float(ratios[rows].max()) if len(rows) else 0.0
    how = "None of the weights changes at all" if is_unchanged or not most else f"Updates are {_size(ratios[rows])}"
    yield finding(
        evidence,
        "update-too-small",
        "warning",
        at=None,
        rows=rows if is_small else range(len(evidence)),
        numbers={"largest_ratio": most},
        text=f"{how}, although gradients come back. The network does not learn.",
        advice="Raise the learning rate. Check that `optimizer.step()` is called, that the optimizer has this model's "
        "parameters, and that a schedule does not begin at zero.",
    )


def _are_small(ratios: npt.NDArray[np.float64], *, is_flat: bool) -> bool:
    """Whether updates of these ratios teach nothing. If the loss is flat, it is enough that most of them do not."""
    return bool(ratios.max() < SMALL_RATIO or (is_flat and np.median(ratios) < SLOW_RATIO))


def _size(ratios: npt.NDArray[np.float64]) -> str:
    most, usual = float(ratios.max()), float(np.median(ratios))
    if most < SLOW_RATIO:
        return f"at most {most:.1g} of the weights"
    return f"{usual:.1g} of the weights in the median, after {most:.1g} at most"


def _is_loss_flat(evidence: Evidence) -> bool:
    loss = judged(evidence)
    return loss is not None and is_flat(loss)


def update_too_large(evidence: Evidence) -> Iterator[Finding]:
    """Updates change the weights by a tenth or more, again and again."""
    if any(SEARCHING in name for one in evidence.facts if one is not None for name in one.optimizers):
        return
    ratios = _ratios(evidence, of_first_norm=True)
    rows = np.flatnonzero(np.isfinite(ratios))
    large = rows[ratios[rows] > LARGE_RATIO]
    if _is_one_layer_that_settles(evidence, rows, large):
        return
    is_replaced = (
        len(rows) > 0 and ratios[rows].max() > REPLACING_RATIO and not _only_begins_large(evidence, rows, large)
    )
    follows = None
    if not is_replaced and len(large) < max(LEAST_ROWS, LARGE_SHARE * len(rows)):
        follows = _what_follows(evidence, rows, large)
        if follows is None:
            return
    usual, most = float(np.median(ratios[rows])), rows[np.argmax(ratios[rows])]
    text = (
        f"{len(large)} of {len(rows)} recorded updates change the weights by more than {LARGE_RATIO:.0%}; "
        f"the median is {usual:.1%}. About 0.1% is usual."
    )
    if is_replaced:
        text = f"The update of step {evidence.steps[most]} is {ratios[most]:.3g} times as large as the weights. {text}"
    if follows is not None:
        text = f"{text} `{follows.kind}` follows, from step {follows.step} on."
    yield finding(
        evidence,
        "update-too-large",
        "warning",
        at=None,
        rows=large,
        numbers={"median_ratio": usual, "largest_ratio": ratios[most], "steps": len(large)},
        text=text,
        advice="Lower the learning rate by a factor of 10, or warm it up.",
    )


def _is_one_layer_that_settles(evidence: Evidence, rows: Rows, large: Rows) -> bool:
    """Whether a single matrix is trained, and learns: where it begins means nothing, and it goes where it has to be."""
    late = rows[3 * len(rows) // 4 :]
    is_one = len(trained_matrices(evidence)) == 1
    return is_one and len(large) > 0 and not np.isin(large, late).any() and learns(evidence)


def _only_begins_large(evidence: Evidence, rows: Rows, large: Rows) -> bool:
    """Whether only the first updates are large, and the training learns: its weights began far too small."""
    return bool(np.isin(large, rows[: max(LEAST_ROWS, len(rows) // 10)]).all()) and learns(evidence)


def _what_follows(evidence: Evidence, rows: Rows, large: Rows) -> Finding | None:
    """The first finding that follows from `large` updates of all measured at `rows`; None without any.

    The first updates have to be large, or enough of those until it begins: afterwards, the weights have grown, and the
    same step is a small part of them.
    """
    if not len(large):
        return None
    for one in sorted((one for rule in FOLLOWING for one in rule(evidence)), key=lambda one: one.step):
        before = rows[evidence.steps[rows] < one.step]
        count = int(np.isin(before, large).sum())
        if count and (np.isin(before[:LEAST_ROWS], large).all() or count >= LARGE_SHARE * len(before)):
            return one
    return None


def loss_scale_loop(evidence: Evidence) -> Iterator[Finding]:
    """The scaler skips update after update, and halves the loss scale."""
    ends = np.array([one.end if one else "" for one in evidence.facts])
    rows = np.flatnonzero(ends == "skipped")
    is_going_on = len(rows) >= SKIPPED_SHARE * len(evidence) and rows[-1] >= len(evidence) // 2
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
