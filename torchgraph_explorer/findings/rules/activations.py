"""A ReLU, sigmoid, tanh or cosine at the end of a network whose loss takes logits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import (
    SIGMOID_OF_0,
    SLACK,
    begins_as_binary,
    begins_as_cross_entropy,
)
from torchgraph_explorer.findings.rules.outputs import (
    WITHIN,
    Floats,
    TrainedOutput,
    ends_with,
    is_softmax,
    last_module,
    sample_size,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding
from torchgraph_explorer.schema import Series

NEAR_BOUND = 0.95
"""An output of a sigmoid or tanh that is beyond this share of its range is near its bound."""

LEAST_COSINES = 5
"""Steps of the second half, at least, at which the largest output is near 1."""

LEAST_ZEROS = 0.02
"""Share of outputs that are zero, of one number for each sample, from which on they are those of a ReLU."""

HALF = 0.2
"""How far the largest gradient, for each sample, may be from a half at first."""

ZEROS = 1.25
"""Of so many zeros for each sample on, in the median of the steps, they are those of a ReLU."""


def activation_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are bounded by an activation, and the loss takes them for the logits of several classes."""
    for output in trained_outputs(evidence):
        name = before_cross_entropy(evidence, output)
        if name is not None:
            yield _bounded(evidence, output.series, name)
        elif is_relu_before_sigmoids(evidence, output):
            yield _never_below_half(evidence, output.series)


def is_relu_before_sigmoids(evidence: Evidence, output: TrainedOutput) -> bool:
    """Whether the outputs are those of a ReLU, and loss and gradients those of a binary cross entropy of logits.

    The gradient of a zero is a half, whatever its label is.
    """
    _, info, column, norms = output
    low, high, shares = evidence.column("min", column), evidence.column("max", column), evidence.zero_shares[:, column]
    known = np.flatnonzero(np.isfinite(low))
    if sample_size(info) != 1 or len(known) < LEAST_ROWS or (low[known] < 0).any() or not high[known].max() > 0:
        return False
    if np.median(shares[known]) < LEAST_ZEROS:
        return False
    least, most = (evidence.column(name, norms) * samples_of(evidence, info, column) for name in ("min", "max"))
    rows = np.flatnonzero(np.isfinite(most))
    if len(rows) < LEAST_ROWS or not (most[rows] < 1 + SLACK).all() or abs(most[rows[0]] - SIGMOID_OF_0) > HALF:
        return False
    has_zeros = shares[rows] > 0
    is_half_or_less = (least[rows] < SIGMOID_OF_0 + SLACK) & (most[rows] > SIGMOID_OF_0 - SLACK)
    lengths = evidence.column("mean", norms) * samples_of(evidence, info, column)
    return bool(is_half_or_less[has_zeros].all()) and begins_as_binary(evidence, rows, lengths[rows])


def _never_below_half(evidence: Evidence, one: Series) -> Finding:
    last = last_module(evidence)
    is_module = evidence.places.class_of(last) == "ReLU"
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last if is_module else one,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text="The model's outputs are not negative, as those of a ReLU, and the loss takes them for logits, as "
        "`binary_cross_entropy_with_logits` does: no probability can be below one half, and there is no gradient "
        "where the ReLU gives zero.",
        advice="End the network with a linear layer, without ReLU: the loss applies a sigmoid.",
    )


def before_cross_entropy(evidence: Evidence, output: TrainedOutput) -> str | None:
    """The activation that bounds an output which a cross entropy takes for logits of several classes; None without."""
    _, info, column, norms = output
    classes = (info.shape[1] or 0) if len(info.shape) == 2 else 0
    if classes < 3 or is_softmax(evidence, column, info):
        return None
    name = _activation(evidence, column, classes=classes)
    return name if name and begins_as_cross_entropy(evidence, column, norms, classes=classes) else None


def _activation(evidence: Evidence, column: int, *, classes: int) -> str | None:
    """The activation that the model's output is of, by its range at all steps.

    Logits may lie within -1 and 1 by chance. So a sigmoid or tanh has to be the last module, or outputs come close to
    the bounds, and never beyond, in the last quarter of the steps. Logits may be told from their smallest one, which
    is then zero, but one of them alone.
    """
    low, high, zeros, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("min", "max", "zeros", "sampled")
    )
    known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    if len(known) < LEAST_ROWS:
        return None
    low, high, share = low[known], high[known], zeros[known] / sampled[known]
    if (low == 0).all() and np.median(share) > ZEROS / classes and high.max() > 1:
        return "ReLU"
    late = slice(3 * len(known) // 4, None)
    for name, bottom in (("Sigmoid", 0.0), ("Tanh", -1.0)):
        if low.min() < bottom or high.max() > 1:
            continue
        is_close = (high[late] > NEAR_BOUND).all() and (low[late] < bottom + 1 - NEAR_BOUND).all()
        if is_close or ends_with(evidence, column, name):
            return name
    return "cosine" if _are_cosines(low, high) else None


def _are_cosines(low: Floats, high: Floats) -> bool:
    """Whether the largest output of each step comes near 1 over the second half of the steps, and none is beyond.

    A cosine of the right class does so, and seldom comes near -1: that of several others cannot.
    """
    late = high[len(high) // 2 :]
    is_within = low.min() > -1 - WITHIN and high.max() < 1 + WITHIN
    return bool(is_within and low.min() < 0 and len(late) >= LEAST_COSINES and (late > NEAR_BOUND).all())


def _bounded(evidence: Evidence, one: Series, name: str) -> Finding:
    range_, keeps = {
        "ReLU": ("not negative", "a class gets no gradient where its logit is zero"),
        "Sigmoid": ("between 0 and 1", "no class can get more than e times the probability of another one"),
        "Tanh": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
        "cosine": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
    }[name]
    last = last_module(evidence)
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last if evidence.places.class_of(last) == name else one,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text=f"The model's outputs are {range_}, as those of a {name}, and the loss takes them for logits, as "
        f"`cross_entropy` does: {keeps}.",
        advice="Multiply the cosines by a scale of 10 or more, or divide them by a temperature, before the loss."
        if name == "cosine"
        else f"End the network with a linear layer, without {name}: the loss applies a softmax.",
    )
