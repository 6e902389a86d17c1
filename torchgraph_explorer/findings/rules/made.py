"""Whether weights are as torch makes those of a new layer."""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight

_UNIFORM = np.sqrt(3) / 2
"""Mean magnitude over standard deviation of numbers that are spread evenly around zero."""


def is_as_made(evidence: Evidence, weight: Weight, *, row: int = -1) -> bool:
    """Whether the values are spread evenly over plus and minus one over the root of the inputs, as torch makes them.

    They are looked at where the parameter was recorded the first time, the second, …; by default, the last time.
    """
    column = evidence.find(weight.module.name, None, "param", weight.info.path)
    inputs = np.prod([size or 1 for size in weight.info.shape[1:]])
    if column is None or not is_of_kind_made(evidence, weight) or inputs < 1:
        return False
    at = int(np.flatnonzero(evidence.is_there[:, column])[row])
    names = ("std", "absolute_mean", "min", "max", "sampled")
    spread, size, least, most, count = (float(evidence.column(name, column)[at]) for name in names)
    if not spread > 0:
        return False
    uneven, off = abs(size / spread - _UNIFORM), abs(spread * np.sqrt(3 * inputs) - 1)
    if uneven < 0.02 and off < 0.1:
        return True
    # Of few elements, this may be by chance. They are told by the largest one, which comes near the bound.
    edge = max(-least, most) * np.sqrt(inputs)
    is_near = count >= LEAST_DRAWN and 1 - 12 / count < edge < 1.005
    return bool(is_near and uneven < 0.9 / np.sqrt(count) and off < 1.4 / np.sqrt(count))


def is_of_kind_made(evidence: Evidence, weight: Weight) -> bool:
    """Whether torch makes the weights of such layers so."""
    return evidence.places.class_of(weight.module.name) in _MADE_UNIFORM


LEAST_DRAWN = 64
"""Elements of a small matrix that tell how it was made."""

_MADE_UNIFORM = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
