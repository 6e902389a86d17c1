"""Finds a loss that jumps and comes back, and what moved before it.

The evidence is the logged loss, and the norms of all series at the recorded steps before the jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import Loss, judged
from torchgraph_explorer.findings.rules.rule import Flags, named, quoted
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

PAST = 20
"""Number of values before each one that it is compared with."""

JUMP = 10.0
"""Least height of a spike above the values before, of the loss' logarithm, in standard deviations of its noise over the
whole run."""

JUMP_OF_PAST = 6.0
"""Least height likewise, in standard deviations of the noise of the values before it. The noise of the logarithm grows
as a loss falls, most of all with small batches."""

OF_BEGINNING = 0.25
"""Least height of a spike above the values before, over the loss at the beginning."""

MOST_SPIKES = 0.05
"""Largest share of the values that are spikes: a loss with more of them is just noisy."""

FEW = 0.5
"""Largest number of samples, over the usual one, of a batch whose loss may be far from the others by chance."""

RARE = 2.0
"""Largest single value, over the loss at first, of a batch with several samples of a rare class."""

MOVED = 8.0
"""Least change of a series' norm that counts as a move, in standard deviations of its own past."""

LOOKED_BACK = 5
"""Number of recorded steps, up to that of the spike, at which series are looked at."""

_NORMAL = 1.4826
"""The standard deviation of a normal distribution, divided by its median absolute deviation."""


class _Mover(NamedTuple):
    """A series that moved before a spike.

    Attributes:
        rank: The order in which series moved: by row, then by the order of a training step.
        series: The series.
        row: The row at which it moved.
        times: By how many standard deviations of its past its norm was above the usual one.
    """

    rank: tuple[int, int, int]
    series: Series
    row: int
    times: float


def loss_spike(evidence: Evidence) -> Iterator[Finding]:
    """The loss jumps far above the values before, beyond its noise."""
    loss = judged(evidence)
    spikes = _spikes(loss) if loss is not None else np.zeros(0, np.intp)
    if loss is not None and len(spikes):
        spikes = spikes[~_are_of_few(evidence, loss, spikes)]
    if loss is None or not len(spikes) or len(spikes) > MOST_SPIKES * len(loss.values):
        return
    first = int(spikes[0])
    before = float(np.median(loss.values[first - PAST : first]))
    mover = _mover(evidence, int(loss.steps[first]))
    at = None if mover is None or _is_of_update(mover) else mover.series
    yield Finding(
        kind="loss-spike",
        severity="warning",
        module=None if at is None else at.module,
        call=None if at is None else at.call,
        path=None if at is None else at.path,
        step=int(loss.steps[first]),
        last_step=int(loss.steps[spikes[-1]]),
        evidence={"value": float(loss.values[first]), "before": before, "spikes": float(len(spikes))}
        | ({} if mover is None else {"moved_step": float(evidence.steps[mover.row]), "moved_times": mover.times}),
        text=f"`{quoted(loss.name)}` jumps from {before:.4g} to {loss.values[first]:.4g}{_others(len(spikes))}. "
        f"{_what_moved(evidence, mover)}",
        advice="Look at the batch of that step, and at the learning rate. Clip the gradient's norm, or skip steps "
        "whose gradient is far larger than usual.",
    )


def _others(count: int) -> str:
    """The clause that there are more spikes; empty if there is only one."""
    return f", and again {count - 1} time{'s' * (count > 2)} later" if count > 1 else ""


def _spikes(loss: Loss) -> npt.NDArray[np.intp]:
    """The indices of values that jump far above the median of those before and beyond the noise, and come back.

    Of several spikes within `PAST` values, the first counts. Empty if the loss is not always positive.
    """
    values = loss.values
    if len(values) <= PAST or values.min() <= 0:
        return np.zeros(0, np.intp)
    logs = np.log(values)
    past = np.lib.stride_tricks.sliding_window_view(logs, PAST)[:-1]
    usual = np.median(past, axis=1)
    above = logs[PAST:] - usual
    noise = _NORMAL * float(np.median(np.abs(above - np.median(above))))
    noise_before = _NORMAL * np.median(np.abs(past - usual[:, None]), axis=1)
    least = np.maximum(max(JUMP * noise, np.log(2)), JUMP_OF_PAST * noise_before)
    height = values[PAST:] - np.exp(usual)
    base = float(np.median(values[:3]))
    found = np.flatnonzero((above > least) & (height > OF_BEGINNING * base)) + PAST
    if np.count_nonzero(np.diff(found) > 1) > MOST_SPIKES * len(values):
        return np.zeros(0, np.intp)  # up and down all the time, as where a rare class is in few of the batches
    begins = np.append(True, np.diff(found) > PAST) if len(found) else np.zeros(0, bool)
    starts = [start for start in found[begins].tolist() if _comes_back(values, start)]
    return np.array(starts, dtype=np.intp)


