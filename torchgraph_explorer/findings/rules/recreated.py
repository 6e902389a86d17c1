"""Finds an optimizer that is made anew at each step, and so forgets what it had gathered.

The evidence is the numbers that optimizers of a class get, in the order of their first steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding

LEAST_ROWS = 4
"""Fewest recorded updates by optimizers of a class."""

OFTEN = 0.75
"""Least number of new optimizers for each step, between the first and the last recorded update by the class."""

STATELESS = frozenset({"SGD", "LBFGS"})
"""Classes that may have nothing to forget: SGD without momentum, and LBFGS, which gathers its state within a step."""

_NAME = re.compile(r"^(.*?)(?: #(\d{1,9}))?$", re.DOTALL)
"""An optimizer's name: its class and, from the second one of the class on, its number."""


def optimizer_recreated(evidence: Evidence) -> Iterator[Finding]:
    """Nearly each update is the first one of an optimizer.

    Optimizers are numbered in the order of their first steps, recorded or not.
    """
    numbers: dict[str, list[tuple[int, int]]] = {}  # by class: the row of each update, and the optimizer's number
    for row, facts in enumerate(evidence.facts):
        for name in facts.optimizers if facts is not None else ():
            match = _NAME.match(name)
            assert match is not None
            numbers.setdefault(match[1], []).append((row, int(match[2] or 1)))
    for class_name, seen in numbers.items():
        rows = [row for row, _ in seen]
        steps = int(evidence.steps[rows[-1]] - evidence.steps[rows[0]])
        made = seen[-1][1] - seen[0][1]
        is_new = len({number for _, number in seen}) == len(seen)
        if class_name in STATELESS or len(seen) < LEAST_ROWS or not is_new or made < OFTEN * steps:
            continue
        yield finding(
            evidence,
            "optimizer-recreated",
            "warning",
            at=None,
            rows=rows,
            numbers={"optimizers": made + 1, "steps": steps + 1},
            text=f"{made + 1} different optimizers of the class {class_name} have made {steps + 1} updates: a new one "
            "is made at each step, and it knows nothing of the gradients before. The first update of Adam is as large "
            "as the learning rate in each direction, however small the gradient.",
            advice="Make the optimizer once, before the loop.",
        )
