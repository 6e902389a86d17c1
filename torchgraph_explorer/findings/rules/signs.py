"""Finds a loss, or a part of it, with the wrong sign, so that it has no useful minimum.

The evidence is the logged loss, and the gradients at the model's output, which tell its magnitude.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import distillations, divergences
from torchgraph_explorer.findings.rules.ascent import goes_up
from torchgraph_explorer.findings.rules.cross_entropies import first_is_cross_entropy
from torchgraph_explorer.findings.rules.loss import LEAST_TO_DIVERGE, Loss, judged, of_equal_logits
from torchgraph_explorer.findings.rules.negated import negated_by_gradient
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding, quoted
from torchgraph_explorer.findings.rules.targets import squared_errors

FELL = 2.0
"""Least loss at the end, over that at first, of a negative loss that falls. An objective that is maximised is negative,
too, but rises. The loss of a policy with negative rewards may begin as minus the entropy of all actions, and does not
get below that."""

BELOW = -1e-3
"""Largest value of a divergence that is below zero by more than rounding."""

FAR = 100.0
"""Least ratio of the loss at the end, below zero, to the magnitude of its first value or to 1, of a loss without lower
bound. Likewise of another scalar that grows."""


def loss_negated(evidence: Evidence) -> Iterator[Finding]:
    """The loss is the negative of a cross entropy or squared error, and falls.

    Gradients tell the size of a squared error, but not its sign, which the logged values do. Or updates go up the
    gradient of a loss that is right, which is as wrong.
    """
    loss = judged(evidence)
    yield from _divergences_below_zero(evidence)
    if loss is not None and len(loss.values) and goes_up(evidence, loss):
        yield _uphill(evidence, loss)
    by_gradient = negated_by_gradient(evidence)
    if by_gradient is not None:
        yield by_gradient
        return
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE or loss.values.max() >= 0 or not _falls(loss):
        return
    for _, info, column, norms in trained_outputs(evidence):
        what = "cross entropy" if first_is_cross_entropy(evidence, column, norms, info=info, sign=-1) else None
        if what is None and squared_errors(evidence, column, norms, sign=-1) is not None:
            what = "mean squared error"
        if what is None:
            continue
        yield finding(
            evidence,
            "loss-negated",
            "error",
            at=None,
            rows=range(len(evidence)),
            numbers={"first": loss.values[0], "last": loss.values[-1]},
            text=f"`{quoted(loss.name)}` is the negative of a {what}: {loss.values[0]:.3g} at first, "
            f"{loss.values[-1]:.3g} at the end. The model learns to be as wrong as it can.",
            advice="Change the sign of the loss. A sum of logarithms of probabilities needs a minus before it.",
        )
        return


def _uphill(evidence: Evidence, loss: Loss) -> Finding:
    """The finding that updates make the loss larger."""
    return finding(
        evidence,
        "loss-negated",
        "error",
        at=None,
        rows=range(len(evidence)),
        numbers={"first": loss.values[0], "last": loss.values[-1]},
        text="The updates move the parameters along their gradients, which makes the loss larger, and not against "
        f"them. `{quoted(loss.name)}` rises from the first update on: {loss.values[0]:.4g} at first, "
        f"{loss.values[-1]:.4g} at the end.",
        advice="Look for `maximize=True` or a negative learning rate in the optimizer, and for a plus in an update by "
        "hand: `p -= lr * p.grad` makes the loss smaller.",
    )


def _divergences_below_zero(evidence: Evidence) -> Iterator[Finding]:
    """Report a logged divergence, by its name, that is below zero at all steps.

    A distillation may compare anything. It is a divergence if the gradients at the model's first output are those of a
    softmax: a negative cosine of features has others.
    """
    distilled = distillations(evidence.scalars) if of_equal_logits(evidence) is not None else []
    for scalar in [*divergences(evidence.scalars), *distilled]:
        if len(scalar.values) < LEAST_TO_DIVERGE or not scalar.values.max() < BELOW:
            continue
        lowest = float(scalar.values.min())
        yield finding(
            evidence,
            "loss-negated",
            "warning",
            at=None,
            rows=range(len(evidence)),
            numbers={"first": scalar.values[0], "lowest": lowest},
            text=f"`{quoted(scalar.name)}` is below zero at all {len(scalar)} logged steps, down to {lowest:.3g}. By "
            "its name, it is a divergence, and no divergence is below zero: it has the wrong sign, or is of something "
            "else than two distributions.",
            advice="`kl_div` takes the logarithm of the prediction first, `log_softmax` and not `softmax`, and the "
            "target second. That of a normal distribution from the standard one is "
            "`-0.5 * (1 + logvar - mu**2 - logvar.exp()).sum()`, with a minus.",
        )


def _falls(loss: Loss) -> bool:
    """Whether a negative loss is `FELL` times as far below zero at the end as at first."""
    tenth = max(3, len(loss.values) // 10)
    return bool(np.median(loss.values[-tenth:]) < FELL * np.median(loss.values[:3]))


def loss_unbounded(evidence: Evidence) -> Iterator[Finding]:
    """The loss falls far below zero, ever faster, so that it seems to have no lowest value.

    The negative logarithm of a density may fall far below zero as well, but ever more slowly.
    """
    loss = judged(evidence)
    if loss is None or len(loss.values) < LEAST_TO_DIVERGE:
        return
    first, last = float(np.median(loss.values[:3])), float(np.median(loss.values[-3:]))
    middle = float(loss.values[len(loss.values) // 2])
    if last > -FAR * max(1.0, abs(first)) or last - middle > middle - first:
        return
    below = np.flatnonzero(loss.values < -max(1.0, abs(first)))
    since = np.flatnonzero(evidence.steps >= loss.steps[below[0]])
    grown = [name for name, scalar in evidence.scalars.items() if name != loss.name and _grows(scalar.values)]
    with_it = f" `{quoted(grown[0])}` grows as it falls." if len(grown) == 1 else ""
    yield finding(
        evidence,
        "loss-unbounded",
        "error",
        at=None,
        rows=since if len(since) else [len(evidence) - 1],
        numbers={"first": first, "last": last},
        text=f"`{quoted(loss.name)}` falls ever faster, from {first:.3g} at first to {last:.3g} at the end: a part of "
        f"it has no lowest value, so the network drives that part on, and learns nothing else.{with_it}",
        advice="Look for a part with the wrong sign: a divergence, a penalty or a distance that is subtracted. Or for "
        "targets that the loss does not allow: those of a binary cross entropy are from 0 to 1.",
    )


def _grows(values: npt.NDArray[np.float64]) -> bool:
    """Whether a scalar ends at more than `FAR` times the magnitude of its first value, or 1."""
    return len(values) > 2 and values[-1] > FAR * max(1.0, abs(float(values[0])))
