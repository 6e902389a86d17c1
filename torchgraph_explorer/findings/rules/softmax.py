"""Finds a softmax or sigmoid at the end of a network whose loss applies another one, or takes logarithms.

The evidence is that the outputs are probabilities, the norms of the gradients at these, and the logged loss.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.activations import before_cross_entropy, is_relu_before_sigmoids
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED, SIGMOID_OF_0, SIGMOID_OF_1, SLACK, parts
from torchgraph_explorer.findings.rules.dimensions import softmax_for_several
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.judge_sigmoids import sigmoid_of_judge_twice
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    Floats,
    TrainedOutput,
    ends_with,
    last_module,
    last_of,
    lie_within,
    sample_size,
    samples_of,
    softmax_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.outside import softmax_again, softmax_of_two_again
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Flags, Rows, finding, named
from torchgraph_explorer.findings.rules.twice_by_gradient import sigmoid_by_gradient, softmax_by_gradient

MOST_OF_SIGMOID = 0.76
"""Largest gradient at the output of a sigmoid whose loss applies another one: the sigmoid of 1, 0.73, and a margin."""

LEAST_OF_SIGMOID = 0.3
"""Least loss of a probability that is taken for a logit: `log(1 + 1 / e)`, 0.31, and a margin."""

LOSS_AS_EXPECTED = 0.15
"""Largest relative difference of the logged loss from the one that the gradients at a sigmoid tell."""

NEAR_LABEL = 0.01
"""Largest difference of the mean gradient of samples with one label from what follows from their mean output."""

SOFTMAXES = ("Softmax", "Softmax2d")
"""Classes of modules that apply a softmax."""

OFTEN = 0.75
"""Least share of the recorded steps at which the gradients are those of such a loss."""


def softmax_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are probabilities, and the loss takes logits or logarithms, or has several right classes."""
    yield from softmax_for_several(evidence)
    yield from sigmoid_of_judge_twice(evidence)
    for output in trained_outputs(evidence):
        _, info, column, norms = output
        softmax = softmax_of(evidence, column, info)
        exactly = _told_by_gradient(evidence, output, is_softmax=softmax is not None)
        if exactly is not None:
            yield exactly
            continue
        if is_relu_before_sigmoids(evidence, output):
            continue
        if not softmax and (not _is_sigmoid(evidence, column, norms) or before_cross_entropy(evidence, output)):
            continue
        measured = evidence.column("mean", norms).astype(np.float64)
        rows = np.flatnonzero(np.isfinite(measured) & (measured > 0))
        size, width = samples_of(evidence, info, column), sample_size(info)
        classes, positions = softmax or (2, 1)
        if softmax and _wants_logarithms(evidence, norms, size=size * math.sqrt(positions), rows=rows):
            yield _taken_for_others(evidence, output, rows, words=_AS_LOGARITHMS)
            continue
        if softmax and positions == 1 and _is_of_sigmoids(evidence, norms, size=size, rows=rows, classes=classes):
            yield _taken_for_others(evidence, output, rows, words=_AS_LOGITS)
            continue
        if softmax:
            lengths = measured[rows] * math.sqrt(positions)
            every = [_of_cross_entropy(classes, lengths * k, size[rows], positions=positions) for k in parts(evidence)]
            matches = max(every, key=np.count_nonzero)
        else:
            matches = _of_sigmoid(evidence, norms, size * np.sqrt(width))[rows]
        if len(rows) < LEAST_ROWS or matches.mean() < OFTEN or not matches[0]:
            continue
        if softmax and not any(_may_be_cross_entropy(evidence, classes, times=k) for k in parts(evidence)):
            continue
        yield _twice(evidence, output, rows, is_softmax=softmax is not None, may_be_dice=positions > 1)


def _told_by_gradient(evidence: Evidence, output: TrainedOutput, *, is_softmax: bool) -> Finding | None:
    """The finding that the loss applies a softmax or sigmoid again, if the gradients alone tell so; else None."""
    rows = _by_gradient(evidence, output, is_softmax=is_softmax)
    if rows is None:
        return softmax_again(evidence, output)
    return _twice(evidence, output, rows, is_softmax=is_softmax, may_be_dice=False)


def _by_gradient(evidence: Evidence, output: TrainedOutput, *, is_softmax: bool) -> Rows | None:
    """The steps whose gradients are exactly those of a loss that applies a softmax or sigmoid again; else None.

    The live training compared them.
    """
    if not is_softmax:
        return sigmoid_by_gradient(evidence, output.column)
    of_several = softmax_by_gradient(evidence, output.column)
    return softmax_of_two_again(evidence, output) if of_several is None else of_several


