"""Finds losses that are computed from the mean of a batch's predictions, and not from each prediction.

The evidence is the gradients at outputs of one number for each sample: all samples of a batch have the same one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.outputs import TrainedOutput, samples_of, trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding

LEAST_STEPS = 8
"""Fewest recorded steps with gradients."""

EQUAL = 1e-4
"""Largest difference between the gradients of the samples of a batch, over the largest, which is rounding."""

VARIES = 0.01
"""Least change of the common gradient from one recorded step to the next, over the largest, in the median of the steps.
That of a loss which is linear in the outputs, as a critic's, is the same at each step."""

LEAST_TURNS = 2
"""Fewest steps with a gradient of either sign, of a loss whose gradients are equally large at all steps."""

DIFFER = 1e-3
"""Least standard deviation of the outputs of a batch, over their root mean square. Equal outputs with equal targets
have equal gradients."""


def loss_of_mean(evidence: Evidence) -> Iterator[Finding]:
    """All samples of each batch have the same gradient, and it changes from batch to batch.

    The gradient of an error depends on the sample. A loss that is linear in the outputs has the same gradient at all
    samples, and at all steps. If there are several passes in a step, the linear losses of two networks may take turns.
    """
    for output in trained_outputs(evidence):
        rows = _rows_with_one_gradient(evidence, output)
        if rows is not None:
            samples = float(np.median(samples_of(evidence, output.info, output.column)[rows]))
            yield finding(
                evidence,
                "loss-of-mean",
                "warning",
                at=output.series,
                rows=rows,
                numbers={"samples": samples, "steps": len(rows)},
                text=f"All {samples:.0f} predictions of a batch have the same gradient, and it is another one at each "
                "step: the loss only depends on their mean. So the model only learns the mean of the targets, not the "
                "target of a sample.",
                advice="Compute the error of each sample first, and take the mean of the errors: "
                "`(pred - target).abs().mean()`, not `(pred - target).mean().abs()`.",
            )
        return  # facts are of the first output


def _rows_with_one_gradient(evidence: Evidence, output: TrainedOutput) -> Rows | None:
    """The rows with gradients, if all samples have the same one, which changes; else None."""
    seen = rows_with(evidence, lambda facts: facts.numbers is not None)
    if len(seen) < LEAST_STEPS or any(size != 1 for size in output.info.shape[1:]):
        return None
    numbers = [one for row in seen if (one := facts_at(evidence, row).numbers) is not None]
    passes = [facts.passes for row in seen if (facts := evidence.facts[row]) is not None]
    if any(one.outputs != 1 or not one.spread < EQUAL for one in numbers) or passes != [1] * len(seen):
        return None
    rows = np.array(seen, np.intp)
    least, most = (evidence.column(name, output.norms)[rows].astype(np.float64) for name in ("min", "max"))
    if not (most - least <= EQUAL * most).all():
        return None  # where a gradient is taken for a derivative, as in a differential equation, another one follows
    deviations, means = (evidence.column(name, output.column)[rows] for name in ("std", "mean"))
    if not (deviations > DIFFER * np.hypot(means, deviations)).all():
        return None
    signs = np.array([1 if one.rising > 0 else -1 for one in numbers])
    pulls = signs * most
    varies = float(np.median(np.abs(np.diff(pulls)))) > VARIES * np.abs(pulls).max()
    turns = min(np.count_nonzero(signs == sign) for sign in (-1, 1))
    return rows if varies or turns >= LEAST_TURNS else None
