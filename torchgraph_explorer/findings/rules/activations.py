"""Finds a ReLU, sigmoid, tanh or cosine at the end of a network whose loss takes its outputs for logits.

The evidence is the range of the outputs at all steps, and whether the logged loss and the gradients at the outputs, or
these alone, are those of a cross entropy.
"""

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
    last_of,
    sample_size,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.outside import activation_between
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Flags, finding

NEAR_BOUND = 0.95
"""Least output of a sigmoid, tanh or cosine that counts as near its upper bound of 1; likewise for the lower bound."""

LEAST_COSINES = 5
"""Fewest recorded steps in the second half of the run that outputs are taken for cosines by."""

LEAST_STOPPED, GROWN = 3, 1.5
"""Fewest such steps where the largest output has grown by this factor until then: it has stopped at the bound."""

LEAST_ZEROS = 0.02
"""Least median share of zeros, among outputs of one number for each sample, that shows a ReLU."""

HALF = 0.2
"""How far the largest gradient of a sample may be from one half at the first step: logits are near 0 then, and the
gradient of a binary cross entropy at a logit of 0 is one half."""

ZEROS = 1.25
"""Least number of zeros in the outputs of a sample, in the median of the steps, that shows a ReLU over several
classes. Logits from which the smallest one of each sample is subtracted have one zero a sample."""


def activation_before_loss(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are bounded by an activation, and the loss takes them for logits, of two or more classes."""
    for output in trained_outputs(evidence):
        name = before_cross_entropy(evidence, output)
        if name is not None:
            yield _bounded(evidence, output, name)
        elif is_relu_before_sigmoids(evidence, output):
            yield _never_below_half(evidence, output)
        else:
            yield from filter(None, [activation_between(evidence, output)])


def is_relu_before_sigmoids(evidence: Evidence, output: TrainedOutput) -> bool:
    """Whether the outputs are those of a ReLU, and loss and gradients those of a binary cross entropy of logits.

    The magnitude of that loss's gradient is one half where the logit is zero, whatever the label.
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


def _never_below_half(evidence: Evidence, output: TrainedOutput) -> Finding:
    """The finding of a ReLU before a binary cross entropy: at the ReLU module, or else at the model's output."""
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last_of(evidence, output.column, "ReLU") or output.series,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text="The model's outputs are not negative, as those of a ReLU, and the loss takes them for logits, as "
        "`binary_cross_entropy_with_logits` does: no probability can be below one half, and there is no gradient "
        "where the ReLU gives zero.",
        advice="End the network with a linear layer, without ReLU: the loss applies a sigmoid.",
    )


def before_cross_entropy(evidence: Evidence, output: TrainedOutput) -> str | None:
    """The name of the activation that bounds an output `[samples, classes]` which a cross entropy takes for logits.

    None if there are fewer than three classes, no activation bounds the output, or the loss is no cross entropy.
    """
    _, info, column, norms = output
    classes = (info.shape[1] or 0) if len(info.shape) == 2 else 0
    if classes < 3 or is_softmax(evidence, column, info):
        return None
    name = _activation(evidence, column, classes=classes)
    return name if name and begins_as_cross_entropy(evidence, column, norms, classes=classes) else None


def _activation(evidence: Evidence, column: int, *, classes: int) -> str | None:
    """The name of the activation that made the model's output, by its range at all steps; None if none explains it.

    Logits may lie within -1 and 1 by chance. So a sigmoid or tanh has to be the last module, or the outputs have to
    come close to both of its bounds in the last quarter of the steps. Logits may also have their smallest one
    subtracted: then one of each sample is zero, and for a ReLU there have to be more zeros than that.
    """
    low, high, zeros, sampled = (
        evidence.column(name, column).astype(np.float64) for name in ("min", "max", "zeros", "sampled")
    )
    known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    if len(known) < LEAST_ROWS:
        return None
    low, high, share = low[known], high[known], zeros[known] / sampled[known]
    steps = evidence.steps[known]
    if (low == 0).all() and np.median(share) > ZEROS / classes and high.max() > 1:
        return "ReLU"
    late = slice(3 * len(known) // 4, None)
    for name, bottom in (("Sigmoid", 0.0), ("Tanh", -1.0)):
        if low.min() < bottom or high.max() > 1:
            continue
        is_close = (high[late] > NEAR_BOUND).all() and (low[late] < bottom + 1 - NEAR_BOUND).all()
        if is_close or ends_with(evidence, column, name):
            return name
    return "cosine" if _are_cosines(low, high, is_late=2 * steps >= steps[0] + steps[-1]) else None


def _are_cosines(low: Floats, high: Floats, *, is_late: Flags) -> bool:
    """Whether outputs with these minima and maxima, `[steps]`, may be cosines: within -1 and 1, and learned ones.

    After learning, the largest output of each step is near 1, the cosine with the right class. The smallest need not be
    near -1, as the cosines with several other classes cannot all be.
    """
    late = high[is_late]
    is_within = low.min() > -1 - WITHIN and high.max() < 1 + WITHIN
    has_grown = len(late) >= LEAST_STOPPED and high[0] * GROWN < late.min()
    is_told = len(late) >= LEAST_COSINES or has_grown
    return bool(is_within and low.min() < 0 and is_told and (late > NEAR_BOUND).all())


def _bounded(evidence: Evidence, output: TrainedOutput, name: str) -> Finding:
    """The finding of the activation `name` before a cross entropy: at its module, or else at the model's output."""
    range_, consequence = {
        "ReLU": ("not negative", "a class gets no gradient where its logit is zero"),
        "Sigmoid": ("between 0 and 1", "no class can get more than e times the probability of another one"),
        "Tanh": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
        "cosine": ("between -1 and 1", "no class can get more than e² times the probability of another one"),
    }[name]
    return finding(
        evidence,
        "activation-before-loss",
        "warning",
        at=last_of(evidence, output.column, name) or output.series,
        rows=range(len(evidence)),
        numbers={"steps": len(evidence)},
        text=f"The model's outputs are {range_}, as those of a {name}, and the loss takes them for logits, as "
        f"`cross_entropy` does: {consequence}.",
        advice="Multiply the cosines by a scale of 10 or more, or divide them by a temperature, before the loss."
        if name == "cosine"
        else f"End the network with a linear layer, without {name}: the loss applies a softmax.",
    )
