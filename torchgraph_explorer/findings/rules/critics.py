"""Finds critics whose values broadcast against the returns of a whole batch.

The evidence is the gradients at the values, which draw all of them to one number, and the logged loss of the values.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import losses_of_values
from torchgraph_explorer.findings.rules.centred import Centred, centred, varies
from torchgraph_explorer.findings.rules.outputs import TrainedOutput, sample_size, trained_outputs
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.record.scalars.index import Scalar

LEAST_STEPS = 3
"""Fewest steps at which the gradients at the values and their loss are known."""

LEAST_SAMPLES = 8
"""Fewest values in a batch."""

FACTORS = (2.0, 1.0, 0.5)
"""Twice the factors that the squared error of the values usually has in the whole loss."""

LEAST_OF_ERROR = 0.49
"""Least loss of the values over the mean squared distance from the number that they are drawn to: it may be half of an
error, which the variance of the returns makes larger than that distance."""

DIFFERS = 0.05
"""Least range of the loss of the values over that distance, as a share of it. If all samples of a batch really have one
return, as those of one episode may, the loss is a fixed multiple of the distance."""


def critic_broadcasts(evidence: Evidence) -> Iterator[Finding]:
    """All values of a batch are drawn to one number, while their logged loss shows that the returns differ."""
    losses = losses_of_values(evidence.scalars)
    for output in trained_outputs(evidence) if losses else ():
        if sample_size(output.info) == 1:
            found = _drawn_to_one(evidence, output)
            if found is not None and any(_is_larger(evidence, found, loss) for loss in losses):
                yield _report(evidence, output, found)
                return


def _drawn_to_one(evidence: Evidence, output: TrainedOutput) -> Centred | None:
    """What all values of a batch are drawn to, if that differs from batch to batch; else None."""
    for factor in FACTORS:
        found = centred(evidence, output.column, output.norms, weight=factor)
        if found is not None:
            samples = evidence.column("count", output.column)[found.rows]
            return found if varies(found) and samples.min() >= LEAST_SAMPLES else None
    return None


def _is_larger(evidence: Evidence, found: Centred, loss: Scalar) -> bool:
    """Whether the loss of the values has a part besides their distance, which the variance of the returns is."""
    _, rows, values = np.intersect1d(evidence.steps[found.rows], loss.steps, return_indices=True)
    if len(rows) < LEAST_STEPS:
        return False
    ratios = loss.values[values] / found.distance[rows]
    return bool(ratios.min() > LEAST_OF_ERROR and np.ptp(ratios) > DIFFERS * np.median(ratios))


def _report(evidence: Evidence, output: TrainedOutput, found: Centred) -> Finding:
    samples = float(np.median(evidence.column("count", output.column)[found.rows]))
    return finding(
        evidence,
        "targets-broadcast",
        "warning",
        at=output.series,
        rows=found.rows,
        numbers={"samples": samples, "centre": float(found.centre[-1]), "steps": len(found.rows)},
        text=f"The loss pulls all {samples:.0f} values of a batch to one number, the mean of the returns "
        f"({found.centre[-1]:.3g} at the last step): values `[n, 1]` and returns `[n]`, or the other way round, "
        "broadcast to `[n, n]`. So the critic learns nothing of single states, and the advantages are little more than "
        "the returns.",
        advice="Give both the same shape before the loss of the values: `values.squeeze(-1)`. torch warns of it when "
        "that loss is first computed with `mse_loss`.",
    )
