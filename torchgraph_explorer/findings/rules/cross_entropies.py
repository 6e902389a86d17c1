"""Whether logged losses and gradients are those of a cross entropy, of several classes or of two."""

from __future__ import annotations

import math

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import EQUAL, Floats, classes_and_positions, samples_of
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows
from torchgraph_explorer.schema import TensorInfo

AS_EXPECTED = 0.2
"""By how much the gradient at a softmax may differ from that of a cross entropy of logits."""


SIGMOID_OF_0, SIGMOID_OF_1 = 0.5, 1 / (1 + math.exp(-1))
"""The sigmoids of probabilities that are taken for logits lie between these."""

SLACK = 0.005
"""By how much gradients may be beyond what follows from that."""

STILL_ALIKE = 0.75
"""Up to the first step whose gradient is below this share of that of equal logits, loss and gradient are compared."""


def parts(evidence: Evidence) -> tuple[int, ...]:
    """What a loss may have been divided by: 1, or the number of passes whose gradients an update adds up."""
    passes = {one.passes for one in evidence.facts if one is not None}
    return (1, *passes) if len(passes) == 1 and passes != {1} else (1,)


def begins_as_binary(evidence: Evidence, rows: Rows, lengths: Floats) -> bool:
    """Whether the logged loss of the first of these rows is that of a binary cross entropy with gradients so long.

    `lengths` are the means over the samples: of the probability of the wrong answer.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, at, logged = np.intersect1d(evidence.steps[rows], loss.steps, return_indices=True)
    early = slice(max(LEAST_ROWS, len(at) // 10))
    expected = -np.log1p(-np.minimum(lengths[at[early]], 1 - EQUAL))
    is_as_expected = np.abs(loss.values[logged[early]] - expected) <= AS_EXPECTED * expected
    return len(at) >= LEAST_ROWS and bool(is_as_expected.all())


def begins_as_cross_entropy(evidence: Evidence, column: int, norms: int, *, classes: int) -> bool:
    """Whether loss and gradients of the first steps are those of a mean cross entropy of nearly equal logits.

    Such a loss is the logarithm of the number of classes. The gradient of a sample is its softmax minus the label: of
    a probability q of all wrong answers, its norm is between those of q on one of them and of q spread over all. Where
    the samples differ, their mean loss is larger than that of the mean q, by what the spread of their norms tells.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    lengths, spreads, size = (
        evidence.column(name, at)[rows].astype(np.float64)
        for name, at in (("mean", norms), ("std", norms), ("count", column))
    )
    ks = parts(evidence)
    samples, found = size / classes, loss.values[values].astype(np.float64)
    every = [(samples * of_length, found * of_loss) for of_length in ks for of_loss in ks]
    return any(
        _is_cross_entropy(lengths * scale, spreads * scale, losses=losses, classes=classes) for scale, losses in every
    )


def _is_cross_entropy(scaled: Floats, spreads: Floats, *, losses: Floats, classes: int) -> bool:
    known = np.isfinite(scaled) & np.isfinite(losses)
    spread = math.sqrt(classes / (classes - 1))
    wrong = scaled[known] * spread
    alike = int(np.argmin(np.append(wrong > STILL_ALIKE, False)))
    if alike < LEAST_ROWS or abs(wrong[0] - 1) > AS_EXPECTED:
        return False
    found = losses[known][:alike]
    least, most = (-np.log1p(-np.minimum(scaled[known][:alike] / one, 0.999)) for one in (math.sqrt(2), spread))
    most += (np.nan_to_num(spreads[known][:alike]) / spread * np.exp(most)) ** 2 / 2
    is_as_expected = (found > (1 - AS_EXPECTED) * least) & (found < (1 + AS_EXPECTED) * most)
    return bool(is_as_expected.all()) and abs(float(found[0]) / math.log(classes) - 1) < AS_EXPECTED


def first_is_cross_entropy(evidence: Evidence, column: int, norms: int, *, info: TensorInfo, sign: int = 1) -> bool:
    """Whether loss and gradients of the first step are those of a mean cross entropy of nearly equal logits.

    With a `sign` of -1, of its negative. The classes may be those of many positions of a sample.
    """
    loss = judged(evidence)
    if loss is None:
        return False
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    if not len(rows):
        return False
    length = float((evidence.column("mean", norms) * samples_of(evidence, info, column))[rows[0]])
    first = sign * float(loss.values[values[0]])
    return any(
        classes > 2
        and abs(length * math.sqrt(positions) / math.sqrt(1 - 1 / classes) - 1) < AS_EXPECTED
        and abs(first / math.log(classes) - 1) < AS_EXPECTED
        for classes, positions in classes_and_positions(info)
    )
