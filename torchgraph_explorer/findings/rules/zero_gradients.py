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


def matrices_by_zero_gradient(evidence: Evidence, *, least: int) -> Iterator[tuple[Series, bool]]:
    """Each matrix that can be trained and has gradients at `least` steps or more, and whether all of them are zero."""
    for column in evidence.of_kind("grad", "param"):
        series = evidence.series[column]
        info, norms = evidence.places.tensor(series), evidence.column("l2_norm", column)
        norms = norms[np.isfinite(norms)]
        if dimensions(info) > 1 and info is not None and info.requires_grad and len(norms) >= least:
            yield series, not norms.any()


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
