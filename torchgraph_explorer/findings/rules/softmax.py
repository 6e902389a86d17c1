"""A softmax or sigmoid at the end of a network whose loss applies another one, or wants logarithms."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.activations import before_cross_entropy, is_relu_before_sigmoids
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED, SIGMOID_OF_0, SIGMOID_OF_1, SLACK, parts
from torchgraph_explorer.findings.rules.dimensions import softmax_for_several
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    Floats,
    ends_with,
    last_module,
    lie_within,
    sample_size,
    samples_of,
    softmax_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Flags, Rows, finding, named
from torchgraph_explorer.schema import Series

MOST_OF_SIGMOID = 0.76
"""The largest gradient at a sigmoid of a loss that applies another one: the sigmoid of 1, and a margin."""

LEAST_OF_SIGMOID = 0.3
"""The smallest loss of a probability that is taken for a logit is `log(1 + 1/e)`, 0.31."""

LOSS_AS_EXPECTED = 0.15
"""By how much the logged loss may differ from the one that the gradient at a sigmoid tells."""

NEAR_LABEL = 0.01
"""By how much the mean gradient of samples with one label may differ from what follows from their mean output."""

OFTEN = 0.75
"""Share of the recorded steps at which it has to be so."""


def softmax_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are probabilities, and the gradient that comes back is that of a loss that takes logits.

    Or it is that of a loss with several right classes for a sample, which such probabilities cannot tell.
    """
    yield from softmax_for_several(evidence)
    for output in trained_outputs(evidence):
        one, info, column, norms = output
        softmax = softmax_of(evidence, column, info)
        if is_relu_before_sigmoids(evidence, output):
            continue
        if not softmax and (not _is_sigmoid(evidence, column, norms) or before_cross_entropy(evidence, output)):
            continue
        measured = evidence.column("mean", norms).astype(np.float64)
        rows = np.flatnonzero(np.isfinite(measured) & (measured > 0))
        size, width = samples_of(evidence, info, column), sample_size(info)
        classes, positions = softmax or (2, 1)
        if softmax and _wants_logarithms(evidence, norms, size=size * math.sqrt(positions), rows=rows):
            yield _taken_for_others(evidence, one, rows, words=_AS_LOGARITHMS)
            continue
        if softmax and positions == 1 and _is_of_sigmoids(evidence, norms, size=size, rows=rows, classes=classes):
            yield _taken_for_others(evidence, one, rows, words=_AS_LOGITS)
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
        yield _twice(evidence, one, rows, is_softmax=softmax is not None, may_be_dice=positions > 1)


def _may_be_cross_entropy(evidence: Evidence, classes: int, *, times: int) -> bool:
    """Whether the loss, if it was logged, begins as that of nearly equal logits, and is never below that of a sure one.

    It may have been divided before it was logged: `times` is by what.

    The gradient of a Dice coefficient of probabilities is as large as that of a cross entropy of them, but its loss is
    at most 1.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values):
        return True
    least, values = math.log(math.e + classes - 1) - 1, loss.values * times
    return float(values[0]) > (1 - LOSS_AS_EXPECTED) * math.log(classes) and float(values.min()) > 0.9 * least


def _is_of_sigmoids(evidence: Evidence, norms: int, *, size: Floats, rows: Rows, classes: int) -> bool:
    """Whether the loss takes each probability of a softmax for the logit of a binary cross entropy.

    The gradient is then `sigmoid(p)`, and 1 less for the right class. At each sample its square is between that of a
    right answer, p = 1 for that class, and that of a wrong one, p = 1 for another.
    """
    low, high = (evidence.column(name, norms)[rows].astype(np.float64) for name in ("min", "max"))
    others = (classes - 1) * SIGMOID_OF_0**2
    least, most = math.sqrt(others + (1 - SIGMOID_OF_1) ** 2), math.sqrt(others + SIGMOID_OF_1**2)
    return len(rows) >= LEAST_ROWS and any(
        bool((low * scale > least * (1 - SLACK)).all() and (high * scale < most * (1 + SLACK)).all())
        for scale in (size[rows] * classes, np.ones(len(rows)))
    )


def _wants_logarithms(evidence: Evidence, norms: int, *, size: Floats, rows: Rows) -> bool:
    """Whether the loss is linear in the probabilities: it is meant for their logarithms.

    The gradient of `-log(p)` at a sample has at least the norm 1. Without the logarithm it is the target, however good
    the answer is: exactly 1 for a label, and less for a distribution. A squared error can be so small, too, but the
    loss is then not negative.
    """
    scaled = [evidence.column(name, norms)[rows] * size[rows] for name in ("min", "max")]
    if not len(rows) or not all((one < 1 + EQUAL).all() for one in scaled):
        return False
    is_label = all((np.abs(one - 1) < EQUAL).all() for one in scaled)
    loss = judged(evidence)
    return is_label or (loss is not None and len(loss.values) >= LEAST_ROWS and bool((loss.values < 0).all()))


def _taken_for_others(evidence: Evidence, one: Series, rows: Rows, *, words: tuple[str, str]) -> Finding:
    text, advice = words
    return finding(
        evidence,
        "softmax-before-loss",
        "warning",
        at=_last_softmax(evidence) or one,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The model's outputs are {text}",
        advice=advice,
    )


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
"""What the output is taken for, and what to do."""


def _last_softmax(evidence: Evidence) -> str | None:
    last = last_module(evidence)
    return last if evidence.places.class_of(last) in {"Softmax", "Softmax2d"} else None


def _is_sigmoid(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the model's output may be that of a sigmoid, before a loss that applies another one.

    A squared error has gradients of the same size, but a smaller loss. So the loss decides, if it was logged: where the
    sigmoid is a function, it has to be the one that the gradients tell; where it is a module, it must not be smaller.
    """
    if not lie_within(evidence, column):
        return False
    losses = _losses_and_expected(evidence, column, norms)
    if not len(losses) and _has_one_label(evidence, column, norms):
        return True
    if not ends_with(evidence, column, "Sigmoid"):
        return len(losses) >= LEAST_ROWS and _share_as_expected(losses) >= OFTEN
    return not len(losses) or bool(np.median(losses[:, 0]) > LEAST_OF_SIGMOID)


