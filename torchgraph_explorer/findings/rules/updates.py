"""Updates of the weights: too small to learn, too large to settle, or skipped again and again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.finding import Finding
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.participation import all_unchanged
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding

SMALL_RATIO = 5e-6
"""Largest ratio of the norms of update and weight, over the whole run, below which nothing is learned."""

LARGE_RATIO = 0.1
"""Ratio of the norms of update and weight, in the median of the weights, above which an update is too large."""

LARGE_SHARE = 0.3
"""Share of the recorded steps with updates that are too large."""

REPLACING_RATIO = 1.0
"""A single update that is larger than the weights themselves is too large."""

SKIPPED_SHARE = 0.3
"""Share of the recorded steps whose update was skipped."""

LEAST_SKIPPED = 3


def _ratios(evidence: Evidence) -> npt.NDArray[np.float64]:
    """The median ratio of update and weight of all weight matrices, at each row; NaN where there is none.

    Without matrices that begin at zero, as those of adapters: at first, their updates are as large as they are.
    """
    weights = [one for one in evidence.of_kind("update_ratio", "param") if _is_matrix(evidence, one)]
    ratios = evidence.matrix("mean")[:, weights].astype(np.float64)
    ratios[~np.isfinite(ratios)] = np.nan
    found = np.full(len(evidence), np.nan)
    is_known = np.isfinite(ratios).any(axis=1)
    found[is_known] = np.nanmedian(ratios[is_known], axis=1)
    return found


def _is_matrix(evidence: Evidence, column: int) -> bool:
    one = evidence.series[column]
    value = evidence.find(one.module, one.call, one.role, one.path)
    if value is None or dimensions(evidence.places.tensor(one)) < 2:
        return False
    norms = evidence.column("l2_norm", value)
    known = norms[np.isfinite(norms)]
    return len(known) > 0 and bool(known[0] > 0)


def update_too_small(evidence: Evidence) -> Iterator[Finding]:
    """The weights get gradients, and hardly change or do not change at all."""
    ratios = _ratios(evidence)
    rows = np.flatnonzero(np.isfinite(ratios))
    is_small = len(rows) > LEAST_ROWS and ratios[rows].max() < SMALL_RATIO
    is_unchanged = all_unchanged(evidence)
    if not is_small and not is_unchanged:
        return
    most = float(ratios[rows].max()) if len(rows) else 0.0
    how = "None of the weights changes at all" if is_unchanged else f"Updates are at most {most:.1g} of the weights"
    yield finding(
        evidence,
        "update-too-small",
        "warning",
        at=None,
        rows=rows if is_small else range(len(evidence)),
        numbers={"largest_ratio": most},
        text=f"{how}, although gradients come back. The network does not learn.",
        advice="Raise the learning rate. Check that `optimizer.step()` is called, that the optimizer has this model's "
        "parameters, and that a schedule does not begin at zero.",
    )


def update_too_large(evidence: Evidence) -> Iterator[Finding]:
    """Updates change the weights by a tenth or more, again and again."""
    ratios = _ratios(evidence)
    rows = np.flatnonzero(np.isfinite(ratios))
    large = rows[ratios[rows] > LARGE_RATIO]
    is_replaced = len(rows) > 0 and ratios[rows].max() > REPLACING_RATIO
    if not is_replaced and len(large) < max(LEAST_ROWS, LARGE_SHARE * len(rows)):
        return
    usual = float(np.median(ratios[rows]))
    yield finding(
        evidence,
        "update-too-large",
        "warning",
        at=None,
        rows=large,
        numbers={"median_ratio": usual, "largest_ratio": ratios[rows].max(), "steps": len(large)},
        text=f"{len(large)} of {len(rows)} recorded updates change the weights by more than {LARGE_RATIO:.0%}; "
        f"the median is {usual:.1%}. About 0.1% is usual.",
        advice="Lower the learning rate by a factor of 10, or warm it up.",
    )


def loss_scale_loop(evidence: Evidence) -> Iterator[Finding]:
    """The scaler skips update after update, and halves the loss scale."""
    ends = np.array([one.end if one else "" for one in evidence.facts])
    rows = np.flatnonzero(ends == "skipped")
    if len(rows) < max(LEAST_SKIPPED, SKIPPED_SHARE * len(evidence)) or rows[-1] < len(evidence) // 2:
        return
    scales = evidence.scales[np.isfinite(evidence.scales)]
    last = float(scales[-1]) if len(scales) else float("nan")
    yield finding(
        evidence,
        "loss-scale-loop",
        "error",
        at=None,
        rows=rows,
        numbers={"skipped": len(rows), "steps": len(evidence), **({"last_scale": last} if len(scales) else {})},
        text=f"{len(rows)} of {len(evidence)} recorded updates were skipped, because gradients were not finite "
        "in the low precision. The loss scale falls and the network does not learn.",
        advice="Look for the first module with infinite gradients at a skipped step; compute it in float32, use "
        "bfloat16, "
        "or clip its activations.",
    )
