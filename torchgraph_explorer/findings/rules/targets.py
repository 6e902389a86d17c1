"""Losses whose targets do not fit what the network can say: logits for logarithms, and numbers out of its range."""

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
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import (
    EQUAL,
    TrainedOutput,
    classes_and_positions,
    ends_with,
    last_module,
    of_norm_one,
    sample_size,
    samples_of,
    trained_outputs,
)
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding
from torchgraph_explorer.schema import Series

Floats = npt.NDArray[np.float64]

LEAST_OF_COSINES = -1.05
"""A loss that is linear in its outputs, with gradients of norm 1, is not below -1 if it is a negative cosine."""

AS_LOGGED, USUALLY = 0.02, 2e-3
"""By how much the logged loss may differ from the squared error that the gradients tell, and does in the median. A
binary cross entropy of outputs near one half may be as large for many steps, but for some percent."""

OFTEN = 0.5
"""Share of the steps at which the error has to be larger than the range."""

MARGIN = 0.1
"""Of the range, beyond which a target is out of it for more than rounding."""

LEAST_OF_FUNCTION = 8
"""Recorded steps at which outputs have to be within the bounds of a function that no module shows."""

STOPPED = 0.5
"""Share of the squared error, over the second half of the steps, of which a ReLU at the end stops the gradient."""

