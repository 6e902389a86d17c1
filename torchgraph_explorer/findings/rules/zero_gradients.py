"""Which matrices have a gradient of zeros at each recorded step: their modules run, and make no difference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.findings.rules.rule import Rows
from torchgraph_explorer.schema import Series

LEAST_STEPS = 4
"""Fewest recorded steps at which all gradients are zero."""

GROWS = 1e-4
"""Least growth of a matrix from one recorded step to the next, over its size, that is no rounding."""


def matrices_by_zero_gradient(evidence: Evidence, *, least: int) -> Iterator[tuple[Series, bool]]:
    """Each matrix that can be trained and has gradients at `least` steps or more, and whether it gets zeros alone.

    Its recorded gradients are zero then, and nothing shows that others came between the recorded steps.
    """
    for column in evidence.of_kind("grad", "param"):
        series = evidence.series[column]
        info, norms = evidence.places.tensor(series), evidence.column("l2_norm", column)
        norms = norms[np.isfinite(norms)]
        if dimensions(info) > 1 and info is not None and info.requires_grad and len(norms) >= least:
            yield series, not norms.any() and not _grows(evidence, series)


def _grows(evidence: Evidence, gradient: Series) -> bool:
    """Whether the matrix of a `gradient` becomes larger between recorded steps, in any of three measures.

    Without a gradient, only weight decay moves it, which makes each element smaller. A loss that counts in every tenth
    step, or from some step on, may have no gradient at each recorded one.
    """
    column = evidence.find(gradient.module, gradient.call, gradient.role, gradient.path)
    if column is None or (evidence.column("count", column) != evidence.column("sampled", column)).any():
        return False
    sizes = np.stack(
        [evidence.column("l2_norm", column), evidence.column("absolute_mean", column), evidence.peaks[:, column]]
    )
    sizes = sizes[:, np.isfinite(sizes).all(axis=0)]
    return bool((sizes[:, 1:] > (1 + GROWS) * sizes[:, :-1]).any())


def rows_of_zeros(evidence: Evidence) -> Rows | None:
    """All rows, if gradients of zeros come to the model's outputs and all its parameters there; None if others do."""
    if len(evidence) < LEAST_STEPS:
        return None
    of_parameters = evidence.matrix("l2_norm")[:, evidence.of_kind("grad", "param")]
    at_root = [one for one in evidence.of_kind("grad_norm", "output") if not evidence.series[one].module]
    of_outputs = evidence.matrix("max")[:, at_root]
    if not of_parameters.size or not at_root or np.isnan(of_outputs).all(axis=1).any():
        return None
    is_zero = not np.nan_to_num(of_parameters, nan=0.0).any() and not np.nan_to_num(of_outputs, nan=0.0).any()
    return np.arange(len(evidence)) if is_zero else None
