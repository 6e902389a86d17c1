"""Tells by the gradients alone that a loss applies a softmax or sigmoid to what already is one.

The evidence is how far the gradients at the model's outputs are from those of such a loss, in the first recorded steps.
"""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import operations
from torchgraph_explorer.findings.rules.outputs import ends_with, lie_within
from torchgraph_explorer.findings.rules.rule import Rows

EXACT = 2e-4
"""Largest relative distance of the gradients from those of such a loss: the difference is rounding."""

ALIKE = 0.01
"""Largest such distance for a softmax, over the standard deviation of the probabilities. The more these are alike, the
nearer are the gradients of a squared error: their distance is about that standard deviation."""

VARIED = 0.01
"""Least standard deviation of the outputs of a sigmoid at each of these steps. If they are more alike than that, the
gradients of other losses, such as a squared error, are as near, since several losses are compared."""

LEAST_STEPS = 3
"""Fewest of the first recorded steps at which the gradients are looked at."""

LEAST_LABELS = 8
"""Fewest elements with the same label, at each of these steps."""

LEAST_WITHOUT_MODULE, LEAST_RANGE = 30, 0.3
"""Fewest recorded steps, and least range of the outputs over all of them, of outputs between 0 and 1 that a sigmoid
gave which is no module. Logits that have not been trained may lie there by chance."""


def softmax_by_gradient(evidence: Evidence, column: int) -> Rows | None:
    """The steps that show that the loss applies a softmax to the model's probabilities; None if they do not."""
    spreads = evidence.column("std", column)
    seen = [(row, off < min(EXACT, ALIKE * spreads[row])) for row, (off, *_) in _numbers(evidence, column)]
    return _rows(seen)


def sigmoid_by_gradient(evidence: Evidence, column: int) -> Rows | None:
    """The steps that show that the loss applies a sigmoid to the model's sigmoids; None if they do not.

    It may be a focal loss, or weigh the two labels differently.
    """
    if not lie_within(evidence, column):
        return None
    least, most = (evidence.column(name, column) for name in ("min", "max"))
    known = np.isfinite(least) & np.isfinite(most)
    if not ends_with(evidence, column, "Sigmoid"):
        is_wide = known.any() and most[known].max() - least[known].min() > LEAST_RANGE
        if known.sum() < LEAST_WITHOUT_MODULE or not is_wide or (least[known] == 0).any():
            return None
    numbers = _numbers(evidence, column)
    if (
        any(count < LEAST_LABELS for _, (_, _, _, count) in numbers)
        or len({focus for _, (_, _, focus, _) in numbers}) > 1
    ):
        return None
    spreads = evidence.column("std", column)
    return _rows([(row, off < EXACT and spreads[row] > VARIED) for row, (_, off, _, _) in numbers])


def _numbers(evidence: Evidence, column: int) -> list[tuple[int, tuple[float, ...]]]:
    """What is known of the gradients at the output `column`, at each row."""
    path = evidence.series[column].path
    return [(row, one.numbers) for row, one in operations(evidence, "twice") if one.module == path]


def _rows(seen: list[tuple[int, bool]]) -> Rows | None:
    """The rows, if there are enough, and the gradients are those of such a loss at each; else None."""
    return np.array([row for row, _ in seen]) if len(seen) >= LEAST_STEPS and all(so for _, so in seen) else None
