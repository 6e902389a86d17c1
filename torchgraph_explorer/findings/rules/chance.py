"""Tells, without a logged loss, whether a cross entropy stays that of equal logits, so that nothing is learned.

The evidence is how large the gradients at the model's outputs are, as the probabilities of wrong answers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import is_rewarded, need_not_fall, the_loss
from torchgraph_explorer.findings.rules.cross_entropies import is_by_gradients
from torchgraph_explorer.findings.rules.facts import class_weights
from torchgraph_explorer.findings.rules.loss import NOT_FALLING, SURELY_NOT, loss_not_falling
from torchgraph_explorer.findings.rules.outputs import samples_of, trained_outputs
from torchgraph_explorer.findings.rules.ratios import measured_ratios
from torchgraph_explorer.findings.rules.rule import Rows, finding
from torchgraph_explorer.schema import TensorInfo

LEAST_LATE = 3
"""Fewest recorded steps in the second half of the run."""

AS_LARGE, EACH, LARGEST = 0.996, 0.9, 2.5
"""Least mean square of the gradients over that of equal logits: in the mean of the second half, and at each of its
steps. And the largest one: those of a mean over the samples are no larger. Answers that have nothing to do with the
labels have 1 or more in the mean. With 10 classes, a loss that has fallen by 1 % has about 0.994."""

MOST_CLASSES = 20
"""Of more classes, the loss may have fallen far while nearly all of the probability still is that of wrong answers."""

EQUALLY = 1.001
"""Largest ratio of the weights of two classes that are equal."""

MOVED_FAR = 0.5
"""Least sum of the norms of all updates, over the norm of the weights, of a network that should have learned."""

LEAST_CLASSES = 3
"""Fewest classes of a loss that is said not to fall: the labels of two may be those of a discriminator, or of an
adversary, whose loss is to stay that of chance."""


def not_falling(evidence: Evidence) -> Iterator[Finding]:
    """The logged loss does not fall; without one, the answers stay those of chance."""
    yield from loss_not_falling(evidence)
    found = at_chance(evidence)
    if found is None or found.classes < LEAST_CLASSES:
        return
    yield finding(
        evidence,
        "loss-not-falling",
        "warning",
        at=next(trained_outputs(evidence)).series,
        rows=found.rows,
        numbers={"mean_square": found.square, "classes": found.classes},
        text=f"The gradients at the model's output are those of a cross entropy of {found.classes} classes. In the "
        f"second half of the steps their mean square is {found.square:.1%} of that of equal logits: the answers "
        "are no better than chance, and the network does not learn.",
        advice=NOT_FALLING,
    )


def _has_moved_far(evidence: Evidence) -> bool:
    """Whether all updates together come to half of the weights: a network that learns slowly has changed less."""
    ratios = measured_ratios(evidence)
    known = ratios[np.isfinite(ratios)]
    return len(known) > 0 and float(known.mean()) * float(evidence.steps[-1] - evidence.steps[0] + 1) > MOVED_FAR


class AtChance(NamedTuple):
    """What stays as it is for equal logits.

    Attributes:
        rows: The recorded steps of the second half.
        classes: The number of classes.
        square: The mean square of their gradients over that of equal logits.
    """

    rows: Rows
    classes: int
    square: float


def at_chance(evidence: Evidence) -> AtChance | None:
    """The second half of the steps, if the answers are no better than chance there; None if they are, or not known.

    It is known of a mean cross entropy whose classes have equal weights. What an adversary or an agent learns need not
    get better.
    """
    output = next(trained_outputs(evidence), None)
    if output is None or the_loss(evidence.scalars) is not None or need_not_fall(evidence) or is_rewarded(evidence):
        return None
    if evidence.steps[-1] - evidence.steps[0] + 1 < SURELY_NOT or not _has_moved_far(evidence):
        return None
    seen, classes = [one for _, one in class_weights(evidence)], _classes(output.info)
    if not 2 <= classes <= MOST_CLASSES or not is_by_gradients(evidence, output.column):
        return None
    if any(one.heavier > EQUALLY or one.classes < 2 or one.without_gradient for one in seen):
        return None
    is_one_number = output.info.shape[1:] in {(), (1,)}
    of_equal_logits = 0.25 if is_one_number else 1 - 1 / classes
    mean, spread = (evidence.column(name, output.norms).astype(np.float64) for name in ("mean", "std"))
    squares = (mean**2 + spread**2) * samples_of(evidence, output.info, output.column) ** 2 / of_equal_logits
    rows = np.flatnonzero(np.isfinite(squares) & (2 * evidence.steps >= evidence.steps[0] + evidence.steps[-1]))
    if len(rows) < LEAST_LATE:
        return None
    late = squares[rows]
    is_at_chance = late.mean() >= AS_LARGE and late.min() >= EACH and late.max() <= LARGEST
    return AtChance(rows, classes, float(late.mean())) if is_at_chance else None


def _classes(info: TensorInfo) -> int:
    """The number of classes of an output: 2 for one number a sample, and 0 if it is of another shape."""
    sizes = info.shape[1:]
    if len(sizes) > 1:
        return 0
    return 2 if sizes in {(), (1,)} else sizes[0] or 0
