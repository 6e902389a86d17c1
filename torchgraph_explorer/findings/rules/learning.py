"""Whether a training learns: then what looks too large at first is only what its targets ask for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import LEAST_BEFORE_NAN, LEAST_VALUES, judged, rises
from torchgraph_explorer.findings.rules.outputs import TrainedOutput, samples_of, trained_outputs

FALLEN = 0.8
"""The loss at the end over that at first, at most, of a training that learns."""

RISEN = 2.0
"""What no value of it is above, over the first one: after updates that are far too large, it falls again, too."""

NEAR_LOWEST = 0.05
"""How far the loss may end above its lowest, as a share of its fall."""

NEARLY_GONE = 0.1
"""Errors of which so much is left have been learned, however large they were in between, as where the forward pass
differs from step to step."""

LEAST_OF_ERRORS = 2**0.5
"""A mean cross entropy has no longer gradient at a sample, times the samples; that of a squared error is its error."""


def learns(evidence: Evidence) -> bool:
    """Whether the loss has fallen and stays low; without a logged loss, the gradient at the model's outputs has.

    Gradients tell that of distances from targets only: those of probabilities do not get longer than at first.
    """
    if evidence.ends_bad:
        return False
    loss = judged(evidence)
    if loss is not None and len(loss.values) >= LEAST_BEFORE_NAN:
        is_early = len(loss.values) < LEAST_VALUES  # it may fall further yet
        return _falls(loss.values, share=1.0 if is_early else FALLEN) and not rises(loss)
    outputs = [*trained_outputs(evidence)]
    return bool(outputs) and all(_has_faded(evidence, one) for one in outputs)


def is_lowest_below_zero(evidence: Evidence) -> bool:
    """Whether the loss ends below zero, about where it is lowest.

    So it does with a likelihood of numbers: the gradient of a distribution that gets narrower grows.
    """
    loss = judged(evidence)
    if evidence.ends_bad or loss is None or len(loss.values) < LEAST_VALUES:
        return False
    end, first = _end(loss.values), float(np.median(loss.values[:3]))
    lowest = min(float(np.median(part)) for part in np.array_split(loss.values, 10))
    return end < min(0.0, first) and end <= lowest + NEAR_LOWEST * (first - lowest)


def _has_faded(evidence: Evidence, output: TrainedOutput) -> bool:
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
    """Whether positive numbers are at the end at most such a share of the first one, and were never far above it."""
    return bool(values[0] > 0 and _end(values) <= share * values[0] and values.max() <= RISEN * values[0])


def _end(values: npt.NDArray[np.float64]) -> float:
    return float(np.median(values[-max(3, len(values) // 10) :]))
