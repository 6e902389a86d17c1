"""Finds models and batch normalisations that are trained in eval mode, and batches too small for these.

The evidence is the mode of each module at each step, and the statistics of the normalisations' inputs and outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import finding, held, named
from torchgraph_explorer.schema import Call

HELD = 0.25
"""Least share of the recorded steps, up to the last one, that are in eval mode."""

MISFIT = 3.0
"""Least factor by which an output is larger or smaller than it would be if the running statistics fitted the data."""

SAME, MOST_SLACK = 1e-3, 0.2
"""Nothing is normalised if mean and standard deviation of input and output differ by less than the first, over the
standard deviation of the input. The difference may be larger by what the weight and bias do whose first updates have
moved them from 1 and 0, if that is much less than a normalisation would do, and than the second."""

MANY_POSITIONS = 256
"""Fewest places of a single sample, as those of an image, that give useful statistics."""

_NORMALISATIONS = frozenset({"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"})


def normalisation_in_eval(evidence: Evidence) -> Iterator[Finding]:
    """A batch normalisation uses its running statistics while it is trained, and these do not fit the data."""
    rows = rows_with(evidence, lambda _: True)
    for module in sorted(evidence.places.called, key=evidence.places.order):
        if evidence.places.class_of(module) not in _NORMALISATIONS:
            continue
        are_in_eval = np.array([_is_in_eval(evidence, row, module) for row in rows], np.bool_)
        kept = held(are_in_eval, evidence.steps[rows], share=HELD)
        if kept is None or not _is_trained(evidence, module):
            continue
        seen = [rows[at] for at in kept]
        why = _misfit(evidence, module, seen)
        was_training = kept[0] > 0 and not facts_at(evidence, seen[0]).is_training
        if was_training and why is None:
            why = "it was in training mode before, and then the whole model was put into eval mode"
        yield finding(
            evidence,
            "normalisation-in-eval",
            "info" if why is None else "warning",
            at=module,
            rows=seen,
            numbers={"steps": len(seen)},
            text=f"{named(module)} is in eval mode while it is trained: it normalises by its running statistics, which "
            f"do not change{', and ' + why if why else ''}.",
            advice="Call `model.train()` before training, and again after each evaluation. If the normalisation is "
            "frozen on purpose, set `requires_grad=False` for its parameters, too.",
        )


def _is_in_eval(evidence: Evidence, row: int, module: str) -> bool:
    """Whether a module was in eval mode at a row: it has the model's mode, or the other one."""
    facts = facts_at(evidence, row)
    return (module in facts.other_mode) is facts.is_training


def _is_trained(evidence: Evidence, module: str) -> bool:
    """Whether a normalisation has no parameters, or any that is trained: else it may be in eval mode on purpose."""
    params = evidence.places.modules[module].params
    return not params or any(info.requires_grad for info in params)


def _misfit(evidence: Evidence, module: str, rows: list[int]) -> str | None:
    """Words for how the running statistics do not fit the data; None if they do, or if it is not known."""
    source, result = evidence.find(module, 0, "input", "input[0]"), evidence.find(module, 0, "output", "output")
    if source is None or result is None:
        return None
    means, spreads = evidence.matrix("mean"), evidence.matrix("std")
    first = rows[0]
    scale = abs(float(spreads[first, source])) or 1.0
    change = [abs(float(values[first, result] - values[first, source])) / scale for values in (means, spreads)]
    weight, bias = (evidence.find(module, None, "param", path) for path in ("weight", "bias"))
    center = abs(float(means[first, source]))
    slack = _moved(evidence, first, weight=weight, bias=bias) * (1 + (1 + center) / scale)
    if_normalised = max(center, abs(scale - 1)) / scale  # by how much its output would differ from its input
    if first == 0 and max(change) < SAME + slack and (slack < SAME or 2 * slack < min(if_normalised, MOST_SLACK)):
        return "these are still the initial ones, so nothing is normalised"
    expected = np.ones(len(rows))
    if weight is not None:
        expected = np.hypot(evidence.rms[rows, weight], 0 if bias is None else evidence.rms[rows, bias])
    ratio = float(np.nanmedian(evidence.rms[rows, result] / expected))
    if ratio > MISFIT or ratio < 1 / MISFIT:
        return f"its output is {ratio:.2g} times as large as it would be if they fitted the data"
    return None


def _moved(evidence: Evidence, row: int, *, weight: int | None, bias: int | None) -> float:
    """The largest difference of an element of the weight from 1, or of the bias from 0, their initial values."""
    initial = [(column, value) for column, value in ((weight, 1.0), (bias, 0.0)) if column is not None]
    off = [
        abs(float(evidence.column(name, column)[row]) - value) for column, value in initial for name in ("min", "max")
    ]
    return max(off, default=0.0)


def training_in_eval_mode(evidence: Evidence) -> Iterator[Finding]:
    """The whole model is in eval mode while it is trained, so that dropout does nothing."""
    rows = rows_with(evidence, lambda _: True)
    are_in_eval = np.array([not facts_at(evidence, row).is_training for row in rows], np.bool_)
    kept = held(are_in_eval, evidence.steps[rows], share=HELD)
    dropouts = [name for name in evidence.places.called if "Dropout" in evidence.places.class_of(name)]
    if kept is None or not dropouts:
        return
    since = f"From step {evidence.steps[rows[kept[0]]]} on," if kept[0] > 0 else "At all recorded steps,"
    yield finding(
        evidence,
        "training-in-eval-mode",
        "warning" if kept[0] > 0 else "info",
        at="",
        rows=[rows[at] for at in kept],
        numbers={"steps": len(kept), "dropouts": len(dropouts)},
        text=f"{since} the model is trained in eval mode: its {len(dropouts)} dropout layer"
        f"{'s do' if len(dropouts) > 1 else ' does'} nothing.",
        advice="Call `model.train()` before training, and again after each evaluation.",
    )


def batch_of_one(evidence: Evidence) -> Iterator[Finding]:
    """A batch normalisation in training mode gets single samples."""
    known = rows_with(evidence, lambda facts: facts.batch_size is not None)
    rows = [row for row in known if facts_at(evidence, row).batch_size == 1]
    if not rows or len(rows) < 0.5 * len(known):
        return
    alone = [
        (number, call.module, seen)
        for number, call in enumerate(evidence.places.calls)
        if not call.call
        and evidence.places.class_of(call.module) in _NORMALISATIONS
        and _positions(call)
        and (seen := [row for row in rows if not _is_in_eval(evidence, row, call.module)])
    ]
    small = [
        (number, module, seen)
        for number, module, seen in alone
        if _positions(evidence.places.calls[number]) < MANY_POSITIONS
    ]
    for number, module, seen in (small or alone)[:1]:
        yield finding(
            evidence,
            "batch-of-one",
            "warning" if small else "info",
            at=module,
            rows=seen,
            numbers={"steps": len(seen), "call": number},
            text=f"{named(module)} normalises each sample by itself, because the batch has one sample. Its running "
            "statistics will not fit the data that it is evaluated with.",
            advice="Use larger batches, or GroupNorm or LayerNorm, which do not depend on the batch. Accumulating "
            "gradients does not help.",
        )


def _positions(call: Call) -> int:
    """Over how many places of its only sample a normalisation goes for each channel; 0 if there are several samples."""
    shape = call.inputs[0].shape if call.inputs else ()
    return math.prod(size or 1 for size in shape[2:]) if shape[:1] == (1,) else 0
