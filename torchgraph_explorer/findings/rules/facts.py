"""Look up facts that only the live training knew, such as parameter groups and operations, by row of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.schema import Operation, OperationKind, TrainingFacts


def rows_with(evidence: Evidence, is_known: Callable[[TrainingFacts], bool]) -> list[int]:
    """The rows whose facts were recorded and satisfy `is_known`."""
    return [row for row, facts in enumerate(evidence.training) if facts is not None and is_known(facts)]


def facts_at(evidence: Evidence, row: int) -> TrainingFacts:
    """The facts at a row that has them, as every row of `rows_with` does."""
    found = evidence.training[row]
    assert found is not None
    return found


def by_optimizers(evidence: Evidence, rows: Iterable[int]) -> dict[tuple[str, ...], list[int]]:
    """`rows` by the optimizers that made the update: the loop may treat one of two that step in turn in a wrong way."""
    found: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        facts = evidence.facts[row]
        found.setdefault(() if facts is None else facts.optimizers, []).append(row)
    return found


def turns_with(evidence: Evidence, rows: list[int], is_wrong: Callable[[list[int]], bool]) -> list[list[int]]:
    """All of `rows`, if something is wrong with them as a whole; else those of the optimizers for which it is."""
    return [rows] if is_wrong(rows) else [*filter(is_wrong, by_optimizers(evidence, rows).values())]


def largest_rates(evidence: Evidence) -> tuple[list[int], list[float]]:
    """The rows at which a learning rate is known, and the largest one of all groups at each of them."""
    known = (
        (row, [group.learning_rate for group in facts.groups if group.learning_rate is not None])
        for row, facts in enumerate(evidence.training)
        if facts is not None
    )
    largest = {row: max(rates) for row, rates in known if rates}
    return [*largest], [*largest.values()]


def rates_rise(evidence: Evidence) -> bool:
    """Whether the largest learning rate rises up to the last recorded step, as in a warm-up."""
    _, rates = largest_rates(evidence)
    return len(rates) > 1 and rates[-1] > max(rates[:-1])


def module_around(names: Iterable[str]) -> str:
    """The qualified name of the innermost module that contains all these parameters; empty for the root."""
    modules = [name.split(".")[:-1] for name in names]
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*modules, strict=False))
    return ".".join(level[0] for level in shared)


def operations(evidence: Evidence, kind: OperationKind) -> Iterator[tuple[int, Operation]]:
    """The recorded operations of this kind, each behind the row of its step, in the order of the steps."""
    for row in rows_with(evidence, lambda facts: bool(facts.operations)):
        yield from ((row, one) for one in facts_at(evidence, row).operations if one.kind == kind)


def numbers_of(evidence: Evidence, kind: OperationKind) -> list[tuple[int, tuple[float, ...]]]:
    """What `operations` yields, with only the `numbers` of each operation."""
    return [(row, one.numbers) for row, one in operations(evidence, kind)]


def numbers_by_place(
    evidence: Evidence, *kinds: OperationKind
) -> dict[tuple[OperationKind, str], list[tuple[int, tuple[float, ...]]]]:
    """What `numbers_of` gives for each of these kinds, apart for each `module` of the operations."""
    found: dict[tuple[OperationKind, str], list[tuple[int, tuple[float, ...]]]] = {}
    for kind in kinds:
        for row, one in operations(evidence, kind):
            found.setdefault((kind, one.module), []).append((row, one.numbers))
    return found


class ClassWeights(NamedTuple):
    """The `numbers` of an `Operation` of the kind `weights`: how a cross entropy weighs its classes, at one step.

    An answer is the right class of one sample.

    Attributes:
        off: Largest difference between the gradients and those of a cross entropy with a weight for each class, over
            the largest gradient.
        heavier: The largest class weight over the smallest.
        commoner: The number of answers of the class with the largest weight, over that of the class with the smallest.
        agreement: Correlation, over the classes, of the logarithms of weights and of numbers of answers.
        without_gradient: Share of the samples that get no gradient.
        of_first: How many answers are class 0.
        of_last: How many answers are the last class.
        classes: How many different classes are answers.
        most_common: The class with the most answers.
        share: The share of the answers that are `most_common`.
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
"""Largest `ClassWeights.off` of gradients that are those of a weighted cross entropy: the difference is rounding."""


def class_weights(evidence: Evidence) -> list[tuple[int, ClassWeights]]:
    """The class weights of a cross entropy at each row that has them; none if the loss is something else at any row."""
    seen = [(row, ClassWeights(*numbers)) for row, numbers in numbers_of(evidence, "weights")]
    return seen if all(weights.off < EXACT for _, weights in seen) else []
