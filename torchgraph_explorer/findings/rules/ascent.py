"""Finds updates that go up the gradient, which makes the loss larger, and not down.

The evidence is the optimizers' option for that, or the means of parameters before and after an update, and those of
their gradients.
"""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.loss import Loss, levels, rises

LEAST_PARAMETERS = 2
"""Fewest parameters that move along their gradients, all by the same multiple of these."""

ALIKE = 0.05
"""Largest relative difference of these multiples, which are the learning rate of SGD."""

CLEAR = 1e-3
"""Least mean of a gradient, over its mean magnitude, that is no rounding: the mean of some is zero."""

NEVER_FELL = 0.9
"""Least loss at its lowest, over that at first, of one that rises from the first update on."""


def goes_up(evidence: Evidence, loss: Loss) -> bool:
    """Whether updates move parameters along their gradients, and a positive loss rises from the first one on."""
    if not loss.values.min() > 0 or not rises(loss):
        return False
    base, best, _ = levels(loss)
    return best >= NEVER_FELL * base and (_is_asked_for(evidence) or _moves_along(evidence))


def _is_asked_for(evidence: Evidence) -> bool:
    """Whether all optimizers that make updates are told to go up the gradient."""
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    return bool(rows) and all(group.is_maximising for row in rows for group in facts_at(evidence, row).groups)


def _moves_along(evidence: Evidence) -> bool:
    """Whether the first update adds the same positive multiple of their gradients to all parameters."""
    if len(evidence) < 2 or evidence.steps[1] - evidence.steps[0] != 1:
        return False
    means, sizes, counts, sampled = (evidence.matrix(name) for name in ("mean", "absolute_mean", "count", "sampled"))
    found: list[float] = []
    for grad in evidence.of_kind("grad", "param"):
        one = evidence.series[grad]
        value = evidence.find(one.module, one.call, one.role, one.path)
        if value is None or (counts[:2, value] != sampled[:2, value]).any() or counts[0, grad] != sampled[0, grad]:
            continue
        if abs(means[0, grad]) > CLEAR * sizes[0, grad]:
            found.append(float(means[1, value] - means[0, value]) / float(means[0, grad]))
    factors = np.array(found)
    if len(factors) < LEAST_PARAMETERS or not np.isfinite(factors).all():
        return False
    usual = float(np.median(factors))
    return usual > 0 and bool((np.abs(factors / usual - 1) < ALIKE).all())
