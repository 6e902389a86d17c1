"""Weights that are drawn anew while a network trains, so that it begins again and again."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.beginning import LAYERS
from torchgraph_explorer.findings.rules.rule import finding

LEAST_TIMES = 2
"""Once may be a restart on purpose."""

BEYOND, CLOSE = 1.02, 0.9
"""Largest element over the bound of what torch draws, one over the root of the inputs: at least, once weights were
trained, and at least, when they are drawn."""

ROUNDING = 1e-5

AT_ONCE = 5.0
"""How far the largest element comes back, over its usual change from step to step: training may take it back, too."""


def weights_redrawn(evidence: Evidence) -> Iterator[Finding]:
    """All layers are within the bounds that torch draws weights from again, after training had taken them beyond.

    A loop over folds or seeds does that on purpose, so it is worth knowing at most.
    """
    bounded = [one for one in (_relative_peaks(evidence, column) for column in _weights(evidence)) if one is not None]
    peaks = np.array(bounded)  # [layers, rows]
    if not bounded or peaks.shape[1] <= LEAST_TIMES:
        return
    largest, smallest = peaks.max(axis=0), peaks.min(axis=0)
    is_drawn = (largest <= 1 + ROUNDING) & (smallest > CLOSE)
    is_trained = smallest > BEYOND
    changes = np.diff(peaks, axis=1)
    usual = np.median(np.abs(changes), axis=1, keepdims=True)
    comes_back = (changes < -AT_ONCE * usual).all(axis=0)
    rows = np.flatnonzero(is_drawn[1:] & is_trained[:-1] & comes_back) + 1
    if not is_drawn[0] or len(rows) < LEAST_TIMES:
        return
    steps = ", ".join(str(evidence.steps[row]) for row in rows[:4].tolist())
    yield finding(
        evidence,
        "weights-redrawn",
        "info",
        at=None,
        rows=rows,
        numbers={"times": len(rows), "layers": len(bounded)},
        text=f"The weights of {len(bounded)} layers are initialised anew {len(rows)} times while the model trains, at "
        f"steps {steps}{', …' if len(rows) > 4 else ''}. What it had learned is lost.",
        advice="If this is not a loop over folds or seeds, initialise the weights once, before the training: look for "
        "`reset_parameters()` or `apply(init)` within the loop.",
    )


def _weights(evidence: Evidence) -> Iterator[int]:
    """The columns of the weights of linear and convolution layers that get gradients."""
    for column in evidence.of_kind("value", "param"):
        one = evidence.series[column]
        has_gradient = evidence.find(one.module, one.call, "param", one.path, "grad") is not None
        if one.path == "weight" and has_gradient and evidence.places.class_of(one.module) in LAYERS:
            yield column


def _relative_peaks(evidence: Evidence, column: int) -> list[float] | None:
    """The largest magnitude at each step over the bound that torch draws these weights from; None without inputs."""
    info = evidence.places.tensor(evidence.series[column])
    inputs = math.prod(size or 0 for size in info.shape[1:]) if info is not None else 0
    peaks: list[float] = (evidence.peaks[:, column] * math.sqrt(inputs)).tolist()
    return peaks if inputs else None
