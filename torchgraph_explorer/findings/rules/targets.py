"""Finds losses that take logits for logarithms, and targets that are out of the range of the network's outputs.

The evidence is the logged loss and the gradients at the model's output, which together tell a squared error, and the
range of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.activations import NEAR_BOUND
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED, parts
from torchgraph_explorer.findings.rules.dice import dice_of_logits
from torchgraph_explorer.findings.rules.facts import numbers_of
from torchgraph_explorer.findings.rules.generated import data_beyond_generator
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    TrainedOutput,
    classes_and_positions,
    ends_with,
    last_module,
    last_of,
    of_norm_one,
    sample_size,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

LEAST_OF_COSINES = -1.05
"""Least loss, with a margin, of a negative cosine: it is linear in its outputs, with gradients of norm 1, as `nll_loss`
is, but never below -1."""

AS_LOGGED, USUALLY = 0.02, 2e-3
"""Largest relative difference of the logged loss from the squared error that the gradients tell, at any step and in the
median. A binary cross entropy of outputs near one half differs by only a few percent for many steps."""

OFTEN = 0.5
"""Least share of the steps at which the error, or a target, is out of range."""

MARGIN = 0.1
"""How far beyond a range a target is to be out of it, as a share of the range; or in units of the targets if the range
has only one end."""

LEAST_OF_FUNCTION = 8
"""Fewest recorded steps that show the bounds of a function that is no module, or a binary cross entropy."""

STOPPED = 0.5
"""Least share of the squared error, over the second half of the steps, whose gradient a ReLU at the end stops."""

RANGES = {"Sigmoid": (0.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
"""The smallest and the largest output of each of these classes."""


CLAMP = "clamp"
"""How a text calls a function that sets what is beyond its bounds to these."""

_CLAMPED = " Where outputs are beyond the limits of a clamp, no gradient comes back: clamp only what is shown or used."


def logits_before_nll(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are logits, and the loss takes them for the logarithms of probabilities.

    The gradient of such a loss is the label, whatever the answer is: its norm is 1 in the mean over the samples. Some
    outputs are above zero, which logarithms of probabilities are not. A distance has such gradients as well, but is not
    negative; and a negative cosine is not below -1.

    A Dice coefficient wants probabilities, too.
    """
    yield from dice_of_logits(evidence)
    loss = judged(evidence)
    if loss is None or not len(loss.values) or loss.values.min() > LEAST_OF_COSINES:
        return
    for series, info, column, norms in trained_outputs(evidence):
        if not np.nanmax(evidence.column("max", column), initial=0) > EQUAL:
            continue
        size = samples_of(evidence, info, column)
        for classes, positions in classes_and_positions(info):
            scale = size * math.sqrt(positions)
            every = (of_norm_one(evidence, norms, scale * k, of=("mean",)) for k in parts(evidence))
            rows = next(filter(len, every), None)
            if classes > 2 and rows is not None and len(rows) >= LEAST_ROWS:
                yield _not_logarithms(evidence, series, rows, lowest=float(loss.values.min()))
                break


def _not_logarithms(evidence: Evidence, output: Series, rows: Rows, *, lowest: float) -> Finding:
    """The finding that the loss takes logits for logarithms of probabilities, and came to `lowest`."""
    return finding(
        evidence,
        "logits-before-nll",
        "warning",
        at=output,
        rows=rows,
        numbers={"steps": len(rows), "lowest_loss": lowest},
        text="The loss takes the model's outputs for logarithms of probabilities, as `nll_loss` does, but some are "
        "above zero, so they are not. Its gradient is the same whatever the model answers, and it falls without end: "
        f"it came to {lowest:.3g}.",
        advice="Hand the outputs to `cross_entropy`, or through `log_softmax` first.",
    )


