"""Finds predictions that are compared with the targets of the whole batch, whatever the error is.

The evidence is the gradients of predictions of one number: they are in the order of the predictions at all steps. The
logged loss tells such gradients from those of one target for all samples.
"""

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
"""Fewest recorded steps at which gradients differ and do not lie on a line, or at which the loss is compared."""

LEAST_SPREAD = 0.01
"""Least spread of a batch's gradients, over the largest of them. Gradients that are all the same tell no order."""

LEAST_VARYING = 1e-4
"""Least standard deviation of the predictions over their root mean square. That of equal predictions is rounding."""

OFTEN = 0.5
"""Least share of the steps at which the loss is larger than a single target for each prediction allows."""

BENT = 1e-4
"""Least `NumberAnswers.bend` of gradients that do not lie on a line; less is rounding. The gradients of a squared error
from one target for all samples lie on a line."""


def broadcast_order(evidence: Evidence) -> Iterator[Finding]:
    """The gradients of a batch's predictions are in the order of the predictions at all steps, with a moving centre.

    Where each prediction is compared with all targets, the gradient rises with the prediction, whatever the error is.
    Where it is compared with its own target, the gradients are in the order of the errors. With a single target for all
    samples, as a discriminator has, either the prediction without gradient is the same at all steps, or the gradients
    lie on a line. If each batch has one target of its own, or all predictions are too large by the same factor, the
    loss is no larger than the gradients allow; without a logged loss, the severity is `info`.
    """
    rows = rows_with(evidence, lambda facts: facts.numbers is not None)
    known = [answers for row in rows if (answers := facts_at(evidence, row).numbers) is not None]
    if not all(answers.outputs == 1 and answers.drops == 0 for answers in known) or _are_constant(evidence):
        return
    if not _centre_moves(known) or _is_given_one_number(evidence):
        return
    is_bent = sum(answers.spread > LEAST_SPREAD and answers.bend > BENT for answers in known) >= LEAST_STEPS
    if not is_bent and not _has_variance_of_targets(evidence, rows):
        return
    has_several_targets = _has_several_targets(evidence, rows, known)
    if has_several_targets is False:
        return
    samples = known[-1].samples
    yield finding(
        evidence,
        "targets-broadcast",
        "warning" if has_several_targets else "info",
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


def _has_several_targets(evidence: Evidence, rows: list[int], known: list[NumberAnswers]) -> bool | None:
    """Whether the logged loss is larger than any loss with one target for each prediction; None if it is not known.

    A convex error that is zero at the prediction without gradient, the centre, is at most the gradient times the
    distance from the centre. For a batch, this is at most the norm of the gradients times the norm of the distances,
    by the inequality of Cauchy and Schwarz.
    """
    loss, outputs = the_loss(evidence.scalars), [*trained_outputs(evidence)]
    if loss is None or len(outputs) != 1:
        return None
    column, norms = outputs[0].column, outputs[0].norms
    found = [
        (row, (answers.below + answers.above) / 2)
        for row, answers in zip(rows, known, strict=True)
        if 0 < answers.rising < 1
    ]
    wanted, centres = np.array([row for row, _ in found], np.intp), np.array([centre for _, centre in found])
    _, at, values = np.intersect1d(evidence.steps[wanted], loss.steps, return_indices=True)
    if len(at) < LEAST_ROWS:
        return None
    mean, std, length = (
        evidence.column(name, series)[wanted[at]].astype(np.float64)
        for name, series in (("mean", column), ("std", column), ("l2_norm", norms))
    )
    size = samples_of(evidence, outputs[0].info, column)[wanted[at]]
    most = length * np.sqrt(size) * np.hypot(std, mean - centres[at])
    return bool((loss.values[values] > MORE * most).mean() >= OFTEN)


def _has_variance_of_targets(evidence: Evidence, rows: list[int]) -> bool:
    """Whether the logged loss is larger than the squares of the gradients explain, by a share that varies.

    The loss of a squared error is a multiple of these squares if there is one target for all samples. If there are
    several, the variance of the targets adds to it. Steps at which Huber's error bounds a gradient, to a magnitude of
    1, do not count.
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
"""How far from 1 the largest gradient of a step is, at most, where Huber's error bounds it."""

MORE, OF_SQUARES, VARIES = 1.02, 0.25, 0.1
"""Least ratio of the logged loss to the largest that a single target allows; the ratio, for one target, of a mean
squared error to the squares of its gradients; and the least range over the steps of the loss over these squares, as a
share of its median."""


def _are_constant(evidence: Evidence) -> bool:
    """Whether the predictions of a batch are all the same, but for rounding, so that they have no order."""
    columns = [output.column for output in trained_outputs(evidence)]
    with np.errstate(all="ignore"):
        spreads = [np.nanmedian(evidence.column("std", column) / evidence.rms[:, column]) for column in columns]
    return not any(spread > LEAST_VARYING for spread in spreads)


def _is_given_one_number(evidence: Evidence) -> bool:
    """Whether each sample is a single number: then predictions and errors may be in the same order, or the opposite."""
    columns = [column for column in evidence.of_kind("value", "input") if not evidence.series[column].module]
    infos = [evidence.places.tensor(evidence.series[column]) for column in columns]
    return bool(infos) and all(info is not None and sample_size(info) == 1 for info in infos)


def _centre_moves(known: list[NumberAnswers]) -> bool:
    """Whether no single prediction could be without gradient at all steps at which both signs of gradients occur."""
    between = [(answers.below, answers.above) for answers in known if 0 < answers.rising < 1]
    return len(between) > 1 and max(low for low, _ in between) > min(high for _, high in between)
