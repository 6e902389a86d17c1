"""What rules ask of the facts that only the live training knew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.schema import Operation, OperationKind, TrainingFacts


def rows_with(evidence: Evidence, is_known: Callable[[TrainingFacts], bool]) -> list[int]:
    """The rows that have facts of which `is_known` is true."""
    return [row for row, one in enumerate(evidence.training) if one is not None and is_known(one)]


def facts_at(evidence: Evidence, row: int) -> TrainingFacts:
    """The facts at one of these rows."""
    found = evidence.training[row]
    assert found is not None
    return found


def module_around(names: Iterable[str]) -> str:
    """The innermost module that has all these parameters."""
    parts = [name.split(".")[:-1] for name in names]
    same = takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))
    return ".".join(level[0] for level in same)


def operations(evidence: Evidence, kind: OperationKind) -> Iterator[tuple[int, Operation]]:
    """The operations of this kind that were seen, with the rows at which they were, in the order of these."""
    for row in rows_with(evidence, lambda one: bool(one.operations)):
        yield from ((row, one) for one in facts_at(evidence, row).operations if one.kind == kind)


def numbers_of(evidence: Evidence, kind: OperationKind) -> list[tuple[int, tuple[float, ...]]]:
    """The numbers of the operations of this kind, with their rows."""
    return [(row, one.numbers) for row, one in operations(evidence, kind)]


class ClassWeights(NamedTuple):
    """How a loss weighs classes, as `Operation` has it of the kind `weights`.

    Attributes:
        off: How far the gradients are from those of a cross entropy with a weight for each class, over the largest.
        heavier: The largest weight over the smallest.
        commoner: How many answers are the class with the largest weight, over those of the class with the smallest.
        agreement: Correlation of the logarithms of weights and of numbers of answers.
        without_gradient: Share of the samples.
        of_first: How many answers are class 0.
        of_last: How many are the last class.
        classes: How many classes are answers.
        most_common: The class with the most answers.
        share: Its share of the answers.
    """

    off: float
    heavier: float
    commoner: float
    agreement: float
    without_gradient: float
    of_first: float
    of_last: float
    classes: float
    most_common: float
    share: float


EXACT = 1e-3
"""How near gradients come to those of a cross entropy with a weight for each class."""


def class_weights(evidence: Evidence) -> list[tuple[int, ClassWeights]]:
    """What is known of the weights of a cross entropy, with rows; nothing if gradients are further off at a row."""
    seen = [(row, ClassWeights(*numbers)) for row, numbers in numbers_of(evidence, "weights")]
    return seen if all(one.off < EXACT for _, one in seen) else []
