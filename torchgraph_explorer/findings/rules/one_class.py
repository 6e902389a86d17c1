"""Batches whose samples all have the same label, as of data that is sorted and not shuffled."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.heads import (
    AS_EXPECTED,
    EQUAL,
    ends_with,
    last_module,
    rounding,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import Flags, Rows, finding
from torchgraph_explorer.schema import Series, TensorInfo

Floats = npt.NDArray[np.float64]

LEAST_CLASSES = 3

LEAST_SAMPLES = 6
"""Of fewer samples, it may be chance that they have the same label."""

LEAST_STEPS = 4

ONE_WAY = 0.9
"""Length of the sum of all samples' gradients, over the sum of their lengths. Of labels at random it is the root of one
over their number; of one label it is nearly 1."""

OFTEN = 0.5
"""Share of the recorded steps. At others, a batch may have the end of one class and the beginning of the next."""

LEARNED = 0.2
"""Of shorter gradients, in the mean and over those at first, a single sample may be nearly all: that tells nothing."""

UNLEARNED = 1.03
"""Length of a sample's gradient, over that at first, of a step with one label that finds another one than before. Where
nearly all labels of a data set are the same, it does not rise."""


def one_class_batches(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of all samples of a batch point the same way: to one class, in nearly each batch.

    The gradient of a last layer's bias is the sum of those of the logits, of which each sample's length is known.
    """
    for one, info, column, norms in trained_outputs(evidence):
        if len(info.shape) != 2 or (info.shape[1] or 0) < LEAST_CLASSES:
            continue
        bias = _bias_gradient(evidence, column, classes=info.shape[1] or 0)
        if bias is None or not _is_cross_entropy(evidence, column, norms, info=info):
            continue
        size = samples_of(evidence, info, column)
        lengths = evidence.column("mean", norms) * size
        with np.errstate(all="ignore"):
            shares = evidence.column("l2_norm", bias).astype(np.float64) / lengths
        rows = np.flatnonzero(np.isfinite(shares) & (size >= LEAST_SAMPLES) & _are_of_one_pass(evidence))
        rows = rows[lengths[rows] > LEARNED * lengths[rows[:1]]]
        told = rows[shares[rows] > ONE_WAY]
        if len(rows) < LEAST_STEPS or len(told) <= OFTEN * len(rows) or shares[rows].max() > 1 + EQUAL + rounding(info):
            continue
        if lengths[told].max() > UNLEARNED * lengths[rows[0]]:
            yield _told(evidence, one, told, steps=len(rows), share=float(np.median(shares[rows])))


def _are_of_one_pass(evidence: Evidence) -> Flags:
    """The steps of a single pass: else, the bias has the sum of several, and the gradients at the logits are of one."""
    return np.array([one is not None and one.passes == 1 for one in evidence.facts], np.bool_)


def _bias_gradient(evidence: Evidence, column: int, *, classes: int) -> int | None:
    """The column of the gradient of the bias of the last module, a linear layer, whose output is the model's."""
    if not ends_with(evidence, column, "Linear"):
        return None
    bias = evidence.find(last_module(evidence), None, "param", "bias", "grad")
    info = None if bias is None else evidence.places.tensor(evidence.series[bias])
    return bias if info is not None and info.shape == (classes,) else None


def _is_cross_entropy(evidence: Evidence, column: int, norms: int, *, info: TensorInfo) -> bool:
    """Whether the first gradient of each sample is that of a mean cross entropy of nearly equal logits."""
    classes = info.shape[1] or 0
    scaled = [evidence.column(name, norms) * samples_of(evidence, info, column) for name in ("min", "max")]
    rows = np.flatnonzero(np.isfinite(scaled[0]))
    expected = math.sqrt(1 - 1 / classes)
    return len(rows) > 0 and all(abs(float(of[rows[0]]) / expected - 1) < 2 * AS_EXPECTED for of in scaled)


def _told(evidence: Evidence, one: Series, rows: Rows, *, steps: int, share: float) -> Finding:
    return finding(
        evidence,
        "one-class-batches",
        "warning",
        at=one,
        rows=rows,
        numbers={"steps": len(rows), "of": steps, "share": share},
        text=f"In {len(rows)} of {steps} recorded batches, all or nearly all samples have the same label: their "
        f"gradients at the logits add up to {share:.0%} of their lengths in the median, where those of mixed labels "
        "cancel. Each update teaches one class and unlearns the others.",
        advice="Shuffle the samples: `DataLoader(..., shuffle=True)`. If they are read in order, mix them beforehand.",
    )