def targets_out_of_range(evidence: Evidence) -> Iterator[Finding]:
    """Outputs that an activation bounds have a squared error with targets beyond these bounds.

    For a ReLU, which has only one bound, most of the error has to be where it gives zero and passes no gradient. A
    binary cross entropy has to have targets beyond 0 and 1. The data of a generator has to be beyond what it can make.
    """
    yield from data_beyond_generator(evidence)
    outputs = list(trained_outputs(evidence))
    if outputs and (two := _two_labels_beyond_one(evidence, outputs[0])) is not None:
        yield _no_probabilities(evidence, outputs[0].series, two.rows, labels=two.labels)
        return
    for output in outputs:
        series, info, column, norms = output
        errors = squared_errors(evidence, column, norms)
        if errors is None:
            if (rows := _of_labels_beyond_one(evidence, output)) is not None:
                yield _no_probabilities(evidence, series, rows)
            continue
        bounded = _bounded_by(evidence, column)
        if bounded is not None:
            name, (low, high) = bounded
            beyond = _share_beyond(evidence, low, high)
            if beyond >= OFTEN or (ends_with(evidence, column, name) and _are_too_large(errors, high - low)):
                error = float(np.sqrt(np.median(errors.values)))
                yield _out_of_range(evidence, series, errors.rows, name=name, within=(low, high), error=error)
        elif sample_size(info) == 1 or _share_beyond(evidence, 0.0, math.inf) >= OFTEN:
            stopped = _stopped_by_relu(evidence, column, norms)
            late = errors.rows[len(errors.rows) // 2 :]
            if stopped is not None and np.median(stopped[late]) > STOPPED:
                yield _below_zero(evidence, output, errors.rows, stopped=float(np.median(stopped[late])))


LEAST_TOLD, BEYOND_LABELS = 3, 0.01
"""Fewest of the first steps that have the same two labels, and how far one of them is beyond 0 and 1 at least."""

HALF, VARIED, ROUNDING = 0.5, 0.01, 1e-6
"""Least distance of the two labels, least standard deviation of the outputs, whose sigmoids then vary by more than
`EQUAL`, and how exact the labels are as a share of themselves."""


class _TwoLabels(NamedTuple):
    """Labels that a binary cross entropy of logits has, and the rows that show them."""

    rows: Rows
    labels: tuple[float, float]


def _two_labels_beyond_one(evidence: Evidence, output: TrainedOutput) -> _TwoLabels | None:
    """Two numbers, not both of 0 and 1, one of which each target is, the same in all of the first steps; else None.

    They are computed as the targets of a mean binary cross entropy of logits. Those of a loss whose gradients have one
    or two values, as a sum or a hinge, vary as the sigmoids of the outputs do.
    """
    seen = numbers_of(evidence, "binary")
    labels = np.array([numbers[:2] for _, numbers in seen])
    if len(seen) < LEAST_TOLD:
        return None
    low, high = (float(one) for one in np.median(labels, axis=0))
    size = EQUAL + ROUNDING * max(abs(low), abs(high))
    spreads = evidence.column("std", output.column)
    if high - low < HALF or any(spreads[row] < VARIED for row, _ in seen):
        return None
    is_same = np.abs(labels - (low, high)).max() < size and max(numbers[2] for _, numbers in seen) < size
    is_beyond = low < -BEYOND_LABELS or high > 1 + BEYOND_LABELS
    return _TwoLabels(np.array([row for row, _ in seen], np.intp), (low, high)) if is_same and is_beyond else None


def _of_labels_beyond_one(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The rows with gradients, if these are of a binary cross entropy with whole targets beyond 0 and 1; else None.

    The gradient at a logit is its sigmoid less the target. At first, the sigmoid is one half, so the gradients are
    multiples of one half, and larger than one half for such targets. Later they are larger by at most one half, and the
    loss falls below zero.
    """
    loss, (_, info, column, norms) = judged(evidence), output
    if loss is None or len(loss.values) < LEAST_OF_FUNCTION or sample_size(info) != 1:
        return None
    if abs(float(loss.values[0]) / math.log(2) - 1) > AS_EXPECTED or not np.median(_last_quarter(loss.values)) < 0:
        return None
    low, high = (evidence.column(name, norms) * samples_of(evidence, info, column) for name in ("min", "max"))
    rows = np.flatnonzero(np.isfinite(high) & (high > 0))
    if len(rows) < LEAST_OF_FUNCTION:
        return None
    halves = np.array([low[rows[0]], high[rows[0]]]) - 0.5
    are_halves = (np.abs(halves - np.round(halves)) < AS_EXPECTED).all()
    is_bounded = high[rows].max() < high[rows[0]] + 0.5 + AS_EXPECTED
    return rows if are_halves and halves[1] > 0.5 and is_bounded else None


def _last_quarter(values: Floats) -> Floats:
    return values[3 * len(values) // 4 :]


def _no_probabilities(
    evidence: Evidence, output: Series, rows: Rows, *, labels: tuple[float, float] | None = None
) -> Finding:
    """The finding that a binary cross entropy has targets beyond 0 and 1, and which `labels`, if they are known."""
    known = (
        " and ".join(f"{round(one, 3) + 0.0:g}" for one in labels) if labels else "labels of -1 and 1, or of 1 and 2"
    )
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=output,
        rows=rows,
        numbers={"low": 0.0, "high": 1.0},
        text="The gradients are those of a binary cross entropy with targets that are not between 0 and 1, "
        f"{'namely' if labels else 'such as'} {known}: the loss falls below zero, and without end.",
        advice="Give it labels of 0 and 1: `(y + 1) / 2`, `y - 1`, or `mask / 255`. For labels of -1 and 1, there is "
        "`F.soft_margin_loss`.",
    )


def _are_too_large(errors: SquaredErrors, width: float) -> bool:
    """Whether most squared errors are larger than any with outputs and targets within a range of this width."""
    return bool((errors.values > width**2).mean() >= OFTEN)


def _share_beyond(evidence: Evidence, low: float, high: float) -> float:
    """The share of the steps with known targets that have a target beyond this range; 0 if too few are known."""
    known = [facts.targets for facts in evidence.training if facts is not None and facts.targets is not None]
    margin = MARGIN * (high - low) if math.isfinite(high) else MARGIN
    beyond = [least < low - margin or most > high + margin for least, most in known]
    return sum(beyond) / len(beyond) if len(beyond) >= LEAST_ROWS else 0.0


def _stopped_by_relu(evidence: Evidence, column: int, norms: int) -> Floats | None:
    """The share of the squared error that is where a ReLU behind the last layer stops its gradient, `[steps]`.

    It is the share of the squared gradient at the model's output, which is proportional to the error. None if the
    output is not that of a ReLU, be it a module or a function.
    """
    low, zeros = (evidence.column(name, column) for name in ("min", "zeros"))
    if np.nanmin(low, initial=0) < 0 or not np.nanmin(zeros, initial=np.inf) > 0:
        return None
    relu = last_of(evidence, column, "ReLU")
    if relu is None:
        before = evidence.find(last_module(evidence), 0, "output", "output", "grad_norm")
    else:
        before = evidence.find(relu, 0, "input", "input[0]", "grad_norm")
    if before is None:
        return None
    after, passed = (evidence.column("l2_norm", column).astype(np.float64) ** 2 for column in (norms, before))
    with np.errstate(all="ignore"):
        found: Floats = 1 - passed / after
    return found


def _below_zero(evidence: Evidence, output: TrainedOutput, rows: Rows, *, stopped: float) -> Finding:
    """The finding that targets are below zero behind a ReLU, at its module or the model's output."""
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=last_of(evidence, output.column, "ReLU") or output.series,
        rows=rows,
        numbers={"stopped": stopped, "low": 0.0},
        text=f"The model ends with a ReLU, and {stopped:.0%} of the squared error is where the ReLU gives zero and "
        "lets no gradient through. Targets below zero are out of its range.",
        advice="Leave out the ReLU at the end of the network. If no target is negative, use `softplus` instead.",
    )


class SquaredErrors(NamedTuple):
    """Logged mean squared errors, and the rows of their steps, both `[n]`."""

    rows: Rows
    values: Floats


def squared_errors(evidence: Evidence, column: int, norms: int, *, sign: int = 1) -> SquaredErrors | None:
    """The logged loss, if it is at all steps the mean squared error that the gradients at an output tell; else None.

    With a `sign` of -1, the loss has to be the negative of that error, and the result is the error.
    """
    loss = judged(evidence)
    if loss is None:
        return None
    _, rows, values = np.intersect1d(evidence.steps, loss.steps, return_indices=True)
    found = sign * loss.values[values].astype(np.float64)
    count, length = (evidence.column(of, at)[rows] for of, at in (("count", column), ("l2_norm", norms)))
    expected = count.astype(np.float64) * length.astype(np.float64) ** 2 / 4
    known = np.isfinite(found) & np.isfinite(expected) & (found > 0)
    rows, found, expected = rows[known], found[known], expected[known]
    if len(rows) < LEAST_ROWS:
        return None
    off = np.abs(expected / found - 1)
    return SquaredErrors(rows, found) if off.max() < AS_LOGGED and np.median(off) < USUALLY else None


def _bounded_by(evidence: Evidence, column: int) -> tuple[str, tuple[float, float]] | None:
    """The class of the last module, or the function that the outputs tell, that bounds the model's output; its bounds.

    Outputs of a function stay within its bounds at all steps, and come near one of them in the last quarter. Those of a
    clamp are at both bounds at each step of that quarter. None if there is no such module or function.
    """
    module = next((name for name in RANGES if ends_with(evidence, column, name)), None)
    if module is not None:
        return module, RANGES[module]
    least, most = (evidence.column(name, column).astype(np.float64) for name in ("min", "max"))
    known = np.flatnonzero(np.isfinite(least) & np.isfinite(most))
    late = known[3 * len(known) // 4 :]
    bounds = (float(np.nanmin(least, initial=np.inf)), float(np.nanmax(most, initial=-np.inf)))
    if len(known) >= LEAST_OF_FUNCTION and (least[late] == bounds[0]).all() and (most[late] == bounds[1]).all():
        return CLAMP, bounds
    for name in ("Sigmoid", "Tanh"):
        low, high = RANGES[name]
        near = (1 - NEAR_BOUND) * (high - low)
        is_within = len(known) >= LEAST_OF_FUNCTION and (least[known] >= low).all() and (most[known] <= high).all()
        if name == "Sigmoid" and (least[known] == 0).any():
            continue  # zeros are those of a ReLU
        if is_within and ((least[late] < low + near).all() or (most[late] > high - near).all()):
            return name, RANGES[name]
    return None


def _out_of_range(
    evidence: Evidence, output: Series, rows: Rows, *, name: str, within: tuple[float, float], error: float
) -> Finding:
    """The finding that targets are beyond the bounds of the activation `name`, with this root mean squared error."""
    low, high = within
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=output,
        rows=rows,
        numbers={"root_mean_squared_error": error, "low": low, "high": high},
        text=f"A {name} keeps the model's outputs between {low:g} and {high:g}, and there are targets out of that "
        f"range: the root mean squared error is {error:.3g}.",
        advice=f"Leave out the {name} at the end of the network, or scale the targets to its range."
        f"{_CLAMPED if name == CLAMP else ''}",
    )
