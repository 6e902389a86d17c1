"""What rules ask of the facts that only the live training knew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

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
