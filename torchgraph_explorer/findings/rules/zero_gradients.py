"""Which matrices have a gradient of zeros at each recorded step: their modules run, and make no difference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.schema import Series


def matrices_by_zero_gradient(evidence: Evidence, *, least: int) -> Iterator[tuple[Series, bool]]:
    """Each matrix that can be trained and has gradients at `least` steps or more, and whether all of them are zero."""
    for column in evidence.of_kind("grad", "param"):
        series = evidence.series[column]
        info, norms = evidence.places.tensor(series), evidence.column("l2_norm", column)
        norms = norms[np.isfinite(norms)]
        if dimensions(info) > 1 and info is not None and info.requires_grad and len(norms) >= least:
            yield series, not norms.any()
