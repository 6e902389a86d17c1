"""Finds the one number that a squared error draws all predictions of a batch to, by the gradients at them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.outputs import rounding
from torchgraph_explorer.findings.rules.rule import Rows

Floats = npt.NDArray[np.float64]

LEAST_STEPS = 3
"""Fewest recorded steps with gradients at the predictions."""

LEAST_SAMPLES = 4
"""Fewest samples in a batch: the gradients of fewer may point to one number by chance."""

EXACT = 1e-3
"""Largest relative difference, which is rounding, between the gradients and the distances from one number."""

VARIES = 0.01
"""Least standard deviation, over the batches, of the number that predictions are drawn to, over their distance from it.
A constant target does not vary."""


class Centred(NamedTuple):
    """The number that the gradients draw all predictions of a batch to.

    Attributes:
        rows: The rows with gradients.
        centre: That number at each of them, in the units of the predictions.
        distance: The mean square of the distances from `centre`.
        square: The part of the loss that these make: `distance`, or a half or another part of it, as the loss is
            weighted.
    """

    rows: Rows
    centre: Floats
    distance: Floats
    square: Floats


def centred(evidence: Evidence, column: int, norms: int, *, weight: float) -> Centred | None:
    """The number that `weight / 2` times a mean squared error draws all predictions of a batch to; None without one.

    The gradients then are the distances from that number. The largest is that of the largest or the smallest
    prediction, which gives two candidates for the number. The right one also explains the mean square of all gradients.
    """
    count, sampled, low, high, mean, std = (
        evidence.column(name, column).astype(np.float64) for name in ("count", "sampled", "min", "max", "mean", "std")
    )
    scale = count / weight
    most, length = (evidence.column(name, norms) * scale for name in ("max", "l2_norm"))
    rows = np.flatnonzero(np.isfinite(most) & (most > 0) & (count == sampled) & (count >= LEAST_SAMPLES))
    if len(rows) < LEAST_STEPS:
        return None
    square = length[rows] ** 2 / count[rows]
    centres = np.stack([high - most, low + most])[:, rows]
    errors = np.abs((std[rows] ** 2 + (mean[rows] - centres) ** 2) / square - 1)
    info = evidence.places.tensor(evidence.series[column])
    if not (errors.min(axis=0) < EXACT + 4 * (rounding(info) if info else 0)).all():  # of a square of a difference
        return None
    centre = np.take_along_axis(centres, errors.argmin(axis=0)[None], axis=0)[0]
    return Centred(rows, centre, square, square * weight / 2)


def varies(found: Centred) -> bool:
    """Whether the number differs from batch to batch, as no constant does."""
    return bool(found.centre.std() > VARIES * np.sqrt(np.median(found.square)))
