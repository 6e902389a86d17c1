"""Finds updates that a dtype of few bits rounds to nothing, and values below its smallest normal number.

The evidence is shares of zeros in recorded updates, ratios of update to weight, and largest magnitudes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named

HALF_ULP = {"bfloat16": 2.0**-9, "float16": 2.0**-12}
"""The smallest relative change of a number that rounding keeps, by dtype: half a unit in the last place (ulp)."""

UNCHANGED = 0.75
"""Least share of a weight's elements that an update leaves as they were, in the median of the recorded steps, to be
reported."""

SMALLEST = {"float16": 6.1e-5, "float8_e4m3fn": 1.6e-2, "float8_e5m2": 6.1e-5}
"""The smallest normal number of a dtype."""

LOST = 0.5
"""Least share of zeros in a tensor that underflows, if all its other elements are below the smallest normal number."""

FEW_BITS = 1 / 64
"""A tensor underflows, however few zeros it has, if its largest element is below this share of the smallest normal
number: it has only a few bits left."""

OFTEN = 0.5
"""Least share of the recorded steps at which a tensor underflows to be reported."""


def update_lost_to_rounding(evidence: Evidence) -> Iterator[Finding]:
    """Weights of few bits get gradients, and most of their elements do not change, as updates are below half an ulp."""
    lost = []
    for value in evidence.of_kind("value", "param"):
        series = evidence.series[value]
        info = evidence.places.tensor(series)
        dtype = info.dtype if info else ""
        grad = evidence.find(series.module, series.call, series.role, series.path, "grad")
        update = evidence.find(series.module, series.call, series.role, series.path, "update")
        if dtype not in HALF_ULP or grad is None or info is None or len(info.shape) < 2:
            continue
        rows = np.flatnonzero(evidence.peaks[:, grad] > 0)
        if len(rows) < LEAST_ROWS:
            continue
        share = _unchanged(evidence, rows, value=value, grad=grad, update=update, half_ulp=HALF_ULP[dtype])
        if share >= UNCHANGED:
            lost.append((evidence.places.order(series.module), series, rows, share, dtype))
    if not lost:
        return
    _, at, rows, share, dtype = min(lost, key=lambda weight: weight[0])  # the first in the order of execution
    yield finding(
        evidence,
        "update-lost-to-rounding",
        "warning",
        at=at,
        rows=rows,
        numbers={"unchanged": share, "half_ulp": HALF_ULP[dtype], "weights": len(lost)},
        text=f"An update leaves {share:.0%} or more of the elements of `{at.path}` in {named(at.module)} unchanged, "
        "although they get a gradient: it is smaller than half the distance between neighbouring "
        f"{dtype} numbers, which is about {HALF_ULP[dtype]:.1g} of a number. {_count(len(lost))} like this.",
        advice="Keep the weights in float32 and compute in low precision with `torch.autocast`, or use an optimizer "
        "with float32 copies or stochastic rounding.",
    )


def _count(weights: int) -> str:
    return f"{weights} weights are" if weights > 1 else "One weight is"


def _unchanged(
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    *,
    value: int,
    grad: int,
    update: int | None,
    half_ulp: float,
) -> float:
    """The share of the elements with a gradient that updates leave as they were, in the median of the steps.

    Without recorded updates, it is the larger one of the share of steps at which no statistic of the weight changes,
    and of `_least_unchanged`.
    """
    if update is not None:
        without_gradient = evidence.zero_shares[rows, grad]
        share = (evidence.zero_shares[rows, update] - without_gradient) / (1 - without_gradient)
        return float(np.nanmedian(share))
    names = ("min", "max", "mean", "std")
    values = np.stack([evidence.column(name, value)[rows] for name in names])
    same = float((values[:, 1:] == values[:, :-1]).all(axis=0).mean())
    return max(same, _least_unchanged(evidence, rows, value=value, grad=grad, half_ulp=half_ulp))


def _least_unchanged(
    evidence: Evidence, rows: npt.NDArray[np.intp], *, value: int, grad: int, half_ulp: float
) -> float:
    """The least share of the elements with a gradient that updates leave as they were, by the ratio of both norms.

    An element that changes does so by an ulp or more. So the sum of the squares of the elements that change is at most
    `(ratio / ulp)²` of that of all. If the weights are normally distributed, most elements change for a given sum if
    they are the smallest ones: then they are `1.25 * (ratio / ulp) ** (2 / 3)` of all.
    """
    series = evidence.series[value]
    ratio = evidence.find(series.module, series.call, series.role, series.path, "update_ratio")
    if ratio is None:
        return 0.0
    ratios = evidence.column("mean", ratio)[rows].astype(np.float64)
    changed = 1.25 * (ratios / (2 * half_ulp)) ** (2 / 3)
    without_gradient = evidence.zero_shares[rows, grad]
    share = (1 - changed - without_gradient) / (1 - without_gradient)
    known = share[np.isfinite(share)]
    return float(np.median(known)) if len(known) else 0.0


def underflow(evidence: Evidence) -> Iterator[Finding]:
    """Most elements of an output or gradient are zero, the others below the smallest normal number; or all far below.

    Gradients are looked at as the backward pass computed them, with the loss scale.
    """
    for column, series in enumerate(evidence.series):
        if series.kind not in {"value", "grad"} or (series.kind == "value" and series.role != "output"):
            continue
        info = evidence.places.tensor(series)
        smallest = SMALLEST.get(info.dtype if info else "")
        if smallest is None or info is None:
            continue
        rows = np.flatnonzero(evidence.is_there[:, column] & (evidence.peaks[:, column] > 0))
        taken_out = np.nan_to_num(evidence.scales[rows], nan=1.0)  # of gradients in the record
        scale = taken_out * evidence.left_scales[rows] if series.kind == "grad" else np.ones(len(rows))
        peaks, zeros = evidence.peaks[rows, column] * scale, evidence.zero_shares[rows, column]
        is_lost = ((zeros >= LOST) & (peaks < smallest)) | (peaks < FEW_BITS * smallest)
        if len(rows) < LEAST_ROWS or is_lost.mean() < OFTEN:
            continue
        what = f"gradient of `{series.path}`" if series.kind == "grad" else f"output `{series.path}`"
        recorded_scale = float(taken_out[is_lost].min()) if series.kind == "grad" else 1
        yield finding(
            evidence,
            "overflow-ahead",
            "warning",
            at=series,
            rows=rows[is_lost],
            numbers={"zeros": np.median(evidence.zero_shares[rows, column]), "smallest_normal": smallest},
            text=f"{zeros[is_lost].mean():.0%} of the {what} of {named(series.module)} is zero, and the rest "
            f"is at most {peaks[is_lost].max():.2g}, below the smallest normal {info.dtype}, {smallest:.2g}: it "
            "underflows.",
            advice=f"{'Scale the loss (`torch.amp.GradScaler`), use' if series.kind == 'grad' else 'Use'} bfloat16, or "
            "compute this module in float32.",
            band=Band("largest", series.kind, low=smallest / recorded_scale),
        )
        return
