"""Gradients that depend on nothing but the prediction: each one is compared with the targets of the whole batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import the_loss
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.outputs import sample_size, samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding
from torchgraph_explorer.schema import NumberAnswers

LEAST_STEPS = 3
"""Recorded steps at which gradients differ, and are not on a line."""

LEAST_SPREAD = 0.01
"""Gradients that are all the same are in order, too."""

LEAST_VARYING = 1e-4
"""Standard deviation of the predictions over their root mean square."""

OFTEN = 0.5
"""Share of the steps at which the loss has to be larger than one target for each prediction allows."""

BENT = 1e-4
"""Beyond rounding. A distance from one target for all has gradients on a line."""


def broadcast_order(evidence: Evidence) -> Iterator[Finding]:
    """The larger a prediction of a batch, the further it is drawn down, at all steps, and by a rule that changes.

    So it is if each prediction is compared with all targets, whatever the error: the sum of its distances from these
    rises with it. With one target for each, the order is that of the errors. With a single target for all, as of an
    adversary, the prediction that is not drawn at all is the same at all steps, or the gradients lie on a line. Each
    batch may have a target of its own, or all predictions be too large by the same factor: then the loss is no larger
    than what the gradients leave. Without a logged loss, nobody knows.
    """
    rows = rows_with(evidence, lambda one: one.numbers is not None)
    known = [found for row in rows if (found := facts_at(evidence, row).numbers) is not None]
    if not all(one.outputs == 1 and one.drops == 0 for one in known) or _are_constant(evidence):
        return
    if not _moves(known) or _is_given_one_number(evidence):
        return
    is_bent = sum(one.spread > LEAST_SPREAD and one.bend > BENT for one in known) >= LEAST_STEPS
    if not is_bent and not _has_more_to_lose(evidence, rows):
        return
    is_sure = _are_several(evidence, rows, known)
    if is_sure is False:
        return
    samples = known[-1].samples
    yield finding(
        evidence,
        "targets-broadcast",
        "warning" if is_sure else "info",
        at="",
        rows=rows,
        numbers={"samples": samples, "steps": len(rows)},
        text=f"At all {len(rows)} steps that were looked at, the gradients of the {samples} predictions of a batch are "
        "in the order of the predictions: each prediction is compared with the targets of all samples, as if "
        "predictions `[n, 1]` and targets `[n]` were broadcast to `[n, n]`. So the model can only learn what is right "
        "for all.",
        advice="Give predictions and targets the same shape before the loss: `model(x).squeeze(1)`, or "
        "`y.unsqueeze(1)`. torch warns of it when the loss is first computed.",
    )


def _are_several(evidence: Evidence, rows: list[int], known: list[NumberAnswers]) -> bool | None:
    """Whether the logged loss is larger than any with one target for each prediction; None if that is not known.

    An error that is convex, and nothing where it has no gradient, is at most the gradient times the distance from
    there. For all of a batch, that is at most the root of the sums of the squares of both.
    """
    loss, outputs = the_loss(evidence.scalars), [*trained_outputs(evidence)]
    if loss is None or len(outputs) != 1:
        return None
    column, norms = outputs[0].column, outputs[0].norms
    passed = [(row, (one.below + one.above) / 2) for row, one in zip(rows, known, strict=True) if 0 < one.rising < 1]
    wanted, centres = np.array([row for row, _ in passed], np.intp), np.array([centre for _, centre in passed])
    _, at, values = np.intersect1d(evidence.steps[wanted], loss.steps, return_indices=True)
    if len(at) < LEAST_ROWS:
        return None
    mean, std, length = (
        evidence.column(name, of)[wanted[at]].astype(np.float64)
        for name, of in (("mean", column), ("std", column), ("l2_norm", norms))
    )
    size = samples_of(evidence, outputs[0].info, column)[wanted[at]]
    most = length * np.sqrt(size) * np.hypot(std, mean - centres[at])
    return bool((loss.values[values] > MORE * most).mean() >= OFTEN)


def _has_more_to_lose(evidence: Evidence, rows: list[int]) -> bool:
    """Whether the logged loss is larger than the squared distances that the gradients tell, by a share that varies.

    With one target for all samples it is a multiple of these. With several, the variance of the targets adds to it.
    Steps at which Huber's error has bounded a gradient, which is then 1, do not count.
    """
    loss, outputs = the_loss(evidence.scalars), [*trained_outputs(evidence)]
    if loss is None or len(outputs) != 1:
        return False
    column, norms = outputs[0].column, outputs[0].norms
    size = samples_of(evidence, outputs[0].info, column)
    squares = size * evidence.column("l2_norm", norms).astype(np.float64) ** 2
    wanted = np.array(rows, np.intp)
    _, at, values = np.intersect1d(evidence.steps[wanted], loss.steps, return_indices=True)
    with np.errstate(all="ignore"):
        ratios = loss.values[values] / squares[wanted[at]]
        is_bounded = np.abs((evidence.column("max", norms) * size)[wanted[at]] - 1) < BOUNDED
    ratios = ratios[np.isfinite(ratios) & ~is_bounded]
    if len(ratios) < LEAST_STEPS or ratios.min() < MORE * OF_SQUARES:
        return False
    return bool(np.ptp(ratios) > VARIES * np.median(ratios))


BOUNDED = 0.03
"""How near the largest gradient of a step comes to 1 where an error bounds it."""

MORE, OF_SQUARES, VARIES = 1.02, 0.25, 0.1
"""The logged loss, at each step, over the least that a single target leaves of the squares, for a mean squared error;
and by how much that differs between steps."""


def _are_constant(evidence: Evidence) -> bool:
    """Whether the predictions of a batch are all the same, but for rounding: any order is one of these."""
    columns = [one.column for one in trained_outputs(evidence)]
    with np.errstate(all="ignore"):
        varies = [np.nanmedian(evidence.column("std", one) / evidence.rms[:, one]) > LEAST_VARYING for one in columns]
    return not any(varies)


def _is_given_one_number(evidence: Evidence) -> bool:
    """Whether each sample is one number: predictions and errors may well be in the same order then, or the opposite."""
    columns = [one for one in evidence.of_kind("value", "input") if not evidence.series[one].module]
    infos = [evidence.places.tensor(evidence.series[one]) for one in columns]
    return bool(infos) and all(info is not None and sample_size(info) == 1 for info in infos)


def _moves(known: list[NumberAnswers]) -> bool:
    """Whether the prediction that would get no gradient differs between steps: some are drawn up, others down."""
    between = [(one.below, one.above) for one in known if 0 < one.rising < 1]
    return len(between) > 1 and max(low for low, _ in between) > min(high for _, high in between)
