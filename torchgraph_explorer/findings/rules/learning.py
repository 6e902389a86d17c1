"""Tells whether a training learns: if it does, large activations and gradients are no faults.

The evidence is the logged loss; without one, the gradients at the model's outputs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import LEAST_BEFORE_NAN, LEAST_VALUES, judged, rises
from torchgraph_explorer.findings.rules.outputs import TrainedOutput, samples_of, trained_outputs

FALLEN = 0.8
"""Largest loss at the end, over the first one, of a training that learns."""

RISEN = 2.0
"""Largest loss at any step, over the first one, of a training that learns. After updates that are far too large, a loss
rises before it falls."""

NEAR_LOWEST = 0.05
"""How far a loss may end above its lowest, as a share of its fall from the first to the lowest."""

NEARLY_GONE = 0.1
"""Largest gradient at the outputs at the end, over the first one, of a training that has learned, however large the
gradient was in between. It may be so where the forward pass differs from step to step."""

LEAST_OF_ERRORS = 2**0.5
"""Least norm of a sample's gradient, times the samples, that is sure to be no cross entropy's: that has at most the
root of 2. The norm of a squared error's gradient is that of the error, which falls as the training learns."""


def learns(evidence: Evidence) -> bool:
    """Whether the loss has fallen and stays low; without a logged loss, whether the gradients at the outputs have.

    Gradients tell it only of distances from targets. Those of a cross entropy may stay long while the training learns.
    """
    if evidence.ends_bad:
        return False
    loss = judged(evidence)
    if loss is not None and len(loss.values) >= LEAST_BEFORE_NAN:
        is_early = len(loss.values) < LEAST_VALUES  # it may fall further yet
        return _falls(loss.values, share=1.0 if is_early else FALLEN) and not rises(loss)
    outputs = [*trained_outputs(evidence)]
    return bool(outputs) and all(_has_faded(evidence, output) for output in outputs)


def is_lowest_below_zero(evidence: Evidence) -> bool:
    """Whether the loss ends below zero, and near its lowest.

    The negative logarithm of a density does so while the training learns, and its gradient grows as the distribution
    gets narrower.
    """
    loss = judged(evidence)
    if evidence.ends_bad or loss is None or len(loss.values) < LEAST_VALUES:
        return False
    end, first = _end(loss.values), float(np.median(loss.values[:3]))
    lowest = min(float(np.median(part)) for part in np.array_split(loss.values, 10))
    return end < min(0.0, first) and end <= lowest + NEAR_LOWEST * (first - lowest)


def _has_faded(evidence: Evidence, output: TrainedOutput) -> bool:
    """Whether the gradient at an output is that of a distance from targets, and has nearly vanished or fallen."""
    lengths = evidence.column("l2_norm", output.norms).astype(np.float64)
    rows = np.flatnonzero(np.isfinite(lengths))
    if not len(rows):
        return False
    longest = (evidence.column("max", output.norms) * samples_of(evidence, output.info, output.column))[rows[0]]
    if not longest > LEAST_OF_ERRORS:
        return False
    if len(rows) <= LEAST_BEFORE_NAN:
        return False
    return _end(lengths[rows]) <= NEARLY_GONE * lengths[rows[0]] or _falls(lengths[rows], share=FALLEN)


def _falls(values: npt.NDArray[np.float64], *, share: float) -> bool:
    """Whether positive numbers end at most at this share of the first one, and never exceed `RISEN` times the first."""
    return bool(values[0] > 0 and _end(values) <= share * values[0] and values.max() <= RISEN * values[0])


def _end(values: npt.NDArray[np.float64]) -> float:
    """The median of the last tenth of the values, and of at least three."""
    return float(np.median(values[-max(3, len(values) // 10) :]))