def _may_be_cross_entropy(evidence: Evidence, classes: int, *, times: int) -> bool:
    """Whether the logged loss, times `times`, may be a cross entropy that takes probabilities for logits.

    Such a loss begins as that of nearly equal logits, and is never below that of a sure and right answer. The gradient
    of a Dice coefficient is as large, but its loss is at most 1. `times` undoes what a loop may have divided the loss
    by. True if no loss was logged.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values):
        return True
    least, values = math.log(math.e + classes - 1) - 1, loss.values * times
    return float(values[0]) > (1 - LOSS_AS_EXPECTED) * math.log(classes) and float(values.min()) > 0.9 * least


def _is_of_sigmoids(evidence: Evidence, norms: int, *, size: Floats, rows: Rows, classes: int) -> bool:
    """Whether the loss takes each probability of a softmax for the logit of a binary cross entropy.

    The gradient at a probability p then is `sigmoid(p)`, less 1 for the right class. Its norm at a sample is between
    those of a right answer, with p = 1 for the right class, and of a wrong one, with p = 1 for another.
    """
    low, high = (evidence.column(name, norms)[rows].astype(np.float64) for name in ("min", "max"))
    others = (classes - 1) * SIGMOID_OF_0**2
    least, most = math.sqrt(others + (1 - SIGMOID_OF_1) ** 2), math.sqrt(others + SIGMOID_OF_1**2)
    return len(rows) >= LEAST_ROWS and any(
        bool((low * scale > least * (1 - SLACK)).all() and (high * scale < most * (1 + SLACK)).all())
        for scale in (size[rows] * classes, np.ones(len(rows)))
    )


def _wants_logarithms(evidence: Evidence, norms: int, *, size: Floats, rows: Rows) -> bool:
    """Whether the loss is linear in the probabilities, as one is that takes their logarithms.

    The norm of the gradient of `-log(p)` at a sample is at least 1. That of a loss that is linear in p is the norm of
    the target, however good the answer is: 1 for a label, and less for a distribution. The gradient of a squared error
    may be as small, but that loss is not negative.
    """
    scaled = [evidence.column(name, norms)[rows] * size[rows] for name in ("min", "max")]
    if not len(rows) or not all((lengths < 1 + EQUAL).all() for lengths in scaled):
        return False
    is_label = all((np.abs(lengths - 1) < EQUAL).all() for lengths in scaled)
    loss = judged(evidence)
    return is_label or (loss is not None and len(loss.values) >= LEAST_ROWS and bool((loss.values < 0).all()))


def _taken_for_others(evidence: Evidence, output: TrainedOutput, rows: Rows, *, words: tuple[str, str]) -> Finding:
    """The finding that the loss takes probabilities for logits or logarithms, at the last softmax or the output."""
    text, advice = words
    return finding(
        evidence,
        "softmax-before-loss",
        "warning",
        at=last_of(evidence, output.column, *SOFTMAXES) or output.series,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The model's outputs are {text}",
        advice=advice,
    )


# What follows "The model's outputs are", and what to do.
_AS_LOGITS = (
    "the probabilities of a softmax, and the loss takes each for a logit, as `binary_cross_entropy_with_logits` does: "
    "no answer can come near 0 or 1, so the loss cannot get small.",
    "Remove the softmax at the end of the network, and use `cross_entropy` where one class is right, or keep the loss "
    "where several may be.",
)

_AS_LOGARITHMS = (
    "probabilities, and the gradient that comes back does not depend on them: the loss takes them for their "
    "logarithms, as `nll_loss` and `kl_div` do.",
    "End the network with `log_softmax` instead of `softmax`, or hand logits to `cross_entropy`.",
)


def _is_sigmoid(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the model's output may be that of a sigmoid, before a loss that applies another one.

    The gradients of a squared error are as large, but its loss is smaller. So the loss decides, if it was logged. Where
    the sigmoid is a function, the loss has to be the one that the gradients tell. Where it is a module, the loss only
    must not be smaller than that of any probability that is taken for a logit.
    """
    if not lie_within(evidence, column):
        return False
    losses = _losses_and_expected(evidence, column, norms)
    if not len(losses) and _has_one_label(evidence, column, norms):
        return True
    if not ends_with(evidence, column, "Sigmoid"):
        return len(losses) >= LEAST_ROWS and _share_as_expected(losses) >= OFTEN
    if len(losses):
        return bool(np.median(losses[:, 0]) > LEAST_OF_SIGMOID)
    return not _must_be_squared(evidence, column)


def _must_be_squared(evidence: Evidence, column: int) -> bool:
    """Whether the targets of a squared error that the gradients show are none that a cross entropy could seem to have.

    The gradient `sigmoid(p) - label` of a cross entropy seems to be that of a target `p - (sigmoid(p) - label) / 2`.
    """
    for row in rows_with(evidence, lambda one: one.targets is not None):
        targets = facts_at(evidence, row).targets
        low, high = (float(evidence.column(name, column)[row]) for name in ("min", "max"))
        least, most = low - 0.5 / (1 + math.exp(-low)), high + 0.5 / (1 + math.exp(high))
        if targets is not None and (targets[0] < least - NEAR_LABEL or targets[1] > most + NEAR_LABEL):
            return True
    return False


