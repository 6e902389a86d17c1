"""Losses that weigh classes the wrong way round, or leave one out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import class_weights, facts_at
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding

HEAVIER, COMMONER = 1.5, 1.5
"""Times by which weights, and numbers of answers in the median of the steps, differ between the classes with the
largest and the smallest weight."""

AGREES = 0.9
"""Correlation of the logarithms of weights and of numbers of answers."""

LEAST_SAMPLES, LEAST_LEFT_OUT, MOST_LEFT_OUT = 100, 5, 0.6
"""Samples that were looked at; how many have no gradient, at least; and which share of them, at most."""

LEAST_CLASSES = 3


def class_weights_inverted(evidence: Evidence) -> Iterator[Finding]:
    """The more samples a class has, the more the loss weighs each: as if by its share, and not by one over it."""
    both = [(row, one) for row, one in class_weights(evidence) if one.classes > 1]
    if len(both) < LEAST_ROWS:
        return
    if not all(one.heavier > HEAVIER and one.commoner > 1 and one.agreement > AGREES for _, one in both):
        return
    heavier = float(np.median([one.heavier for _, one in both]))
    commoner = float(np.median([one.commoner for _, one in both]))
    if commoner < COMMONER:
        return
    yield finding(
        evidence,
        "class-weights-inverted",
        "warning",
        at="",
        rows=[row for row, _ in both],
        numbers={"heavier": heavier, "commoner": commoner},
        text="The loss gives the class with the most samples the largest weight, and rarer classes less: a sample of "
        f"the one counts {heavier:.2g} times as much as one of the rarest, and there are {commoner:.2g} times as many "
        "of them. Weights that are to balance classes are the other way round.",
        advice="Weigh each class by the inverse of its share, `total / (classes * counts)`; `pos_weight` is the number "
        "of negative samples over that of positive ones.",
    )


def class_left_out(evidence: Evidence) -> Iterator[Finding]:
    """Some samples have no gradient, and the first or last class is never an answer, while each other one is.

    So it is on purpose where that is the token of padding; inputs of whole numbers are not looked at.
    """
    seen = class_weights(evidence)
    classes = evidence.places.classes
    if len(seen) < LEAST_ROWS or classes < LEAST_CLASSES or _has_tokens(evidence):
        return
    samples = [facts_at(evidence, row).batch_size or 0 for row, _ in seen]
    left_out = [one.without_gradient for _, one in seen]
    many = sum(share * size for share, size in zip(left_out, samples, strict=True))
    if sum(samples) < LEAST_SAMPLES or many < LEAST_LEFT_OUT or max(left_out) > MOST_LEFT_OUT:
        return
    answers = {0: sum(one.of_first for _, one in seen), classes - 1: sum(one.of_last for _, one in seen)}
    missing = [label for label, count in answers.items() if not count]
    if not missing or max(one.classes for _, one in seen) != classes - 1:
        return
    share, left = many / sum(samples), missing[0]
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


def _has_tokens(evidence: Evidence) -> bool:
    root = evidence.places.root
    return root is None or any("int" in one.dtype for one in root.inputs)
