"""Tells whether the factor of a `GradScaler` is still in the gradients that an optimizer gets.

The evidence is the gradients at the model's output in the first step, which are a large power of two times those of the
cross entropy that was logged.
"""

from __future__ import annotations

import math

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.cross_entropies import AS_EXPECTED
from torchgraph_explorer.findings.rules.facts import rows_with
from torchgraph_explorer.findings.rules.loss import judged
from torchgraph_explorer.findings.rules.outputs import classes_and_positions, samples_of, trained_outputs

LEAST = 4096.0
"""Least factor: a scaler begins at 65536, and halves it where gradients are not finite."""


def factor_in_gradients(evidence: Evidence) -> float | None:
    """The power of two, `LEAST` or more, that the gradients of a cross entropy were multiplied by; None without one.

    Where a scaler steps the optimizers, it takes its factor out, and that is known.
    """
    loss = judged(evidence)
    is_known = bool(rows_with(evidence, lambda facts: facts.loss_scale is not None))
    is_scaled = is_known or np.isfinite(evidence.scales).any()
    if loss is None or is_scaled or not len(loss.values) or not len(evidence) or loss.steps[0] != evidence.steps[0]:
        return None
    for _, info, column, norms in trained_outputs(evidence):
        length = float((evidence.column("mean", norms) * samples_of(evidence, info, column))[0])
        for classes, positions in classes_and_positions(info):
            factor = length * math.sqrt(positions) / math.sqrt(1 - 1 / classes) if classes > 2 else math.nan
            if not LEAST * (1 - AS_EXPECTED) < factor < math.inf:
                continue
            power = 2.0 ** round(math.log2(factor))
            begins = abs(float(loss.values[0]) / math.log(classes) - 1) < AS_EXPECTED
            if begins and abs(factor / power - 1) < AS_EXPECTED:
                return power
    return None
