"""Finds an activation between the model's outputs and a loss that takes logits, as in the training loop.

The evidence is the gradients at the outputs. Those at what an activation gives of these follow from them, and are those
of such a loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import operations
from torchgraph_explorer.findings.rules.outputs import TrainedOutput
from torchgraph_explorer.findings.rules.rule import Rows, finding, named
from torchgraph_explorer.findings.rules.twice_by_gradient import ALIKE, EXACT, LEAST_LABELS, LEAST_STEPS, VARIED
from torchgraph_explorer.schema import OperationKind

BETTER = 0.01
"""Largest distance of the gradients from those of such a loss, over their distance from those of the same loss of the
outputs themselves. Where outputs are near 0, a tanh or sigmoid changes little, and both are small."""

ROUNDING = 1e-5
"""Largest distance of gradients that may be rounding alone. Probabilities that are so much alike tell nothing."""

UNKNOWN = 1e9
"""A distance from here on is not known, as where an activation is flat everywhere."""

MOST_USUAL_FOCUS = 2
"""Largest exponent of a focal loss that is taken for one: with larger ones, it resembles a squared error."""


class _Classes(NamedTuple):
    """Distances of the gradients from those of a softmax's loss: of the outputs themselves, and behind activations."""

    plain: float
    softmax: float
    softmax_over_deviation: float
    sigmoid: float
    tanh: float
    relu: float


class _Labels(NamedTuple):
    """The distance of gradients from those of a sigmoid's loss, its exponent, its labels, and how varied logits are."""

    off: float
    focus: float
    labels: float
    deviation: float

    @property
    def tells(self) -> bool:
        """Whether the logits are so varied, and labels so many, that another loss has other gradients."""
        return self.labels >= LEAST_LABELS and self.deviation > VARIED


def softmax_again(evidence: Evidence, output: TrainedOutput) -> Finding | None:
    """The outputs go through a softmax or sigmoid, and the loss applies another one."""
    rows = _where([(row, *_softmax(_Classes(*numbers[:6]))) for row, numbers in _numbers(evidence, output, "outside")])
    if rows is None:
        rows = _where(
            [
                (row, *_again(sums, _Labels(*numbers[:4]), _Labels(*numbers[4:])))
                for row, (sums, *numbers) in _numbers(evidence, output, "two")
            ]
        )
    if rows is not None:
        return _again_at(evidence, output, rows, activation="softmax", loss="cross_entropy")
    rows = _where(
        [
            (row, *_again(0.0, _Labels(numbers[6], 0, *numbers[9:]), _Labels(*numbers[7:])))
            for row, numbers in _numbers(evidence, output, "outside")
        ]
    )
    if rows is not None:
        return _again_at(evidence, output, rows, activation="sigmoid", loss="binary_cross_entropy_with_logits")
    return None


def softmax_of_two_again(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The steps that show that the loss applies a softmax to two probabilities; None if they do not."""
    return _where(
        [
            (row, labels.tells, _is_exact(sums, labels))
            for row, (sums, *numbers) in _numbers(evidence, output, "two")
            for labels in (_Labels(*numbers[:4]),)
        ]
    )


def activation_between(evidence: Evidence, output: TrainedOutput) -> Finding | None:
    """The outputs go through a sigmoid, tanh or ReLU, and the loss takes what it gives for logits of classes."""
    known = [(row, _Classes(*numbers[:6])) for row, numbers in _numbers(evidence, output, "outside")]
    for name, consequence in _BOUNDED.items():
        seen = [(row, one.plain, getattr(one, name.lower())) for row, one in known]
        rows = _where([(row, off < UNKNOWN, off < min(EXACT, BETTER * plain)) for row, plain, off in seen])
        if rows is not None:
            return _found(
                evidence,
                output,
                rows,
                kind="activation-before-loss",
                text=f"The gradient that comes back to {named(output.series.module)} is that of a {name} of its "
                f"outputs, which a loss takes for logits, as `cross_entropy` does: {consequence}.",
                advice=f"Hand the outputs to the loss as they are, without {name}: the loss applies a softmax.",
            )
    return None


_BOUNDED = {
    "sigmoid": "no class can get more than e times the probability of another one",
    "tanh": "no class can get more than e² times the probability of another one",
    "ReLU": "a class gets no gradient where its logit is below zero",
}
"""What follows from each activation."""


def _softmax(one: _Classes) -> tuple[bool, bool]:
    """Whether a step tells that, and whether its gradients are those of a loss of a softmax's softmax."""
    deviation = one.softmax / max(one.softmax_over_deviation, 1e-30)
    return ALIKE * deviation > ROUNDING, one.softmax < EXACT and one.softmax_over_deviation < ALIKE


def _again(sums: float, plain: _Labels, behind: _Labels) -> tuple[bool, bool]:
    """The same of a sigmoid's sigmoid, where `plain` are the numbers of a loss of the outputs themselves."""
    return behind.tells, _is_exact(sums, behind) and not behind.off >= BETTER * plain.off  # which may be NaN


def _is_exact(sums: float, labels: _Labels) -> bool:
    return sums < EXACT and labels.off < EXACT and labels.focus <= MOST_USUAL_FOCUS


def _numbers(evidence: Evidence, output: TrainedOutput, kind: OperationKind) -> list[tuple[int, tuple[float, ...]]]:
    """What is known of the gradients at an output, at each row."""
    path = output.series.path
    return [(row, one.numbers) for row, one in operations(evidence, kind) if one.module == path]


def _where(seen: list[tuple[int, bool, bool]]) -> Rows | None:
    """The rows that tell something, if there are enough, and all of them tell the same; else None.

    Args:
        seen: Each row, whether it tells something, and whether its gradients are those of such a loss.
    """
    rows = [(row, is_so) for row, tells, is_so in seen if tells]
    return np.array([row for row, _ in rows]) if len(rows) >= LEAST_STEPS and all(so for _, so in rows) else None


def _again_at(evidence: Evidence, output: TrainedOutput, rows: Rows, *, activation: str, loss: str) -> Finding:
    """The finding that the loss applies an activation to what that already gives of the output."""
    return _found(
        evidence,
        output,
        rows,
        kind="softmax-before-loss",
        text=f"The gradient that comes back to {named(output.series.module)} is that of a {activation} of its outputs, "
        f"to which the loss applies another one, as `{loss}` does. Such a loss cannot get small.",
        advice=f"Hand the outputs to the loss as they are, without {activation}: the loss applies it. Apply it "
        "yourself only to show or use probabilities.",
    )


def _found(evidence: Evidence, output: TrainedOutput, rows: Rows, *, kind: str, text: str, advice: str) -> Finding:
    """A finding at the model's output."""
    numbers = {"steps": float(len(rows))}
    return finding(evidence, kind, "warning", at=output.series, rows=rows, numbers=numbers, text=text, advice=advice)
