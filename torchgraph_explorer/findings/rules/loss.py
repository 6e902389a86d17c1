"""Finds a training loss that does not fall, or that rises again, by what the training loop logged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding, Severity
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import is_rewarded, need_not_fall, the_loss
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.ratios import measured_ratios, trained_matrices
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, quoted

Floats = npt.NDArray[np.float64]
Steps = npt.NDArray[np.int64]

LEAST_VALUES = 40
"""Fewest logged values of a loss that is said not to fall."""

FELL, SURE = 0.05, 3.0
"""A loss has fallen if its mean over the second half is below that of its beginning by this share of the latter, and by
so many standard errors."""

SURELY_NOT = 150
"""Updates from which on a loss that does not fall is a warning: many networks learn next to nothing for a hundred."""

SETTLED = 0.2
"""Share of the values, at the beginning, in which a network may only learn how frequent the answers are."""

MOVED = 0.05
"""Least sum of the norms of all updates, over the norm of the weights, of a network whose loss should fall."""

CHANGED = 5e-3
"""Least change of the norm of any matrix over the whole run, as a share of it, of a network whose loss should fall,
where updates are not recorded."""

MAY_HAVE_FALLEN = 0.1
"""A loss that may have fallen by this share, as far as its noise lets one see, is not said not to fall."""

LEAST_TO_DIVERGE, LEAST_BEFORE_NAN = 10, 3
"""Fewest logged values of a loss that is said to rise; and fewest where a value that is not finite ends it."""

RISEN = 0.5
"""Least rise of a diverging loss from its lowest to its end, over its beginning or its fall, whichever is larger."""

LOST, GAINED = 0.75, 10.0
"""A loss also diverges if it has lost this share of its fall, and that was so many times its noise."""

ABOVE_NOISE = 6.0
"""Least rise of a diverging loss, over its noise."""

ERROR_FELL, LEAST_GRADIENTS = 0.95, 6
"""Largest gradient at an output at the end, over that at first and that where the loss was lowest, of an output that
gets nearer to its targets while the loss rises; and fewest recorded steps with a gradient."""

SOLVED = 0.01
"""Largest loss at the end, over that at first, of a network that has learned all there is."""

KNOWN = 0.8
"""Largest cross entropy at first, over that of equal logits, of a network that was trained before."""

AT_CHANCE = 0.02
"""How far from the cross entropy of equal logits a loss is, as a share of it, that has come to it."""

CANCELS = 1e-3
"""Largest sum of gradients over the classes, over the largest gradient, that is rounding of zero."""

_NORMAL = 1.4826
"""The standard deviation of a normal distribution, divided by its median absolute deviation."""


class Loss(NamedTuple):
    """The logged values of the loss up to the first that is not finite.

    Attributes:
        name: The name of the scalar.
        steps: The step of each value, ascending, `[n]`.
        values: The values, `[n]`, finite.
        noise: Standard deviation of a value around its neighbours, in the units of the loss.
        ends_bad: Whether a value that is not finite comes next, or NaN or infinity in the model.
    """

    name: str
    steps: Steps
    values: Floats
    noise: float
    ends_bad: bool


def is_solved(evidence: Evidence) -> bool:
    """Whether the loss has come near zero and stays there. Activations of such a network may well saturate."""
    loss = judged(evidence)
    if loss is None or loss.ends_bad or len(loss.values) < LEAST_TO_DIVERGE:
        return False
    tenth = max(1, len(loss.values) // 10)
    return bool(0 <= np.median(loss.values[-tenth:]) <= SOLVED * np.median(loss.values[:3]))


def judged(evidence: Evidence) -> Loss | None:
    """The logged loss up to the first value that is not finite; None if there is none, or if it need not fall."""
    found = the_loss(evidence.scalars)
    if found is None or not len(found) or need_not_fall(evidence) or is_rewarded(evidence):
        return None
    bad = np.flatnonzero(~np.isfinite(found.values))
    stop = int(bad[0]) if len(bad) else len(found)
    values = found.values[:stop]
    ends_bad = bool(len(bad)) or evidence.ends_bad
    return Loss(found.name, found.steps[:stop], values, noise_of(values), ends_bad)


def noise_of(values: Floats) -> float:
    """The standard deviation of values around their neighbours, from the median of their differences."""
    if len(values) < LEAST_BEFORE_NAN:
        return 0.0
    changes = np.diff(values)
    # A difference of two values has twice the variance of one.
    return float(_NORMAL / np.sqrt(2) * np.median(np.abs(changes - np.median(changes))))


def loss_not_falling(evidence: Evidence) -> Iterator[Finding]:
    """The training loss stays where it began, or comes back to what a network has that knows nothing of the samples."""
    loss = judged(evidence)
    chance = None if loss is None else _chance_it_stays_at(evidence, loss)
    if loss is None or not (is_flat(loss) or chance) or not _has_moved(evidence):  # what is too slow is told as such
        return
    values, knows = loss.values, _knows_answers(evidence, loss)
    is_early = loss.steps[-1] - loss.steps[0] + 1 < SURELY_NOT
    first, late = float(values[: _windows(loss)[-1]].mean()), float(values[len(values) // 2 :].mean())
    yield _report(
        loss,
        "loss-not-falling",
        "info" if knows or is_early else "warning",
        since=0,
        numbers={"first": first, "last": late, "noise": loss.noise, "values": len(values)},
        text=f"`{quoted(loss.name)}` is {first:.4g} at first and {late:.4g} over the second half of {len(values)} "
        f"values: the network {'has not learned so far' if is_early else 'does not learn'}.{_KNOWS if knows else ''}"
        f"{f' {chance:.4g} is the loss of the same answer for all samples, with equal logits.' if chance else ''}",
        advice=NOT_FALLING,
    )


NOT_FALLING = (
    "Check that samples and labels belong together, that `optimizer.step()` is called and `zero_grad()` before "
    "`backward()`, and try to overfit a single batch. Then try other learning rates."
)


_KNOWS = " It began better than chance, as a network that is fine-tuned does."


def _knows_answers(evidence: Evidence, loss: Loss) -> bool:
    """Whether a cross entropy began far below that of equal logits, as that of a network that was trained before.

    A loss is taken for a cross entropy if its gradients sum to zero over the second or the last dimension of the
    output, which then is that of the classes.
    """
    chance = of_equal_logits(evidence)
    return chance is not None and float(loss.values[:LEAST_BEFORE_NAN].mean()) < KNOWN * chance


def of_equal_logits(evidence: Evidence) -> float | None:
    """The cross entropy of equal logits; None if the gradients are not those of a cross entropy."""
    seen = [numbers for _, numbers in numbers_of(evidence, "cancelling")]
    for at in (0, 2):
        sizes = {numbers[at + 1] for numbers in seen if numbers[at] < CANCELS}
        if len(seen) >= LEAST_ROWS and all(numbers[at] < CANCELS for numbers in seen) and min(sizes) > 1:
            return float(np.log(min(sizes)))
    return None if seen else _of_equal_logits_inside(evidence)


def _of_equal_logits_inside(evidence: Evidence) -> float | None:
    """The cross entropy of equal logits of the last layer, for a model that returns its loss; else None.

    The gradients of that layer's bias are sums over the samples, so they sum to zero over the classes as well.
    """
    places = evidence.places
    layers = [call.module for call in places.calls if places.class_of(call.module) == "Linear"]
    bias = evidence.find(layers[-1], None, "param", "bias", "grad") if layers else None
    if bias is None or any(len(one.shape) for one in (places.root.outputs if places.root else ())):
        return None
    rows = np.flatnonzero(evidence.is_there[:, bias])
    count, mean, size = (evidence.column(name, bias)[rows].astype(np.float64) for name in _OF_GRADIENTS)
    is_zero = (np.abs(mean) <= CANCELS * size) & (size > 0)
    return float(np.log(count[0])) if len(rows) >= LEAST_ROWS and count[0] > 1 and is_zero.all() else None


_OF_GRADIENTS = ("count", "mean", "absolute_mean")


def _chance_it_stays_at(evidence: Evidence, loss: Loss) -> float | None:
    """The cross entropy of equal logits, if the loss began there or above, and stays there to the end.

    In between, at first, it may have been far higher, as where the first updates are too large. None if it does not.
    """
    chance = of_equal_logits(evidence)
    if chance is None or loss.ends_bad or len(loss.values) < LEAST_VALUES or not _is_from_the_start(loss):
        return None
    second = loss.values[len(loss.values) // 2 :]
    near = [float(some.mean()) / chance - 1 for some in np.array_split(second, 2)]
    began = float(loss.values[:LEAST_BEFORE_NAN].mean())
    is_there = all(abs(off) < AT_CHANCE for off in near) and began > (1 - AT_CHANCE) * chance
    return chance if is_there and not _falls(loss) else None


def is_flat(loss: Loss) -> bool:
    """Whether the loss stays where it began: it has not fallen, and its noise would not hide it if it had."""
    if loss.ends_bad or len(loss.values) < LEAST_VALUES or not _is_from_the_start(loss):
        return False
    values, windows = loss.values, _windows(loss)
    late = float(values[len(values) // 2 :].mean())
    if values.min() <= 0 or any(_fell(loss, window, late) for window in windows) or _falls(loss) or rises(loss):
        return False
    first = float(values[: windows[-1]].mean())
    room = 2 * loss.noise * np.sqrt(1 / windows[-1] + 2 / len(values))
    return bool(first - late + room <= MAY_HAVE_FALLEN * first)


def _windows(loss: Loss) -> list[int]:
    """The numbers of values at the beginning whose means the second half is compared with, ascending."""
    return sorted({3, 10, 30, len(loss.values) // 15})


def _has_moved(evidence: Evidence) -> bool:
    """Whether all updates together come to some share of the weights; without updates, whether any norm changes."""
    ratios = measured_ratios(evidence)
    known = ratios[np.isfinite(ratios)]
    steps = float(evidence.steps[-1] - evidence.steps[0] + 1)
    if len(known):
        return float(known.mean()) * steps > MOVED
    norms = evidence.matrix("l2_norm")[:, trained_matrices(evidence)]
    return not norms.size or bool((np.abs(norms[-1] - norms[0]) > CHANGED * norms[0]).any())


def _is_from_the_start(loss: Loss) -> bool:
    """Whether the loss was logged from the beginning. That of a resumed training may have fallen before."""
    every = float(np.median(np.diff(loss.steps)))
    return float(loss.steps[0]) <= 2 * every


def _fell(loss: Loss, window: int, late: float) -> bool:
    """Whether `late`, the mean of the second half, is below that of the first `window` values by more than noise."""
    first = float(loss.values[:window].mean())
    error = loss.noise * np.sqrt(1 / window + 2 / len(loss.values))
    return bool(first - late > max(FELL * first, SURE * error))


def _falls(loss: Loss) -> bool:
    """Whether the loss has a downward trend after its beginning, however slow: its slope is surely below zero."""
    values = loss.values[int(SETTLED * len(loss.values)) :]
    times = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float((times * values).sum() / (times**2).sum())
    return bool(slope < -SURE * loss.noise / np.sqrt((times**2).sum()))


def loss_diverging(evidence: Evidence) -> Iterator[Finding]:
    """The training loss rises, and stays so."""
    loss = judged(evidence)
    if loss is None or not rises(loss) or _is_maximised(loss):
        return
    base, best, late = levels(loss)
    is_high = loss.values > (best + late) / 2
    low = np.flatnonzero(~is_high)
    is_high_at_end = len(low) > 0 and low[-1] + 1 < len(loss.values)
    since = int(low[-1]) + 1 if is_high_at_end else int(np.flatnonzero(is_high)[0])
    is_of_another_part = not loss.ends_bad and _outputs_get_nearer(evidence, int(loss.steps[loss.values.argmin()]))
    yield _report(
        loss,
        "loss-diverging",
        "error" if loss.ends_bad else "info" if is_of_another_part else "warning",
        since=since,
        numbers={"first": base, "best": best, "last": late, "noise": loss.noise},
        text=f"`{quoted(loss.name)}` rises: it is {late:.4g} at the end, after {best:.4g} at best and {base:.4g} at "
        f"first.{_ANOTHER_PART if is_of_another_part else ''}",
        advice="Lower the learning rate, warm it up, or clip the gradient's norm. If it fell first, look at what "
        "changed when it began to rise: the data, the learning rate, or the loss itself.",
    )


_ANOTHER_PART = (
    " The gradients at the model's outputs get smaller meanwhile, so these get nearer to their targets: what rises is "
    "another part of the loss, such as that of a codebook, or one whose weight grows."
)


def _outputs_get_nearer(evidence: Evidence, best: int) -> bool:
    """Whether the gradients at the outputs are smaller at the end than at first, and than around the step `best`.

    Those of a squared error are in proportion to the error, and those of a cross entropy get longer as well while it
    rises. All outputs with a gradient have to agree, but for scalars, and for those whose gradient is always the same.
    """
    found = []
    for output in trained_outputs(evidence):
        lengths = evidence.column("l2_norm", output.norms).astype(np.float64)
        rows = np.flatnonzero(np.isfinite(lengths))
        if len(rows) < LEAST_GRADIENTS or (lengths[rows] == lengths[rows[0]]).all():
            continue
        known, width = lengths[rows], max(LEAST_BEFORE_NAN, len(rows) // 10)
        at = min(int(np.searchsorted(evidence.steps[rows], best)), len(rows) - 1)
        before = known[max(at - width // 2, 0) :][:width], known[:width]
        found.append(np.median(known[-width:]) <= ERROR_FELL * min(float(np.median(one)) for one in before))
    return bool(found) and all(found)


def rises(loss: Loss) -> bool:
    """Whether the loss is far above its best at the end, or has lost most of what it had gained."""
    count = len(loss.values)
    if count < (LEAST_BEFORE_NAN if loss.ends_bad else LEAST_TO_DIVERGE):
        return False
    base, best, late = levels(loss)
    rise, gained = late - best, base - best
    if loss.ends_bad and count < LEAST_TO_DIVERGE:
        return bool(rise > abs(base))
    noise = max(loss.noise, noise_of(loss.values[: count // 4]))  # a policy's is large only until it has learned
    has_lost = gained > GAINED * noise and rise > LOST * gained
    return bool(rise > ABOVE_NOISE * noise and (rise > RISEN * max(abs(base), gained) or has_lost))


def _is_maximised(loss: Loss) -> bool:
    """Whether it is an objective that should rise, as a mean log-likelihood: negative, and never below its start."""
    base, best, _ = levels(loss)
    return bool(loss.values.max() < 0 and base - best <= ABOVE_NOISE * loss.noise)


def levels(loss: Loss) -> tuple[float, float, float]:
    """The loss at first, at its lowest and at the end, each as a median of several values if there are enough."""
    values, count = loss.values, len(loss.values)
    if count < LEAST_TO_DIVERGE:
        return float(values[0]), float(values.min()), float(values[-1])
    width = max(5, count // 20)
    windows = np.lib.stride_tricks.sliding_window_view(values, width)[:: max(1, width // 4)]
    best = float(np.median(windows, axis=1).min())
    last = min(max(7, count // 10), count // 2) if not loss.ends_bad else 3
    return float(np.median(values[: max(3, count // 50)])), best, float(np.median(values[-last:]))


def _report(
    loss: Loss,
    kind: str,
    severity: Severity,
    *,
    since: int,
    numbers: dict[str, float],
    text: str,
    advice: str,
) -> Finding:
    """A finding of the whole run, from the logged value `since` to the last one."""
    return Finding(
        kind=kind,
        severity=severity,
        module=None,
        call=None,
        path=None,
        step=int(loss.steps[since]),
        last_step=int(loss.steps[-1]),
        evidence={name: float(value) for name, value in numbers.items()},
        text=text,
        advice=advice,
    )
