"""Finds what grows without bound: gradients, activations, and values on their way to the limit of their dtype.

The evidence is norms and largest magnitudes, compared with those of the run's beginning.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.learning import is_lowest_below_zero, learns
from torchgraph_explorer.findings.rules.loop import is_adaptive
from torchgraph_explorer.findings.rules.participation import moved_and_stuck
from torchgraph_explorer.findings.rules.precision import underflow
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, named

GRADIENT_GROWTH = 100.0
"""Largest norm of the gradient that has not exploded, over the smallest norm of the run's beginning."""

AROUND, AT_FIRST = 5, 3
"""The norm of the gradient at a row of the beginning is the median of so many rows up to it; for the first rows, which
have fewer before them, of the first so many rows."""

GRADIENT_TO_WEIGHTS = 1.0
"""A gradient that has grown counts only if its norm exceeds so many times the norm of the weights at the beginning."""

GRADIENT_BEYOND_WEIGHTS = 1e3
"""A gradient whose norm exceeds so many times that of the weights is too large, whether it has grown or not. Not so if
the training learns, or if its optimizers divide by the usual size of gradients: the gradient of a loss that sums over
many samples may well be, with a small learning rate."""

ACTIVATION_GROWTH = 1e3
"""Largest root mean square of an output that has not exploded, over what is usual in the network at the beginning."""

