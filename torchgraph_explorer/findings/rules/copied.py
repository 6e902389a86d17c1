"""Finds targets that are a column of the input, and labels that are smoothed too much.

The evidence is the targets, as the live training inferred them from the gradients at the model's output.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.classes import RECURRENT, RECURRENT_CELLS
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding

EQUAL = 1e-3
"""Largest difference between targets and a column of the input, over the standard deviation of the targets, that is
rounding."""

LEAST_STEPS = 3
"""Fewest recorded steps at which the targets are that column."""

WITHIN, LEAST_RIGHT = 2e-3, 0.5
"""Largest difference between labels that are smoothed alike; and the least probability of the right class in a label
that is not smoothed too much."""


def target_in_inputs(evidence: Evidence) -> Iterator[Finding]:
    """The target of each sample is a number that the model is given: the same column of its input at all steps.

    Models with a recurrent layer are left out: what they are given is what they have to remember, on purpose.
    """
    seen = numbers_of(evidence, "copied")
    columns = {int(numbers[1]) for _, numbers in seen}
    if len(seen) < LEAST_STEPS or len(columns) != 1 or not all(numbers[0] < EQUAL for _, numbers in seen):
        return
    if any(evidence.places.torch_class_of(name) in RECURRENT | RECURRENT_CELLS for name in evidence.places.modules):
        return
    column = columns.pop()
    yield finding(
        evidence,
        "answers-in-inputs",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"column": column},
        text=f"The target of each sample is what the model is given in column {column} of its input, at all steps that "
        "were looked at. The model only has to copy it.",
        advice="Leave the target, and what is made of it, out of the inputs. For a time series, let windows end before "
        "the value that is asked for.",
    )


def label_smoothing_extreme(evidence: Evidence) -> Iterator[Finding]:
    """The labels of a cross entropy are smoothed alike, and less than half of each is left for the right class."""
    seen = numbers_of(evidence, "labels")
    if len(seen) < LEAST_ROWS or not all(_are_smoothed(numbers) for _, numbers in seen):
        return
    right, wrong = float(seen[0][1][0]), seen[0][1][3]  # the probabilities of the right class and of each other one
    if right >= LEAST_RIGHT:
        return
    classes = round((1 - right) / wrong) + 1
    smoothing = 1 - (right - wrong)
    yield finding(
        evidence,
        "label-smoothing-extreme",
        "warning",
        at="",
        rows=[row for row, _ in seen],
        numbers={"right": right, "smoothing": smoothing, "classes": classes},
        text=f"The labels are smoothed by {smoothing:.2g}: {right:.0%} of each is for the right class, and the rest is "
        f"shared out over {classes - 1} others. There is little left to learn.",
        advice="`label_smoothing` is the share that is taken away, usually 0.1, and not the share that stays.",
    )


def _are_smoothed(numbers: tuple[float, ...]) -> bool:
    """Whether all labels have one probability for the right class, and another one for each other class.

    `numbers` are those of an `Operation` of the kind `labels`. The two probabilities have to sum to one over a whole
    number of classes, of at least 3.
    """
    least, most, second, lowest = numbers[:4]
    if not (most - least < WITHIN and abs(second - lowest) < WITHIN and lowest > WITHIN and least > second + WITHIN):
        return False
    classes = (1 - least) / lowest + 1
    return abs(classes - round(classes)) < 0.1 and classes > 2
