"""Tells whether logged losses and gradients are those of a cross entropy, of several classes or of two.

A cross entropy is recognised by its value and its gradients in the first steps, when all logits are nearly equal; or
by the gradients alone, which the live training compared with those of one.
"""

from __future__ import annotations

import math

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import class_weights
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    Floats,
    classes_and_positions,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows
from torchgraph_explorer.schema import TensorInfo

AS_EXPECTED = 0.2
"""Largest relative difference of a loss, or the length of a gradient, from that of a cross entropy."""

SIGMOID_OF_0, SIGMOID_OF_1 = 0.5, 1 / (1 + math.exp(-1))
"""The bounds of sigmoids of probabilities: where these are taken for logits, the sigmoid's argument is from 0 to 1."""

SLACK = 0.005
"""How far gradients may be beyond what these bounds allow."""

STILL_ALIKE = 0.75
"""Loss and gradients are compared up to the first step at which the mean length of the gradients, over that of equal
logits, is at most this."""

LEAST_TOLD = 3
"""Fewest of the first recorded steps whose gradients alone tell that the loss is a cross entropy."""


def parts(evidence: Evidence) -> tuple[int, ...]:
    """The numbers that a loss may have been divided by: 1, or the number of passes whose gradients an update sums."""
    passes = {facts.passes for facts in evidence.facts if facts is not None}
    return (1, *passes) if len(passes) == 1 and passes != {1} else (1,)


def begins_as_binary(evidence: Evidence, rows: Rows, lengths: Floats) -> bool:
    """Whether the logged loss at the first of these rows is that of a binary cross entropy with these gradients.

    `lengths`, of the same shape as `rows`, are the mean magnitudes of the gradients of the samples, times the samples.
    They are the probabilities of the wrong answer. Without a logged loss, the gradients decide.
    """
    loss = judged(evidence)
    if loss is None:
        return len(class_weights(evidence)) >= LEAST_TOLD
    _, at, logged = np.intersect1d(evidence.steps[rows], loss.steps, return_indices=True)
    early = slice(max(LEAST_ROWS, len(at) // 10))
    expected = -np.log1p(-np.minimum(lengths[at[early]], 1 - EQUAL))
    is_as_expected = np.abs(loss.values[logged[early]] - expected) <= AS_EXPECTED * expected
    return len(at) >= LEAST_ROWS and bool(is_as_expected.all())


def is_by_gradients(evidence: Evidence, column: int) -> bool:
    """Whether the gradients at the output `column` are those of a cross entropy with one right class a sample.

    They are a softmax, or a sigmoid, less the label, times a weight for each class. They are known of the first output
    that has gradients, in the first recorded steps.
    """
    output = next(trained_outputs(evidence), None)
    return output is not None and output.column == column and len(class_weights(evidence)) >= LEAST_TOLD


def begins_as_cross_entropy(evidence: Evidence, column: int, norms: int, *, classes: int) -> bool:
    """Whether loss and gradients of the first steps are those of a mean cross entropy of nearly equal logits.

    Without a logged loss, the gradients decide.

    Args:
        evidence: With the loss.
        column: The output of the model, `[samples, classes]`.
        norms: The norms of its gradient for each sample.
        classes: The number of classes.
    """
    loss = judged(evidence)
    if loss is None:
        return is_by_gradients(evidence, column)
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    lengths, spreads, size = (
        evidence.column(name, at)[rows].astype(np.float64)
        for name, at in (("mean", norms), ("std", norms), ("count", column))
    )
    divisors = parts(evidence)
    samples, logged = size / classes, loss.values[values].astype(np.float64)
    candidates = [(samples * of_length, logged * of_loss) for of_length in divisors for of_loss in divisors]
    return any(
        _is_cross_entropy(lengths * scale, spreads * scale, losses=losses, classes=classes)
        for scale, losses in candidates
    )


def _is_cross_entropy(lengths: Floats, spreads: Floats, *, losses: Floats, classes: int) -> bool:
    """Whether `losses` are mean cross entropies of samples with these gradients, and begin with equal logits.

    The loss of equal logits is the logarithm of the number of classes. The gradient of a sample is its softmax minus
    the label. If q is the probability of all wrong answers together, the norm is at most `sqrt(2) * q`, where q is all
    on one wrong class, and at least `sqrt(classes / (classes - 1)) * q`, where it is spread over all of them. The loss
    is `-log(1 - q)`, and its mean over samples is larger than that of the mean q by what the spread of the norms tells.

    Args:
        lengths: Mean over the samples of the norms of their gradients, `[steps]`.
        spreads: Standard deviation of these norms, `[steps]`.
        losses: The logged losses, `[steps]`.
        classes: The number of classes.
    """
    known = np.isfinite(lengths) & np.isfinite(losses)
    norm_if_spread = math.sqrt(classes / (classes - 1))
    relative = lengths[known] * norm_if_spread  # to the length for equal logits, `sqrt(1 - 1 / classes)`
    alike = int(np.argmin(np.append(relative > STILL_ALIKE, False)))
    if alike < LEAST_ROWS or abs(relative[0] - 1) > AS_EXPECTED:
        return False
    found = losses[known][:alike]
    least, most = (
        -np.log1p(-np.minimum(lengths[known][:alike] / norm, 0.999)) for norm in (math.sqrt(2), norm_if_spread)
    )
    most += (np.nan_to_num(spreads[known][:alike]) / norm_if_spread * np.exp(most)) ** 2 / 2
    is_as_expected = (found > (1 - AS_EXPECTED) * least) & (found < (1 + AS_EXPECTED) * most)
    return bool(is_as_expected.all()) and abs(float(found[0]) / math.log(classes) - 1) < AS_EXPECTED


def first_is_cross_entropy(evidence: Evidence, column: int, norms: int, *, info: TensorInfo, sign: int = 1) -> bool:
    """Whether loss and gradients of the first step are those of a mean cross entropy of nearly equal logits.

    The classes may be those of many positions of a sample. Without a logged loss, the gradients decide.

    Args:
        evidence: With the loss.
        column: The output of the model.
        norms: The norms of its gradient for each sample.
        info: The tensor of the output.
        sign: -1 if the loss is the negative of a cross entropy.
    """
    loss = judged(evidence)
    if loss is None:
        return sign == 1 and is_by_gradients(evidence, column)
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
