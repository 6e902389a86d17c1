"""Finds weights that are initialised anew while a network trains, so that it begins again and again.

The evidence is the largest element of each weight: torch draws weights within a bound, and training takes them beyond.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.beginning import LAYERS
from torchgraph_explorer.findings.rules.rule import finding

LEAST_TIMES = 2
"""Fewest times that weights are initialised anew: once may be a restart on purpose."""

BEYOND, CLOSE = 1.02, 0.9
"""Least largest element of trained weights, and of new ones, over the bound within which torch draws weights, which is
`1 / sqrt(inputs)`."""

ROUNDING = 1e-5
"""How far beyond that bound rounding may put the largest element of new weights, as a share of it."""

AT_ONCE = 5.0
"""Least fall of the largest element from one step to the next, over its usual change, of weights that are drawn anew:
training may shrink it, too."""


def weights_redrawn(evidence: Evidence) -> Iterator[Finding]:
    """The weights of all layers come back within the bounds that torch draws them from, several times and at once.

    A loop over folds or seeds initialises anew on purpose, so the severity is `info`.
    """
    columns = (_relative_peaks(evidence, column) for column in _weights(evidence))
    layers = [of_layer for of_layer in columns if of_layer is not None]
    peaks = np.array(layers)  # [layers, steps]
    if not layers or peaks.shape[1] <= LEAST_TIMES:
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
        numbers={"times": len(rows), "layers": len(layers)},
        text=f"The weights of {len(layers)} layers are initialised anew {len(rows)} times while the model trains, at "
        f"steps {steps}{', …' if len(rows) > 4 else ''}. What it had learned is lost.",
        advice="If this is not a loop over folds or seeds, initialise the weights once, before the training: look for "
        "`reset_parameters()` or `apply(init)` within the loop.",
    )


def _weights(evidence: Evidence) -> Iterator[int]:
    """The columns of the weights of linear and convolution layers that get gradients."""
    for column in evidence.of_kind("value", "param"):
        series = evidence.series[column]
        has_gradient = evidence.find(series.module, series.call, "param", series.path, "grad") is not None
        if series.path == "weight" and has_gradient and evidence.places.class_of(series.module) in LAYERS:
            yield column


def _relative_peaks(evidence: Evidence, column: int) -> list[float] | None:
    """The largest magnitude at each step over the bound that torch draws weights from; None if inputs are not known."""
    info = evidence.places.tensor(evidence.series[column])
    inputs = math.prod(size or 0 for size in info.shape[1:]) if info is not None else 0
    peaks: list[float] = (evidence.peaks[:, column] * math.sqrt(inputs)).tolist()
    return peaks if inputs else None
