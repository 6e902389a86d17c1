"""A loss that jumps, and what moved before it."""

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
"""Values before each that it is compared with."""

JUMP = 10.0
"""Standard deviations of the loss' own noise, of its logarithm, that a spike stands above the values before."""

JUMP_OF_PAST = 6.0
"""The same of the noise of the values before it: it grows where a loss falls, most of all with small batches."""

OF_BEGINNING = 0.25
"""Share of the loss at the beginning that a spike stands above the values before, at least."""

MOST_SPIKES = 0.05
"""Share of the values from which on spikes are this loss' way of being."""

FEW = 0.5
"""Share of the usual samples of a batch below which its loss may be far from the others by chance."""

RARE = 2.0
"""Times the loss at first that a single value comes to where several samples of a batch are of a rare class."""

MOVED = 8.0
"""Standard deviations of a series' own past that count as a move."""

LOOKED_BACK = 5
"""Recorded steps before the spike at which something may have moved."""


class _Mover(NamedTuple):
    """A series that moved: before which others, and when."""

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
    moved = _is_of_update(mover)
    yield Finding(
        kind="loss-spike",
        severity="warning",
        module=None if mover is None or moved else mover.series.module,
        call=None if mover is None or moved else mover.series.call,
        path=None if mover is None or moved else mover.series.path,
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
    return f", and again {count - 1} time{'s' * (count > 2)} later" if count > 1 else ""


def _spikes(loss: Loss) -> npt.NDArray[np.intp]:
    """Where the loss jumps: far above the median of the values before it, in its logarithm, beyond its noise."""
    values = loss.values
    if len(values) <= PAST or values.min() <= 0:
        return np.zeros(0, np.intp)
    logs = np.log(values)
    past = np.lib.stride_tricks.sliding_window_view(logs, PAST)[:-1]
    usual = np.median(past, axis=1)
    above = logs[PAST:] - usual
    noise = 1.4826 * float(np.median(np.abs(above - np.median(above))))
    noise_before = 1.4826 * np.median(np.abs(past - usual[:, None]), axis=1)
    least = np.maximum(max(JUMP * noise, np.log(2)), JUMP_OF_PAST * noise_before)
    height = values[PAST:] - np.exp(usual)
    base = float(np.median(values[:3]))
    found = np.flatnonzero((above > least) & (height > OF_BEGINNING * base)) + PAST
    if np.count_nonzero(np.diff(found) > 1) > MOST_SPIKES * len(values):
        return np.zeros(0, np.intp)  # up and down all the time, as where a rare class is in few of the batches
    begins = np.append(True, np.diff(found) > PAST) if len(found) else np.zeros(0, bool)
    starts = [one for one in found[begins].tolist() if _comes_back(values, one)]
    return np.array(starts, dtype=np.intp)


def _are_of_few(evidence: Evidence, loss: Loss, spikes: npt.NDArray[np.intp]) -> Flags:
    """Which spikes are of a batch of few samples, as the last one of an epoch is: its loss has more noise.

    How many there are is known at recorded steps. A single value that is no larger than the loss was at first may be of
    such a batch, or of one with a rare class; so may one of up to `RARE` times that, if no value moved before it.
    """
    sizes = {
        int(step): one.batch_size
        for step, one in zip(evidence.steps, evidence.training, strict=True)
        if one is not None and one.batch_size is not None
    }
    usual, begin = float(np.median([*sizes.values()] or [0])), float(np.median(loss.values[:3]))
    found = []
    for at in spikes.tolist():
        size = sizes.get(int(loss.steps[at]))
        before = float(np.median(loss.values[at - PAST : at]))
        is_single = at + 1 < len(loss.values) and loss.values[at + 1] ** 2 < before * loss.values[at]
        is_rare = loss.values[at] < begin or (
            loss.values[at] < RARE * begin and not _values_moved(evidence, int(loss.steps[at]))
        )
        found.append((size is not None and size < FEW * usual) or bool(is_single and is_rare))
    return np.array(found, np.bool_)


def _values_moved(evidence: Evidence, step: int) -> bool:
    """Whether data, parameters or outputs moved up to `step`, and not only the gradients of a loss that is large."""
    mover = _mover(evidence, step)
    return mover is not None and mover.series.kind == "value"


def _comes_back(values: Floats, spike: int) -> bool:
    """Whether most later values are nearer to those before; else it is no spike, but the beginning of another level."""
    before = float(np.median(values[spike - PAST : spike]))
    after = values[spike + 1 :]
    return not len(after) or float(np.median(after)) < (before + values[spike]) / 2


def _mover(evidence: Evidence, step: int) -> _Mover | None:
    """The series that moved first: at the earliest step up to `step`, and there in the order of a training step."""
    stop = int(np.searchsorted(evidence.steps, step, side="right"))
    start = max(stop - LOOKED_BACK, 0)
    if start < LOOKED_BACK or stop == start or int(evidence.steps[stop - 1]) < step - LOOKED_BACK:
        return None
    past = evidence.matrix("l2_norm")[max(start - 2 * PAST, 0) : start].astype(np.float64)
    with np.errstate(all="ignore"):
        usual = np.nanmedian(past, axis=0)
        noise = 1.4826 * np.nanmedian(np.abs(past - usual), axis=0) + 1e-3 * np.abs(usual)
        times = (evidence.matrix("l2_norm")[start:stop] - usual) / noise
    movers = []
    for row, series in zip(*np.nonzero(times > MOVED), strict=True):
        one = evidence.series[int(series)]
        if one.role == "edge":  # the tensors at its ends have moved, too
            continue
        order = evidence.places.order(one.module, one.call)
        movers.append(_Mover((int(row), *_phase(one, order)), one, start + int(row), float(times[row, series])))
    return min(movers, key=lambda one: one.rank, default=None)


def _phase(series: Series, order: int) -> tuple[int, int]:
    """The order of what happens in a step: data and parameters, outputs, gradients backwards, updates."""
    if series.kind == "value":
        is_first = series.role != "output"
        return (0 if series.role == "param" else 1), 2 * order + (not is_first)
    return (2, -order) if series.kind in {"grad", "grad_norm"} else (3, 0)


def _is_of_update(mover: _Mover | None) -> bool:
    return mover is not None and mover.series.kind in {"update", "update_ratio", "optimizer_grad"}


_KINDS = {
    "value": "The first to move was",
    "grad": "The first to move was the gradient of",
    "grad_norm": "The first to move was the gradient of",
    "optimizer_grad": "The first to move was the optimizer's gradient of",
    "update": "The first to move was the update of",
    "update_ratio": "The first to move was the update of",
}


def _what_moved(evidence: Evidence, mover: _Mover | None) -> str:
    if mover is None:
        return "No recorded series moved before it."
    one, step = mover.series, int(evidence.steps[mover.row])
    what = f"{_KINDS[one.kind]} `{quoted(one.path)}` of {named(one.module)}"
    return f"{what}, at step {step}, by {mover.times:.2g} times its noise."