def _has_one_label(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the gradients are those of a cross entropy of sigmoids with one label for the whole batch.

    A discriminator that is given real samples and generated ones in turn has such batches. The magnitude of the mean
    gradient then is the sigmoid of the mean output, or 1 less that sigmoid. A squared error has the output itself in
    place of its sigmoid; where both are nearly equal, the step tells nothing.
    """
    info = evidence.places.tensor(evidence.series[column])
    ends_with_sigmoid = evidence.places.class_of(last_module(evidence)) == "Sigmoid"  # in any of its calls
    if info is None or sample_size(info) != 1 or not ends_with_sigmoid:
        return False
    size = samples_of(evidence, info, column)
    outputs, found = evidence.column("mean", column).astype(np.float64), evidence.column("mean", norms) * size
    known = np.isfinite(outputs) & np.isfinite(found)
    wrong = 1 / (1 + np.exp(-outputs[known]))
    near = np.minimum(np.abs(found[known] - wrong), np.abs(found[known] - 1 + wrong)) < NEAR_LABEL
    is_squared = np.abs(outputs[known] - wrong) < 3 * NEAR_LABEL
    return bool(len(near) >= LEAST_ROWS and near.mean() >= OFTEN and not is_squared.mean() >= 1 - OFTEN)


def _losses_and_expected(evidence: Evidence, column: int, norms: int) -> Floats:
    """The logged loss, and the loss that the gradients at a sigmoid tell, at each step with both, `[n, 2]`.

    The gradient of a mean binary cross entropy at an element is the probability of the wrong answer over the number of
    elements. Its loss is the negative logarithm of the probability of the right answer.
    """
    loss = judged(evidence)
    if loss is None:
        return np.empty((0, 2))
    elements, lengths = (
        evidence.column(name, series).astype(np.float64) for name, series in (("count", column), ("l2_norm", norms))
    )
    wrong = lengths * np.sqrt(elements)
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    known = np.isfinite(wrong[rows]) & (wrong[rows] < 1)
    return np.stack([loss.values[values[known]], -np.log1p(-wrong[rows[known]])], axis=1)


def _share_as_expected(losses: Floats) -> float:
    """The share of the steps at which the logged loss is the one that the gradients tell."""
    return float((np.abs(losses[:, 0] - losses[:, 1]) < LOSS_AS_EXPECTED * losses[:, 1]).mean())


def _of_cross_entropy(classes: int, measured: Floats, size: Floats, *, positions: int) -> Flags:
    """At which steps the gradients of a sample have the norm of a softmax of probabilities minus the label.

    That is about `sqrt(1 - 1 / classes)` at first, as the softmax of probabilities is nearly uniform, and stays large
    even where the answer is right. The negative logarithm has a norm of at least 1, and a mean squared error one of
    `2 / classes` times as much, which is the same for 2 classes.

    Args:
        classes: The number of classes.
        measured: Mean norm of a sample's gradient, times the root of its positions, `[steps]`.
        size: Number of samples, `[steps]`.
        positions: Number of positions of a sample. The loss may be a mean over the samples, or their sum.
    """
    if classes < 3 or not len(measured):
        return np.zeros(len(measured), dtype=bool)
    expected = np.sqrt(1 - 1 / classes)
    for scaled in (measured * size, measured / positions):
        if abs(scaled[0] / expected - 1) < AS_EXPECTED:
            right = (1 - math.e / (math.e + classes - 1)) * math.sqrt(classes / (classes - 1))
            found: Flags = (scaled > right * (1 - AS_EXPECTED)) & (scaled < math.sqrt(2))
            return found
    return np.zeros(len(measured), dtype=bool)


def _of_sigmoid(evidence: Evidence, norms: int, scale: Floats) -> Flags:
    """At which steps all gradients have the magnitude of a sigmoid of a probability minus the label, 0.27 to 0.73.

    That of a binary cross entropy of probabilities is at least 1.
    """
    most, least = (evidence.column(name, norms) * scale for name in ("max", "min"))
    found: Flags = (most < MOST_OF_SIGMOID) & (least > 1 - MOST_OF_SIGMOID)
    return found


def _twice(evidence: Evidence, output: TrainedOutput, rows: Rows, *, is_softmax: bool, may_be_dice: bool) -> Finding:
    """The finding that model and loss both apply a softmax, or both a sigmoid, at the module or the output."""
    name = "softmax" if is_softmax else "sigmoid"
    last = last_of(evidence, output.column, *(SOFTMAXES if is_softmax else ("Sigmoid",)))
    loss = "`cross_entropy`" if is_softmax else "`binary_cross_entropy_with_logits`"
    return finding(
        evidence,
        "softmax-before-loss",
        "info" if may_be_dice and judged(evidence) is None else "warning",
        at=last or output.series,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The output of {named(last or output.series.module)} is that of a {name}, and the gradient that "
        f"comes back is that of a loss that applies another one, such as {loss}. Such a loss cannot get small.",
        advice=f"Remove the {name} at the end of the network: the loss applies it. Apply it yourself only to show or "
        "use probabilities.",
    )
