"""Finds frozen matrices of zeros, which give zero whatever they are given, such as adapters that are frozen as made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import Weight, dimensions
from torchgraph_explorer.findings.rules.facts import facts_at, rows_with
from torchgraph_explorer.findings.rules.rule import LEAST_ROWS, finding, listed

LAYERS = frozenset({"Linear", "Conv1d", "Conv2d", "Conv3d"})
"""Layers whose weight multiplies what they are given."""


def frozen_at_zero(evidence: Evidence) -> Iterator[Finding]:
    """Matrices that are frozen, and zero at all steps, in modules that run while others are trained.

    The weight of a linear layer or convolution counts. So does a parameter beside another frozen one of the same module
    that it can be multiplied with, as the second matrix of an adapter. A frozen state or token of zeros has none, and a
    mask of zeros may stand beside parameters of a module that are trained.
    """
    rows = rows_with(evidence, lambda facts: bool(facts.groups))
    is_trained = any(group.parameters for row in rows for group in facts_at(evidence, row).groups)
    if len(rows) < LEAST_ROWS or not is_trained:
        return
    zeros = [weight for weight in evidence.places.weights() if _is_frozen_zero(evidence, weight)]
    found = [weight for weight in zeros if _multiplies(evidence, weight)]
    if not found:
        return
    first = min(found, key=lambda weight: evidence.places.order(weight.module.name))
    yield finding(
        evidence,
        "frozen-by-accident",
        "warning",
        at=first.module.name,
        rows=rows,
        numbers={"matrices": len(found)},
        text=f"{listed([weight.name for weight in found])} {'is' if len(found) == 1 else 'are'} zero and frozen: what "
        "is multiplied with a matrix of zeros is zero whatever the model is given, and stays so.",
        advice="Set `requires_grad_(True)` for the adapters after everything else is frozen, and make the optimizer "
        "then. If they were trained before, check that their weights were loaded.",
    )


def _is_frozen_zero(evidence: Evidence, weight: Weight) -> bool:
    """Whether a matrix of a module that is called requires no gradient, and is zero at all steps."""
    if dimensions(weight.info) < 2 or weight.info.requires_grad or weight.module.name not in evidence.places.called:
        return False
    column = evidence.find(weight.module.name, None, "param", weight.info.path)
    peaks = evidence.peaks[:, column] if column is not None else np.zeros(0)
    known = peaks[np.isfinite(peaks)]
    return len(known) >= LEAST_ROWS and not known.any()


def _multiplies(evidence: Evidence, zero: Weight) -> bool:
    """Whether a matrix is the weight of a layer, or can be multiplied with another one of its module that is not."""
    if evidence.places.class_of(zero.module.name) in LAYERS:
        return zero.info.path == "weight"
    shape = zero.info.shape
    others = [one for one in evidence.places.weights() if one.module.name == zero.module.name and one != zero]
    if any(one.info.requires_grad for one in others):
        return False
    return len(shape) == 2 and any(
        len(one.info.shape) == 2
        and (one.info.shape[0] == shape[1] or one.info.shape[1] == shape[0])
        and one.info.shape != shape
        and not _is_frozen_zero(evidence, one)
        for one in others
    )
