"""Tells whether weights still have the distribution that torch initialises those of a new layer with."""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight

_UNIFORM = np.sqrt(3) / 2
"""Mean magnitude over standard deviation of a uniform distribution around zero."""


def is_as_made(evidence: Evidence, weight: Weight, *, row: int = -1) -> bool:
    """Whether the values are uniform from minus to plus `1 / sqrt(inputs)`, as torch initialises them.

    Args:
        evidence: What was recorded.
        weight: The parameter.
        row: Which of the steps with the parameter is looked at: 0 is the first of them, -1 the last.
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
    # How far the shape of the distribution, and its standard deviation, are from those of the uniform one.
    uneven, off = abs(size / spread - _UNIFORM), abs(spread * np.sqrt(3 * inputs) - 1)
    if uneven < MOST_UNEVEN and off < MOST_OFF:
        return True
    # Both vary by chance if there are few elements. Then the largest one has to come near the bound, too.
    edge = max(-least, most) * np.sqrt(inputs)
    is_near = count >= LEAST_DRAWN and 1 - 12 / count < edge < 1.005
    return bool(is_near and uneven < 0.9 / np.sqrt(count) and off < 1.4 / np.sqrt(count))


def is_of_kind_made(evidence: Evidence, weight: Weight) -> bool:
    """Whether a parameter is of a layer whose weights torch initialises uniformly."""
    return evidence.places.class_of(weight.module.name) in MADE_UNIFORM


MOST_UNEVEN, MOST_OFF = 0.02, 0.1
"""How far mean magnitude over standard deviation may be from that of a uniform distribution; and the standard deviation
from the one that torch gives, as a share of it."""

LEAST_DRAWN = 64
"""Fewest elements of a small matrix that tell how it was initialised."""

MADE_UNIFORM = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
"""Classes of layers whose weights torch initialises uniformly."""