def _has_one_label(evidence: Evidence, column: int, norms: int) -> bool:
    """Whether the gradients are those of a cross entropy of sigmoids with one label for the whole batch.

    So it is where a critic is given what is real, and then what was made. The mean gradient is then the sigmoid of the
    mean output, or one less it: that of a squared error is the output itself, which is the same at one number only.
    """
    info = evidence.places.tensor(evidence.series[column])
    ends_so = evidence.places.class_of(last_module(evidence)) == "Sigmoid"  # which may be called for each of both
    if info is None or sample_size(info) != 1 or not ends_so:
        return False
    size = samples_of(evidence, info, column)
    outputs, found = evidence.column("mean", column).astype(np.float64), evidence.column("mean", norms) * size
    known = np.isfinite(outputs) & np.isfinite(found)
    wrong = 1 / (1 + np.exp(-outputs[known]))
    near = np.minimum(np.abs(found[known] - wrong), np.abs(found[known] - 1 + wrong)) < NEAR_LABEL
    is_squared = np.abs(outputs[known] - wrong) < 3 * NEAR_LABEL
    return bool(len(near) >= LEAST_ROWS and near.mean() >= OFTEN and not is_squared.mean() >= 1 - OFTEN)


def _losses_and_expected(evidence: Evidence, column: int, norms: int) -> Floats:
    """At each step with both, the logged loss, and the one that gradients of a sigmoid's cross entropy tell: `[n, 2]`.

    Its gradient at an element is the probability of the wrong answer, over the number of elements, and its loss the
    negative logarithm of that of the right one.
    """
    loss = judged(evidence)
    if loss is None:
        return np.empty((0, 2))
    elements, lengths = (
        evidence.column(name, of).astype(np.float64) for name, of in (("count", column), ("l2_norm", norms))
    )
    wrong = lengths * np.sqrt(elements)
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    known = np.isfinite(wrong[rows]) & (wrong[rows] < 1)
    return np.stack([loss.values[values[known]], -np.log1p(-wrong[rows[known]])], axis=1)


def _share_as_expected(losses: Floats) -> float:
    return float((np.abs(losses[:, 0] - losses[:, 1]) < LOSS_AS_EXPECTED * losses[:, 1]).mean())


def _of_cross_entropy(classes: int, measured: Floats, size: Floats, *, positions: int) -> Flags:
    """Where the gradient of a sample has the norm of a softmax of probabilities minus the label, summed or averaged.

    That is at first about the root of 1 - 1 / classes, as the softmax of probabilities is nearly uniform, and it does
    not get small even where the answer is right. A negative logarithm has at least 1, and a mean squared error
    `2 / classes` of it, which for 2 classes is the same. `measured` is for all `positions` of a sample the norm of the
    average, times their root: that of one position, in the root mean square.
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
    """Where the largest and the mean gradient have the size of a sigmoid of a probability minus the label.

    For each element it lies between 0.27 and 0.73. A binary cross entropy has at least 1.
    """
    most, least = (evidence.column(name, norms) * scale for name in ("max", "min"))
    found: Flags = (most < MOST_OF_SIGMOID) & (least > 1 - MOST_OF_SIGMOID)
    return found


def _twice(evidence: Evidence, one: Series, rows: Rows, *, is_softmax: bool, may_be_dice: bool) -> Finding:
    last = last_module(evidence)
    name = "softmax" if is_softmax else "sigmoid"
    is_module = evidence.places.class_of(last) in {"Softmax", "Softmax2d", "Sigmoid"}
    loss = "`cross_entropy`" if is_softmax else "`binary_cross_entropy_with_logits`"
    return finding(
        evidence,
        "softmax-before-loss",
        "info" if may_be_dice and judged(evidence) is None else "warning",
        at=last if is_module else one,
        rows=rows,
        numbers={"steps": len(rows)},
        text=f"The output of {named(last if is_module else one.module)} is that of a {name}, and the gradient that "
        f"comes back is that of a loss that applies another one, such as {loss}. Such a loss cannot get small.",
        advice=f"Remove the {name} at the end of the network: the loss applies it. Apply it yourself only to show or "
        "use probabilities.",
    )