LIMITS = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""The largest finite value of a dtype."""

FILLED = 0.999
"""Largest magnitude, over the limit of the dtype, that was computed. Beyond it are constants of `torch.finfo`, which
mask something."""

NEAR_LIMIT = 0.75
"""A magnitude is near the limit from the limit to the power of this on: so many of the octaves from 1 are used up."""

LEAST_TO_EXTRAPOLATE = 4
"""Fewest recorded steps whose largest magnitudes are extrapolated."""

CLIPPED = 0.99
"""Largest share of its norm that is left of a gradient that was clipped; the rest is rounding."""

_CLIP = "Lower the learning rate, warm it up, or clip the gradient's norm (`torch.nn.utils.clip_grad_norm_`)."

_NARROW = "Compute this module in float32 or bfloat16, normalise its input, or clip the gradient."
_WIDEST = (
    "Lower the learning rate, clip the gradient's norm, or normalise the input of this module. Another dtype does not "
    "help: bfloat16 and float32 have about the same limit."
)

Floats = npt.NDArray[np.float64]


def exploding_gradient(evidence: Evidence) -> Iterator[Finding]:
    """The norm of the whole gradient exceeds its own beginning, and the weights, by far."""
    stuck = moved_and_stuck(evidence)[1]  # nobody sets their gradients to zero, so these add up
    grads = [grad for grad in evidence.of_kind("grad", "param") if evidence.series[grad].module not in stuck]
    params = [param for param in evidence.of_kind("value", "param") if _has_gradient(evidence, param)]
    total, weights = _after_clipping(evidence, _norm(evidence, grads)), _norm(evidence, params)
    rows = np.flatnonzero(total > 0)
    if len(rows) < (1 if evidence.ends_bad else LEAST_ROWS) or is_lowest_below_zero(evidence):
        return
    early = rows[: max(LEAST_ROWS, len(rows) // 10)]
    base, held = float(_least_before(total, early)[early].min()), float(np.median(weights[early]))
    is_large = (total > GRADIENT_GROWTH * _least_before(total, early)) & (total > GRADIENT_TO_WEIGHTS * held)
    if learns(evidence):
        is_large &= bool(np.median(is_large[-max(LEAST_ROWS, len(rows) // 10) :]) > 0)  # what has passed did no harm
    elif evidence.ends_bad or not _is_divided_out(evidence):
        is_large |= total > GRADIENT_BEYOND_WEIGHTS * held
    found = np.flatnonzero(is_large)
    if held <= 0 or len(found) < (1 if evidence.ends_bad else max(LEAST_ROWS, len(rows) // 20)):
        return
    worst = int(found[np.argmax(total[found])])
    yield finding(
        evidence,
        "exploding-gradient",
        "error" if evidence.ends_bad else "warning",
        at=_owner(evidence, grads, (int(early[0]), worst)),
        rows=found,
        numbers={"norm": total[worst], "early_norm": base, "early_weight_norm": held, "steps": len(found)},
        text=f"The gradient's norm reaches {total[worst]:.3g}, {total[worst] / base:.3g} times that of the first steps "
        f"and {total[worst] / held:.3g} times the norm of the weights.",
        advice=_CLIP,
    )


def _after_clipping(evidence: Evidence, total: Floats) -> Floats:
    """What clipping leaves of the norms `total` of the gradient, `[steps]`.

    What it takes away does no harm, and whoever clips has done what would be advised. Where it is not known what was
    left, it is at most what is elsewhere.
    """
    known = rows_with(evidence, lambda facts: bool(facts.gradient_norm) and facts.clipped_norm is not None)
    norms = [(one.gradient_norm or 1.0, one.clipped_norm or 0.0) for one in (facts_at(evidence, row) for row in known)]
    shares = np.array([min(1.0, after / before) for before, after in norms])
    left = total.copy()
    left[known] *= shares
    clipped = np.array(known)[shares < CLIPPED] if known else np.array(known)
    if len(clipped):
        others = np.setdiff1d(np.arange(len(total)), known)
        left[others] = np.minimum(total[others], left[clipped].max())
    return left


def _is_divided_out(evidence: Evidence) -> bool:
    """Whether all optimizers divide by the usual size of gradients: then it does not matter how large these are.

    The gradient of a loss that sums over many elements is large from the first step on.
    """
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    return bool(rows) and all(is_adaptive(facts_at(evidence, row)) for row in rows)


def _least_before(total: Floats, early: Rows) -> Floats:
    """The smallest norm of the `early` rows up to each row, `[steps]`, which a gradient has to have grown from.

    Each norm counts as the median of some rows up to it: that of a batch of one sample may be next to nothing by
    chance.
    """
    least = np.full(len(total), np.inf)
    norms = total[early]
    least[early] = [np.median(norms[max(0, at + 1 - AROUND) : max(at + 1, AT_FIRST)]) for at in range(len(norms))]
    found: Floats = np.minimum.accumulate(least)
    return found


def _norm(evidence: Evidence, series: list[int]) -> Floats:
    """The l2 norm of all these series together, `[steps]`; those that a step lacks count as zero."""
    squares: Floats = np.nansum(evidence.matrix("l2_norm")[:, series].astype(np.float64) ** 2, axis=1)
    return np.sqrt(squares)


def _has_gradient(evidence: Evidence, param: int) -> bool:
    """Whether the gradient of a parameter was recorded at any step."""
    series = evidence.series[param]
    return evidence.find(series.module, series.call, series.role, series.path, "grad") is not None


def _owner(evidence: Evidence, grads: list[int], rows: tuple[int, int]) -> str | None:
    """The only module whose gradient has grown from the first to the second of `rows`; None if none or several have."""
    before, after = (evidence.matrix("l2_norm")[row, grads].astype(np.float64) for row in rows)
    with np.errstate(all="ignore"):
        grown = np.flatnonzero(after > GRADIENT_GROWTH * before)
    modules = {evidence.series[grads[at]].module for at in grown.tolist()}
    return modules.pop() if len(modules) == 1 else None


def exploding_activation(evidence: Evidence) -> Iterator[Finding]:
    """The outputs of a module exceed by far what was usual in the network at first, and stay so."""
    outputs = [column for column in evidence.of_kind("value", "output") if evidence.series[column].call == 0]
    outputs = [column for column in outputs if np.nanmax(evidence.column("count", column), initial=0) > 1]
    early = {column: _least(evidence.rms[evidence.early(column), column]) for column in outputs}
    usual = float(np.median([*early.values()])) if early else 0.0
    found = []
    for column in outputs:
        base = max(early[column], usual)
        rows = np.flatnonzero(evidence.rms[:, column] > ACTIVATION_GROWTH * base) if base > 0 else np.zeros(0, int)
        if len(rows) >= (1 if evidence.ends_bad else LEAST_ROWS) and rows[-1] >= len(evidence) - 2:
            found.append((int(rows[0]), evidence.places.order(evidence.series[column].module, 0), column, rows, base))
    if not found or learns(evidence):  # where targets are large, outputs grow to their scale
        return
    _, _, first, rows, base = min(found, key=lambda growing: growing[:2])  # by its first row, then by its place
    at, most = evidence.series[first], float(np.nanmax(evidence.rms[rows, first]))
    yield finding(
        evidence,
        "exploding-activation",
        "error" if evidence.ends_bad else "warning",
        at=at,
        rows=rows,
        numbers={"rms": most, "usual_rms": base, "modules": len(found)},
        text=f"The output of {named(at.module)} grows to a root mean square of {most:.3g}, {most / base:.3g} "
        f"times what was usual at the beginning.{_and_others(len(found) - 1)}",
        advice=f"{_CLIP} A normalisation layer, or weight decay, bounds activations.",
        band=Band("rms", high=ACTIVATION_GROWTH * base),
    )


def _and_others(count: int) -> str:
    """The sentence that so many other modules grow, too; empty without any."""
    return f" The outputs of {count} other module{'s' * (count > 1)} grow, too." if count else ""


def _least(values: Floats) -> float:
    """The smallest finite number of these; 0 if there is none."""
    known = values[np.isfinite(values)]
    return float(known.min()) if len(known) else 0.0


def overflow_ahead(evidence: Evidence) -> Iterator[Finding]:
    """The largest magnitude of an output soon exceeds the limit of its dtype, or gradients are too small for theirs.

    The largest magnitude is taken to grow on as it did over the second half of the steps, by the same factor each step.
    """
    yield from underflow(evidence)
    for column in evidence.of_kind("value", "output"):
        info = evidence.places.tensor(evidence.series[column])
        limit = LIMITS.get(info.dtype if info else "")
        peaks = evidence.peaks[:, column]
        if limit is None:
            continue
        rows = np.flatnonzero((peaks > 0) & (peaks < FILLED * limit) & ~evidence.has_bad[:, column])
        if len(rows) < LEAST_TO_EXTRAPOLATE or peaks[rows[-1]] < limit**NEAR_LIMIT:
            continue
        steps = evidence.steps[rows].astype(np.float64)
        half = rows[len(rows) // 2 :]
        octaves_a_step = np.polyfit(steps[len(rows) // 2 :], np.log2(peaks[half]), 1)[0]
        octaves_left = np.log2(limit / peaks[rows[-1]])
        if octaves_a_step > 0 and octaves_left / octaves_a_step < steps[-1] - steps[0]:
            at, steps_left = evidence.series[column], octaves_left / octaves_a_step
            yield finding(
                evidence,
                "overflow-ahead",
                "warning",
                at=at,
                rows=half,
                numbers={"largest": peaks[rows[-1]], "limit": limit, "steps_left": steps_left},
                text=f"The output of {named(at.module)} reaches {peaks[rows[-1]]:.3g} and grows; at this rate "
                f"it exceeds the largest {info.dtype if info else ''}, {limit:.3g}, in {steps_left:.0f} steps.",
                advice=_NARROW if limit < LIMITS["bfloat16"] else _WIDEST,
                band=Band("largest", high=limit),
            )
