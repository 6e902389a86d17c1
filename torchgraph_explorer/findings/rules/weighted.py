"""Finds losses that weigh classes the wrong way round, or leave one out.

The evidence is class weights and numbers of answers, which the live training inferred from the gradients at the logits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import ClassWeights, class_weights, facts_at, numbers_of
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding

HEAVIER, COMMONER = 1.5, 1.5
"""Least ratio of the largest weight to the smallest, and of the numbers of answers of these two classes, in the median
of the steps."""

AGREES = 0.9
"""Least correlation of the logarithms of weights and of numbers of answers, over the classes, at each step."""

LEAST_SAMPLES, LEAST_LEFT_OUT, MOST_LEFT_OUT = 100, 5, 0.6
"""Fewest samples of all steps that were looked at; fewest of them without gradient; and their largest share at a
step."""

EVEN, LEAST_ANSWERS = 2.0, 10
"""Largest share of the most common answer, times the classes, of answers so even that a class which is neither the
first nor the last is no answer on purpose; and fewest answers of all steps, for each class."""

NOTHING = 1e-3
"""Largest weight of a class, over that of another one, that leaves it out; and by how much its samples together have
to weigh less, so that it is not a frequent class which is balanced."""

SATURATED = 10.0
"""Largest magnitude of logits whose sigmoid is not so near to 0 or 1 that a right answer has no gradient."""

LEAST_CLASSES = 3
"""Fewest classes of an output that may leave one out."""


def class_weights_inverted(evidence: Evidence) -> Iterator[Finding]:
    """The loss gives the more weight to a class the more samples it has, and not the less."""
    seen = [(row, weights) for row, weights in class_weights(evidence) if weights.classes > 1]
    if len(seen) < LEAST_ROWS:
        return
    for _, weights in seen:
        if not (weights.heavier > HEAVIER and weights.commoner > 1 and weights.agreement > AGREES):
            return
    heavier = float(np.median([weights.heavier for _, weights in seen]))
    commoner = float(np.median([weights.commoner for _, weights in seen]))
    if commoner < COMMONER:
        return
    yield finding(
        evidence,
        "class-weights-inverted",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"heavier": heavier, "commoner": commoner},
        text="The loss gives the class with the most samples the largest weight, and rarer classes less: a sample of "
        f"the one counts {heavier:.2g} times as much as one of the rarest, and there are {commoner:.2g} times as many "
        "of them. Weights that are to balance classes are the other way round.",
        advice="Weigh each class by the inverse of its share, `total / (classes * counts)`; `pos_weight` is the number "
        "of negative samples over that of positive ones.",
    )


def class_left_out(evidence: Evidence) -> Iterator[Finding]:
    """Some samples have no gradient, and the first or last class is never an answer, while each other one is.

    Models with inputs of whole numbers are left out: that class may be the token of padding.
    """
    seen = class_weights(evidence)
    if len(seen) < LEAST_ROWS:
        return
    classes, share = evidence.places.classes, _share_left_out(evidence, seen)
    yield from _nearly_left_out(evidence, seen)
    yield from _one_of_two_left_out(evidence, seen, share)
    if share is None or classes < LEAST_CLASSES or _has_tokens(evidence):
        return
    if max(weights.without_gradient for _, weights in seen) > MOST_LEFT_OUT:
        return
    answers = {
        0: sum(weights.of_first for _, weights in seen),
        classes - 1: sum(weights.of_last for _, weights in seen),
    }
    missing = [label for label, count in answers.items() if not count] or _middle(evidence, seen)
    if not missing or max(weights.classes for _, weights in seen) != classes - 1:
        return
    left = missing[0]
    yield finding(
        evidence,
        "class-left-out",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"share": share, "left_out": left, "classes": classes},
        text=f"The loss leaves out {share:.0%} of the samples, which get no gradient, and class {left} is never an "
        f"answer, while all {classes - 1} others are: the samples of class {left} are ignored, and the model never "
        "learns it.",
        advice=f"`ignore_index={left}` is for targets in which {left} stands for padding or no label. Leave it out (it "
        "is -100 by default), or give the class a weight that is not 0.",
    )


def _share_left_out(evidence: Evidence, seen: list[tuple[int, ClassWeights]]) -> float | None:
    """The share of all samples that get no gradient; None if there are too few samples, or too few of these."""
    samples = [facts_at(evidence, row).batch_size or 0 for row, _ in seen]
    left_out = sum(weights.without_gradient * size for (_, weights), size in zip(seen, samples, strict=True))
    return None if sum(samples) < LEAST_SAMPLES or left_out < LEAST_LEFT_OUT else left_out / sum(samples)


def _middle(evidence: Evidence, seen: list[tuple[int, ClassWeights]]) -> list[int]:
    """The class that is never an answer, at all of these steps, where the other answers are even; empty if none is."""
    classes = evidence.places.classes
    unseen = [(int(count), int(number)) for _, (count, number) in numbers_of(evidence, "unseen")]
    alone = {number for count, number in unseen if count == 1}
    samples = sum((1 - weights.without_gradient) * (facts_at(evidence, row).batch_size or 0) for row, weights in seen)
    is_even = all(weights.share * (classes - 1) < EVEN for _, weights in seen)
    is_always = len(unseen) == len(seen) and all(count >= 1 for count, _ in unseen)
    return [*alone] if len(alone) == 1 and is_always and is_even and samples >= LEAST_ANSWERS * classes else []


def _nearly_left_out(evidence: Evidence, seen: list[tuple[int, ClassWeights]]) -> Iterator[Finding]:
    """Report a class whose samples weigh next to nothing, although they are not much more than those of another one."""
    for _, weights in seen:
        if weights.classes < 2 or weights.heavier * NOTHING < 1 or weights.heavier * weights.commoner * NOTHING < 1:
            return
    heavier = float(np.median([weights.heavier for _, weights in seen]))
    yield finding(
        evidence,
        "class-left-out",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"heavier": heavier},
        text=f"A sample of one class counts {heavier:.2g} times as much for the loss as one of another class, and "
        "their numbers do not make up for it: the model hardly learns the other class.",
        advice="Weigh each class by the inverse of its share, `total / (classes * counts)`.",
    )


def _one_of_two_left_out(
    evidence: Evidence, seen: list[tuple[int, ClassWeights]], share: float | None
) -> Iterator[Finding]:
    """Report that of two classes, all answers that get a gradient are the same one, and other samples get none.

    `share` is that of the samples without a gradient.
    """
    column = _outputs_of_two(evidence)
    answers = {weights.most_common for _, weights in seen}
    is_one = all(weights.classes == 1 and weights.without_gradient > 0 for _, weights in seen) and len(answers) == 1
    if column is None or share is None or not is_one:
        return
    rows = [row for row, _ in seen]
    if not (evidence.peaks[rows, column] < SATURATED).all():
        return
    if not (evidence.column("std", column)[rows] > 0).all():  # one answer for all is right for one of the labels
        return
    label = int(1 - answers.pop())
    yield finding(
        evidence,
        "class-left-out",
        "warning",
        at="",
        rows=rows,
        numbers={"share": share, "left_out": label},
        text=f"The loss leaves out {share:.0%} of the samples, which get no gradient, and all others have the label "
        f"{1 - label}: the samples with the label {label} are ignored, and the model only learns to answer "
        f"{1 - label}.",
        advice="Look at the weight of that label: a `pos_weight` of 0, an entry of 0 in `weight`, or a mask that is "
        "the label itself. A ratio of whole numbers may have been rounded down to 0.",
    )


def _outputs_of_two(evidence: Evidence) -> int | None:
    """The column of the first output with logits of two classes, as one number or two; None without one."""
    output = next(trained_outputs(evidence), None)
    return output.column if output is not None and (*output.info.shape[1:2], 1)[0] in {1, 2} else None


def _has_tokens(evidence: Evidence) -> bool:
    """Whether an input of the model is of whole numbers, or its inputs are not known."""
    root = evidence.places.root
    return root is None or any("int" in info.dtype for info in root.inputs)
