"""Finds targets in units that the outputs of a network would take very long to reach.

The evidence is a logged squared error that stays far larger than the square of the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.loss import is_flat, judged
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import finding
from torchgraph_explorer.findings.rules.targets import squared_errors

FAR = 30.0
"""Least root mean squared error over the root mean square of the outputs, at all steps of the second half."""

DEAD = 0.5
"""Least share of zeros in outputs that may be those of a dead ReLU, which are not reported."""


def targets_not_scaled(evidence: Evidence) -> Iterator[Finding]:
    """The squared error stays where it began, and is that of targets far larger than what the model gives."""
    loss = judged(evidence)
    if loss is None or not is_flat(loss):
        return
    for series, _, column, norms in trained_outputs(evidence):
        errors = squared_errors(evidence, column, norms)
        if errors is None:
            continue
        half = len(errors.rows) // 2
        late, error = errors.rows[half:], float(np.sqrt(errors.values[half:].min()))
        size = float(np.median(evidence.rms[late, column]))
        zeros = float(np.median(evidence.zero_shares[late, column]))
        if error > FAR * size > 0 and zeros < DEAD:
            yield finding(
                evidence,
                "targets-not-scaled",
                "warning",
                at=series,
                rows=errors.rows,
                numbers={"root_mean_squared_error": error, "rms": size},
                text=f"The outputs have a root mean square of {size:.3g}, and the targets are {error:.3g} or more away "
                "from them. At this learning rate, the network would take very long to get to their scale.",
                advice="Subtract the mean of the training targets and divide by their standard deviation; turn that "
                "back only to show or use predictions.",
            )