def _are_of_few(evidence: Evidence, loss: Loss, spikes: npt.NDArray[np.intp]) -> Flags:
    """Which spikes are those of a batch of few samples, as the last one of an epoch, or of one with a rare class.

    The number of samples is known at recorded steps. Without it, a spike of a single value is taken for such a one if
    it is below the loss at first; or below `RARE` times that, if no data, parameter or output moved before it.
    """
    sizes = {
        int(step): facts.batch_size
        for step, facts in zip(evidence.steps, evidence.training, strict=True)
        if facts is not None and facts.batch_size is not None
    }
    usual, begin = float(np.median([*sizes.values()] or [0])), float(np.median(loss.values[:3]))
    found = []
    for at in spikes.tolist():
        step, value = int(loss.steps[at]), loss.values[at]
        size = sizes.get(step)
        before = float(np.median(loss.values[at - PAST : at]))
        is_single = at + 1 < len(loss.values) and loss.values[at + 1] ** 2 < before * value
        is_rare = value < begin or (value < RARE * begin and not _values_moved(evidence, step))
        found.append((size is not None and size < FEW * usual) or bool(is_single and is_rare))
    return np.array(found, np.bool_)


def _values_moved(evidence: Evidence, step: int) -> bool:
    """Whether the first to move, up to `step`, was data, a parameter or an output, and not a gradient or update."""
    mover = _mover(evidence, step)
    return mover is not None and mover.series.kind == "value"


def _comes_back(values: Floats, spike: int) -> bool:
    """Whether most values after a spike are nearer to those before it; else the loss has moved to another level."""
    before = float(np.median(values[spike - PAST : spike]))
    after = values[spike + 1 :]
    return not len(after) or float(np.median(after)) < (before + values[spike]) / 2


def _mover(evidence: Evidence, step: int) -> _Mover | None:
    """The series that moved first in the last recorded steps up to `step`; None if none did, or they are too far apart.

    Of those that moved at the same step, it is the first in the order of a training step.
    """
    stop = int(np.searchsorted(evidence.steps, step, side="right"))
    start = max(stop - LOOKED_BACK, 0)
    if start < LOOKED_BACK or stop == start or int(evidence.steps[stop - 1]) < step - LOOKED_BACK:
        return None
    past = evidence.matrix("l2_norm")[max(start - 2 * PAST, 0) : start].astype(np.float64)
    with np.errstate(all="ignore"):
        usual = np.nanmedian(past, axis=0)
        noise = _NORMAL * np.nanmedian(np.abs(past - usual), axis=0) + 1e-3 * np.abs(usual)
        times = (evidence.matrix("l2_norm")[start:stop] - usual) / noise
    movers = []
    for row, column in zip(*np.nonzero(times > MOVED), strict=True):
        series = evidence.series[int(column)]
        if series.role == "edge":  # the tensors at its ends have moved, too
            continue
        order = evidence.places.order(series.module, series.call)
        rank = (int(row), *_phase(series, order))
        movers.append(_Mover(rank, series, start + int(row), float(times[row, column])))
    return min(movers, key=lambda mover: mover.rank, default=None)


def _phase(series: Series, order: int) -> tuple[int, int]:
    """A key that sorts series by when a step computes them.

    First come parameters, then inputs and outputs in the order of execution, then gradients backwards, then updates.
    `order` is the place of the series' call in the order of execution.
    """
    if series.kind == "value":
        return (0 if series.role == "param" else 1), 2 * order + (series.role == "output")
    return (2, -order) if series.kind in {"grad", "grad_norm"} else (3, 0)


def _is_of_update(mover: _Mover) -> bool:
    return mover.series.kind in {"update", "update_ratio", "optimizer_grad"}


_KINDS = {
    "value": "The first to move was",
    "grad": "The first to move was the gradient of",
    "grad_norm": "The first to move was the gradient of",
    "optimizer_grad": "The first to move was the optimizer's gradient of",
    "update": "The first to move was the update of",
    "update_ratio": "The first to move was the update of",
}


def _what_moved(evidence: Evidence, mover: _Mover | None) -> str:
    """The sentence about what moved first."""
    if mover is None:
        return "No recorded series moved before it."
    series, step = mover.series, int(evidence.steps[mover.row])
    what = f"{_KINDS[series.kind]} `{quoted(series.path)}` of {named(series.module)}"
    return f"{what}, at step {step}, by {mover.times:.2g} times its noise."