RANGES = {"Sigmoid": (0.0, 1.0), "Hardsigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
"""What the outputs of these classes lie between."""


def logits_before_nll(evidence: Evidence) -> Iterator[Finding]:
    """The model's outputs are logits, and the loss takes them for the logarithms of probabilities.

    Its gradient is then the label whatever the answer is: each sample's has the norm 1, or their mean has, if classes
    have weights. Logarithms of probabilities are not above zero. A distance has such gradients, too, but is not
    negative; and a cosine is not beyond 1.
    """
    loss = judged(evidence)
    if loss is None or not len(loss.values) or loss.values.min() > LEAST_OF_COSINES:
        return
    for one, info, column, norms in trained_outputs(evidence):
        if not np.nanmax(evidence.column("max", column), initial=0) > EQUAL:
            continue
        size = samples_of(evidence, info, column)
        for classes, positions in classes_and_positions(info):
            scale = size * math.sqrt(positions)
            every = (of_norm_one(evidence, norms, scale * k, of=("mean",)) for k in parts(evidence))
            rows = next(filter(len, every), None)
            if classes > 2 and rows is not None and len(rows) >= LEAST_ROWS:
                yield _not_logarithms(evidence, one, rows, lowest=float(loss.values.min()))
                break


def _not_logarithms(evidence: Evidence, one: Series, rows: Rows, *, lowest: float) -> Finding:
    return finding(
        evidence,
        "logits-before-nll",
        "warning",
        at=one,
        rows=rows,
        numbers={"steps": len(rows), "lowest_loss": lowest},
        text="The loss takes the model's outputs for logarithms of probabilities, as `nll_loss` does, but some are "
        "above zero, so they are not. Its gradient is the same whatever the model answers, and it falls without end: "
        f"it came to {lowest:.3g}.",
        advice="Hand the outputs to `cross_entropy`, or through `log_softmax` first.",
    )


def targets_out_of_range(evidence: Evidence) -> Iterator[Finding]:
    """The squared error of outputs that an activation bounds is larger than any with targets within these bounds.

    Of a ReLU, which has one bound: most of the error is where it gives zero, and cannot learn otherwise.
    """
    for output in trained_outputs(evidence):
        one, info, column, norms = output
        errors = squared_errors(evidence, column, norms)
        if errors is None:
            if (rows := _of_labels_beyond_one(evidence, output)) is not None:
                yield _no_probabilities(evidence, one, rows)
            continue
        bounded = _bounded_by(evidence, column)
        if bounded is not None:
            name, (low, high) = bounded
            beyond = _share_beyond(evidence, low, high)
            if beyond >= OFTEN or (ends_with(evidence, column, name) and _are_too_large(errors, high - low)):
                error = float(np.sqrt(np.median(errors.values)))
                yield _out_of_range(evidence, one, errors.rows, name=name, error=error)
        elif sample_size(info) == 1 or _share_beyond(evidence, 0.0, math.inf) >= OFTEN:
            stopped = _stopped_by_relu(evidence, column, norms)
            late = errors.rows[len(errors.rows) // 2 :]
            if stopped is not None and np.median(stopped[late]) > STOPPED:
                yield _below_zero(evidence, one, errors.rows, stopped=float(np.median(stopped[late])))


def _of_labels_beyond_one(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The rows with gradients, if they are those of a binary cross entropy with targets beyond 0 and 1; else None.

    The gradient of a logit is its sigmoid less the target, so of nearly equal logits at first a half from each target.
    It is at most 1 if these lie between 0 and 1. If they do not, it is still bounded, and the loss falls below zero.
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


def _no_probabilities(evidence: Evidence, one: Series, rows: Rows) -> Finding:
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=one,
        rows=rows,
        numbers={"low": 0.0, "high": 1.0},
        text="The gradients are those of a binary cross entropy with targets that are not between 0 and 1, such as "
        "labels of -1 and 1, or of 1 and 2: the loss falls below zero, and without end.",
        advice="Give it labels of 0 and 1: `(y + 1) / 2`, or `y - 1`. For labels of -1 and 1, there is "
        "`F.soft_margin_loss`.",
    )


def _are_too_large(errors: SquaredErrors, width: float) -> bool:
    return bool((errors.values > width**2).mean() >= OFTEN)


def _share_beyond(evidence: Evidence, low: float, high: float) -> float:
    """The share of the steps, of those at which targets were looked at, with some far out of this range."""
    known = [one.targets for one in evidence.training if one is not None and one.targets is not None]
    margin = MARGIN * (high - low) if math.isfinite(high) else MARGIN
    beyond = [least < low - margin or most > high + margin for least, most in known]
    return sum(beyond) / len(beyond) if len(beyond) >= LEAST_ROWS else 0.0


def _stopped_by_relu(evidence: Evidence, column: int, norms: int) -> Floats | None:
    """The share of the squared gradient at the model's output that a ReLU behind the last layer stops.

    None if the output is not that of a ReLU, a module or a function. A squared error is spread over the samples as its
    squared gradient is.
    """
    low, zeros = (evidence.column(name, column) for name in ("min", "zeros"))
    if np.nanmin(low, initial=0) < 0 or not np.nanmin(zeros, initial=np.inf) > 0:
        return None
    name = last_module(evidence)
    is_module = evidence.places.class_of(name) == "ReLU"
    before = evidence.find(name, 0, *(("input", "input[0]") if is_module else ("output", "output")), "grad_norm")
    if before is None:
        return None
    after, passed = (evidence.column("l2_norm", one).astype(np.float64) ** 2 for one in (norms, before))
    with np.errstate(all="ignore"):
        found: Floats = 1 - passed / after
    return found


def _below_zero(evidence: Evidence, one: Series, rows: Rows, *, stopped: float) -> Finding:
    last = last_module(evidence)
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=last if evidence.places.class_of(last) == "ReLU" else one,
        rows=rows,
        numbers={"stopped": stopped, "low": 0.0},
        text=f"The model ends with a ReLU, and {stopped:.0%} of the squared error is where the ReLU gives zero and "
        "lets no gradient through. Targets below zero are out of its range.",
        advice="Leave out the ReLU at the end of the network. If no target is negative, use `softplus` instead.",
    )


class SquaredErrors(NamedTuple):
    """The logged loss, at the rows at which it is known."""

    rows: Rows
    values: Floats


def squared_errors(evidence: Evidence, column: int, norms: int, *, sign: int = 1) -> SquaredErrors | None:
    """The logged loss, if it is at all steps the mean squared error that the gradients at an output tell; else None.

    With a `sign` of -1, if it is the negative of that error.
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
    """The last module, if it bounds the model's output, or a function that does, as the outputs tell; and the bounds.

    Outputs of a function stay within its bounds at all steps, and come near one of them in the last quarter.
    """
    module = next(((name, RANGES[name]) for name in RANGES if ends_with(evidence, column, name)), None)
    if module is not None:
        return module
    least, most = (evidence.column(name, column).astype(np.float64) for name in ("min", "max"))
    known = np.flatnonzero(np.isfinite(least) & np.isfinite(most))
    late = known[3 * len(known) // 4 :]
    for name in ("Sigmoid", "Tanh"):
        low, high = RANGES[name]
        near = (1 - NEAR_BOUND) * (high - low)
        is_within = len(known) >= LEAST_OF_FUNCTION and (least[known] >= low).all() and (most[known] <= high).all()
        if name == "Sigmoid" and (least[known] == 0).any():
            continue  # as of a ReLU
        if is_within and ((least[late] < low + near).all() or (most[late] > high - near).all()):
            return name, RANGES[name]
    return None


def _out_of_range(evidence: Evidence, one: Series, rows: Rows, *, name: str, error: float) -> Finding:
    low, high = RANGES[name]
    return finding(
        evidence,
        "targets-out-of-range",
        "warning",
        at=one,
        rows=rows,
        numbers={"root_mean_squared_error": error, "low": low, "high": high},
        text=f"A {name} keeps the model's outputs between {low:g} and {high:g}, and there are targets out of that "
        f"range: the root mean squared error is {error:.3g}.",
        advice=f"Leave out the {name} at the end of the network, or scale the targets to its range.",
    )
