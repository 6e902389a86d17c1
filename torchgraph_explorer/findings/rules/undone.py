"""Finds updates that are taken back, because something writes other weights into the model after each of them.

The evidence is how far an update moved a weight, and how little of that is left when the next step begins.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.rule import finding

LEAST_STEPS = 5
"""Fewest recorded updates after which the weights are known."""

LEFT = 0.1
"""Largest change of a weight up to the next recorded step, over the update, of an update that was taken back. It is
usually around 1, and more if steps between were not recorded."""

LEFT_BETWEEN, MOST_LEFT = 0.01, 0.6
"""How much that limit grows with each step that was not recorded, as what an average leaves of each update adds up, and
how far. Over many steps, weights usually move by several updates."""

OFTEN = 0.9
"""Least share of the recorded updates that were taken back."""

READABLE = 1e-5
"""Least root mean square of an update over the largest element of a weight, whose change float32 shows."""

LEAST_ELEMENTS = 16
"""Fewest elements of a weight that is looked at."""


def update_undone(evidence: Evidence) -> Iterator[Finding]:
    """Next to nothing of the updates is left when the next step begins.

    A copy of averaged weights back into the model leaves `1 - decay` of each update, and loading a kept state nothing.
    """
    left = [found for column in evidence.of_kind("update_ratio", "param") if (found := _left(evidence, column))]
    if not left:
        return
    shares = np.array([one for one, _ in left])  # [weights, steps]
    rows = np.flatnonzero(np.isfinite(shares).any(axis=0))
    if len(rows) < LEAST_STEPS:
        return
    most = np.nanmax(shares[:, rows], axis=0)
    undone = most < np.minimum(LEFT + LEFT_BETWEEN * (np.diff(evidence.steps)[rows] - 1), MOST_LEFT)
    is_odd = np.diff(evidence.steps)[rows] % 2 == 1  # after an even number of steps, weights that swing are back
    if undone.mean() < OFTEN or (is_odd.any() and undone[is_odd].mean() < OFTEN):
        return
    ratio = float(np.nanmedian([ratios[rows] for _, ratios in left]))
    share = float(np.median(most))
    yield finding(
        evidence,
        "update-undone",
        "warning",
        at=None,
        rows=rows[undone],
        numbers={"left": share, "ratio": ratio, "steps": int(undone.sum())},
        text=f"The optimizer changes the weights by {ratio:.2g} of their size, but {_much(share)} of that is left when "
        f"the next step begins, after {int(undone.sum())} of {len(rows)} recorded updates: something writes other "
        "weights into the model after `optimizer.step()`.",
        advice="Look for `load_state_dict`, `copy_` or `.data =` in the training loop. Averaged weights (EMA) belong "
        "into a copy of the model that is only evaluated, and a target network gets the weights of the trained one, "
        "not the other way round.",
    )


def _much(share: float) -> str:
    return "nothing" if share == 0 else f"about {share:.1g}"


def _left(evidence: Evidence, column: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Of one weight, how far any of its statistics moved after each update, over the update; and how large that was.

    Of an update whose elements have signs at random, the mean is the root mean square over the root of their number.
    What is left of several updates has the same signs at most steps, so that the mean of it grows with their number.
    Some statistics may stay: those of a last layer before a softmax have a sum that no gradient changes, those before a
    normalisation a norm, and rows without gradient their largest element. So the one that moves most counts.
    """
    series = evidence.series[column]
    value = evidence.find(series.module, series.call, series.role, series.path)
    if value is None:
        return None
    names = ("count", "sampled", "mean", "l2_norm", "min", "max")
    count, sampled, mean, length, low, high = (evidence.column(name, value).astype(np.float64) for name in names)
    ratios = evidence.column("mean", column).astype(np.float64)
    with np.errstate(all="ignore"):
        root = np.sqrt(count)
        update = ratios * length / root  # its root mean square
        moved = [np.diff(low), np.diff(high), np.diff(mean) * root[1:] / np.diff(evidence.steps), np.diff(length)]
        most = np.max(np.abs(moved), axis=0) / update[:-1]
        is_readable = update > READABLE * np.maximum(np.abs(low), np.abs(high))
        is_known = is_readable & (count == sampled) & (count >= LEAST_ELEMENTS) & (ratios > 0)
    found = np.full(len(evidence), np.nan)
    found[:-1] = np.where(is_known[:-1] & np.isfinite(most), most, np.nan)
    return found, np.where(is_known, ratios, np.nan)
