"""Whether a training learns: then what looks too large at first is only what its targets ask for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.heads import trained_outputs
from torchgraph_explorer.findings.rules.loss import LEAST_TO_DIVERGE, judged, rises

FALLEN = 0.8
"""The loss at the end over that at first, at most, of a training that learns."""

RISEN = 2.0
"""What no value of it is above, over the first one: after updates that are far too large, it falls again, too."""

FADED = 0.25
"""As `FALLEN`, of the gradient at the model's output, where no loss was logged."""


def learns(evidence: Evidence) -> bool:
    """Whether the loss has fallen and stays low; without a logged loss, the gradient at the model's outputs has."""
    if evidence.ends_bad:
        return False
    loss = judged(evidence)
    if loss is not None and len(loss.values) >= LEAST_TO_DIVERGE:
        return _falls_to(FALLEN, loss.values) and not rises(loss)
    lengths = [evidence.column("l2_norm", norms).astype(np.float64) for _, _, norms in trained_outputs(evidence)]
    return bool(lengths) and all(_falls_to(FADED, of[np.isfinite(of)]) for of in lengths)


def _falls_to(share: float, values: npt.NDArray[np.float64]) -> bool:
    """Whether positive numbers are at most such a share of the first ones at the end, and were never far above them."""
    if len(values) < LEAST_TO_DIVERGE or values[0] <= 0:
        return False
    tenth = max(3, len(values) // 10)
    has_fallen = np.median(values[-tenth:]) <= share * np.median(values[:3])
    return bool(has_fallen and values.max() <= RISEN * values[0])
