"""What gets lost in a dtype of few bits: updates that round to nothing, and values below its smallest number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, named

HALF_ULP = {"bfloat16": 2.0**-9, "float16": 2.0**-12}
"""By dtype: the smallest change of a number, relative to it, that rounding keeps."""

UNCHANGED = 0.75
"""Share of a weight's elements that an update leaves as they were, in the median of the recorded steps."""

SMALLEST = {"float16": 6.1e-5, "float8_e4m3fn": 1.6e-2, "float8_e5m2": 6.1e-5}
"""The smallest normal number of a dtype."""

LOST = 0.5
"""Share of zeros in a tensor whose other elements are all below the smallest normal number."""

FEW_BITS = 1 / 64
"""Below this share of the smallest normal number, even the largest element has no more than a few bits left."""

OFTEN = 0.5
"""Share of the recorded steps at which it has to be so."""


def update_lost_to_rounding(evidence: Evidence) -> Iterator[Finding]:
    """Weights of few bits get gradients, and most of their elements do not change, as updates are below half an ulp."""
    lost = []
    for value in evidence.of_kind("value", "param"):
        one = evidence.series[value]
        info = evidence.places.tensor(one)
        dtype = info.dtype if info else ""
        grad = evidence.find(one.module, one.call, one.role, one.path, "grad")
        update = evidence.find(one.module, one.call, one.role, one.path, "update")
        if dtype not in HALF_ULP or grad is None or info is None or len(info.shape) < 2:
            continue
        rows = np.flatnonzero(evidence.peaks[:, grad] > 0)
        if len(rows) < LEAST_ROWS:
            continue
        share = _unchanged(evidence, rows, value=value, grad=grad, update=update, half_ulp=HALF_ULP[dtype])
        if share >= UNCHANGED:
            lost.append((evidence.places.order(one.module), one, rows, share, dtype))
    if not lost:
        return
    _, at, rows, share, dtype = min(lost, key=lambda each: each[0])
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
    """The share of elements that updates leave as they were, though they have a gradient.

    Without recorded updates, the share of steps at which nothing of the weight changes, or `_least_unchanged`.
    """
    if update is not None:
        without = evidence.zero_shares[rows, grad]
        share = (evidence.zero_shares[rows, update] - without) / (1 - without)
        return float(np.nanmedian(share))
    names = ("min", "max", "mean", "std")
    values = np.stack([evidence.column(name, value)[rows] for name in names])
    same = float((values[:, 1:] == values[:, :-1]).all(axis=0).mean())
    return max(same, _least_unchanged(evidence, rows, value=value, grad=grad, half_ulp=half_ulp))


def _least_unchanged(
    evidence: Evidence, rows: npt.NDArray[np.intp], *, value: int, grad: int, half_ulp: float
) -> float:
    """The share of elements that updates leave as they were at least, by the ratio of the norms of update and weight.

    An element that changes does so by an ulp or more. So the squares of those that change are at most `(ratio / ulp)²`
    of all squares, and of normally distributed weights, these are at most the smallest `1.25 (ratio / ulp)^(2/3)`.
    """
    one = evidence.series[value]
    ratio = evidence.find(one.module, one.call, one.role, one.path, "update_ratio")
    if ratio is None:
        return 0.0
    ratios = evidence.column("mean", ratio)[rows].astype(np.float64)
    changed = 1.25 * (ratios / (2 * half_ulp)) ** (2 / 3)
    without = evidence.zero_shares[rows, grad]
    share = (1 - changed - without) / (1 - without)
    known = share[np.isfinite(share)]
    return float(np.median(known)) if len(known) else 0.0


def underflow(evidence: Evidence) -> Iterator[Finding]:
    """Most elements of a tensor are zero and the others below the dtype's smallest normal number, or all far below."""
    for column, one in enumerate(evidence.series):
        if one.kind not in {"value", "grad"} or (one.kind == "value" and one.role != "output"):
            continue
        info = evidence.places.tensor(one)
        smallest = SMALLEST.get(info.dtype if info else "")
        if smallest is None or info is None:
            continue
        rows = np.flatnonzero(evidence.is_there[:, column] & (evidence.peaks[:, column] > 0))
        taken_out = np.nan_to_num(evidence.scales[rows], nan=1.0)  # of gradients in the record
        scale = taken_out * evidence.left_scales[rows] if one.kind == "grad" else np.ones(len(rows))
        peaks, zeros = evidence.peaks[rows, column] * scale, evidence.zero_shares[rows, column]
        is_lost = ((zeros >= LOST) & (peaks < smallest)) | (peaks < FEW_BITS * smallest)
        if len(rows) < LEAST_ROWS or is_lost.mean() < OFTEN:
            continue
        what = f"gradient of `{one.path}`" if one.kind == "grad" else f"output `{one.path}`"
        yield finding(
            evidence,
            "overflow-ahead",
            "warning",
            at=one,
            rows=rows[is_lost],
            numbers={"zeros": np.median(evidence.zero_shares[rows, column]), "smallest_normal": smallest},
            text=f"{zeros[is_lost].mean():.0%} of the {what} of {named(one.module)} is zero, and the rest "
            f"is at most {peaks[is_lost].max():.2g}, below the smallest normal {info.dtype}, {smallest:.2g}: it "
            "underflows.",
            advice="Scale the loss (`torch.amp.GradScaler`), use bfloat16, or compute this module in float32.",
            band=Band(
                "largest", one.kind, low=smallest / (float(taken_out[is_lost].min()) if one.kind == "grad" else 1)
            ),
        )
        return
