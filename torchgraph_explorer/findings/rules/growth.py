"""What grows without bound: gradients, activations, and values on their way to the limit of their dtype."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.finding import Band, Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.learning import is_lowest_below_zero, learns
from torchgraph_explorer.findings.rules.participation import moved_and_stuck
from torchgraph_explorer.findings.rules.precision import underflow
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, Rows, finding, named

GRADIENT_GROWTH = 100.0
"""Times the gradient's norm at the beginning of the run."""

AROUND, AT_FIRST = 5, 3
"""Rows whose median is the norm at the last of them; and how many the first ones have together."""

GRADIENT_TO_WEIGHTS = 1.0
"""A gradient that has grown counts only if its norm exceeds so many times the norm of the weights at the beginning."""

GRADIENT_BEYOND_WEIGHTS = 1e3
"""A gradient that is so many times the weights' norm is too large, grown or not, unless the training learns: that of a
loss that is a sum over many samples, with a learning rate to match, may well be."""

ACTIVATION_GROWTH = 1e3
"""Times what is usual in the network at the beginning of the run."""

LIMITS = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
"""The largest finite value of a dtype."""

FILLED = 0.999
"""Share of a limit from which on a value was not computed, but is of `torch.finfo` and masks something."""

NEAR_LIMIT = 0.75
"""Share of the octaves up to the limit that are used up."""

_CLIP = "Lower the learning rate, warm it up, or clip the gradient's norm (`torch.nn.utils.clip_grad_norm_`)."

Floats = npt.NDArray[np.float64]


def exploding_gradient(evidence: Evidence) -> Iterator[Finding]:
    """The norm of the whole gradient exceeds its own beginning, and the weights, by far."""
    grads = evidence.of_kind("grad", "param")
    stuck = moved_and_stuck(evidence)[1]  # nobody sets their gradients to zero, so these add up
    grads = [one for one in grads if evidence.series[one].module not in stuck]
    total = _norm(evidence, grads)
    weights = _norm(evidence, [one for one in evidence.of_kind("value", "param") if _graded(evidence, one)])
    rows = np.flatnonzero(total > 0)
    if len(rows) < (1 if evidence.ends_bad else LEAST_ROWS) or is_lowest_below_zero(evidence):
        return
    early = rows[: max(LEAST_ROWS, len(rows) // 10)]
    base, held = float(_least_before(total, early)[early].min()), float(np.median(weights[early]))
    is_large = (total > GRADIENT_GROWTH * _least_before(total, early)) & (total > GRADIENT_TO_WEIGHTS * held)
    if learns(evidence):
        is_large &= bool(is_large[-max(LEAST_ROWS, len(rows) // 10) :].any())  # what has passed did no harm
    else:
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


def _least_before(total: Floats, early: Rows) -> Floats:
    """The smallest norm of the `early` rows, up to each row: one that only falls has not grown.

    Each is the median of some rows up to it: of a batch of one sample, it may be next to nothing by chance.
    """
    least = np.full(len(total), np.inf)
    some = total[early]
    least[early] = [np.median(some[max(0, at + 1 - AROUND) : max(at + 1, AT_FIRST)]) for at in range(len(some))]
    found: Floats = np.minimum.accumulate(least)
    return found


def _norm(evidence: Evidence, series: list[int]) -> Floats:
    squares: Floats = np.nansum(evidence.matrix("l2_norm")[:, series].astype(np.float64) ** 2, axis=1)
    return np.sqrt(squares)


def _graded(evidence: Evidence, weight: int) -> bool:
    one = evidence.series[weight]
    return evidence.find(one.module, one.call, one.role, one.path, "grad") is not None


def _owner(evidence: Evidence, grads: list[int], rows: tuple[int, int]) -> str | None:
    """The module whose gradient alone has grown from the first to the second of `rows`; None if several have."""
    before, after = (evidence.matrix("l2_norm")[row, grads].astype(np.float64) for row in rows)
    with np.errstate(all="ignore"):
        grown = np.flatnonzero(after > GRADIENT_GROWTH * before)
    modules = {evidence.series[grads[one]].module for one in grown.tolist()}
    return modules.pop() if len(modules) == 1 else None


def exploding_activation(evidence: Evidence) -> Iterator[Finding]:
    """The outputs of a module exceed by far what was usual in the network at first, and stay so."""
    outputs = [one for one in evidence.of_kind("value", "output") if evidence.series[one].call == 0]
    outputs = [one for one in outputs if np.nanmax(evidence.column("count", one), initial=0) > 1]
    early = {one: _least(evidence.rms[evidence.early(one), one]) for one in outputs}
    usual = float(np.median([*early.values()])) if early else 0.0
    found = []
    for one in outputs:
        base = max(early[one], usual)
        rows = np.flatnonzero(evidence.rms[:, one] > ACTIVATION_GROWTH * base) if base > 0 else np.zeros(0, int)
        if len(rows) >= (1 if evidence.ends_bad else LEAST_ROWS) and rows[-1] >= len(evidence) - 2:
            found.append((int(rows[0]), evidence.places.order(evidence.series[one].module, 0), one, rows, base))
    if not found or learns(evidence):  # of large targets, the outputs grow to their scale
        return
    _, _, one, rows, base = min(found, key=lambda each: each[:2])
    at, most = evidence.series[one], float(np.nanmax(evidence.rms[rows, one]))
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
    return f" The outputs of {count} other module{'s' * (count > 1)} grow, too." if count else ""


def _least(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.min()) if len(known) else 0.0


def overflow_ahead(evidence: Evidence) -> Iterator[Finding]:
    """The largest magnitude of an output grows so that it reaches the limit of its dtype before long, or vanishes."""
    yield from underflow(evidence)
    for one in evidence.of_kind("value", "output"):
        info = evidence.places.tensor(evidence.series[one])
        limit = LIMITS.get(info.dtype if info else "")
        peaks = evidence.peaks[:, one]
        if limit is None:
            continue
        rows = np.flatnonzero((peaks > 0) & (peaks < FILLED * limit) & ~evidence.has_bad[:, one])
        if len(rows) < 4 or peaks[rows[-1]] < limit**NEAR_LIMIT:
            continue
        steps = evidence.steps[rows].astype(np.float64)
        half = rows[len(rows) // 2 :]
        slope = np.polyfit(steps[len(rows) // 2 :], np.log2(peaks[half]), 1)[0]
        left = np.log2(limit / peaks[rows[-1]])
        if slope > 0 and left / slope < steps[-1] - steps[0]:
            at = evidence.series[one]
            yield finding(
                evidence,
                "overflow-ahead",
                "warning",
                at=at,
                rows=half,
                numbers={"largest": peaks[rows[-1]], "limit": limit, "steps_left": left / slope},
                text=f"The output of {named(at.module)} reaches {peaks[rows[-1]]:.3g} and grows; at this rate "
                f"it exceeds the largest {info.dtype if info else ''}, {limit:.3g}, in {left / slope:.0f} steps.",
                advice="Compute this module in float32 or bfloat16, normalise its input, or clip the gradient.",
                band=Band("largest", high=limit),
            )
