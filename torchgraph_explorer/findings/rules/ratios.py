"""Measures how large the recorded updates are, relative to the weights."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.places import dimensions
from torchgraph_explorer.schema import Series

LEAST_GAIN = 0.001
"""Least scale of what the initial weights let through of their input. Less than this is as good as zero: some networks
begin so on purpose, with 1e-10."""

USUAL_GAIN = 0.3
"""That scale of weights beside which updates may be too large, if their own is smaller: half of what torch's own
initial weights have, which are uniform up to one over the root of the inputs. Weights that begin smaller have to grow.
"""


def measured_ratios(evidence: Evidence, *, of_first_norm: bool = False) -> npt.NDArray[np.float64]:
    """The ratio of update to weight in the median of all weight matrices, `[steps]`; NaN where it is not known.

    Matrices that begin at zero, or nearly, as those of adapters, are left out: their first updates are as large as they
    are. So are embeddings, if there are other matrices: most of their rows may be of tokens that do not come. At steps
    at which some matrices change, those that do not change, as those of an expert without samples, are left out.

    Args:
        evidence: What was recorded.
        of_first_norm: Divide by the norm that a matrix had at first if it has less now, and by that of usual weights if
            it is smaller than these. Any update is large beside one that decays to nothing, has a single element that
            changes its sign, or begins small.
    """
    ratios = evidence.matrix("mean")[:, columns := measured_matrices(evidence)].astype(np.float64)
    if of_first_norm:
        ratios *= _shares_left(evidence, columns)
    ratios[~np.isfinite(ratios)] = np.nan
    ratios[(ratios == 0) & (ratios > 0).any(axis=1, keepdims=True)] = np.nan
    found = np.full(len(evidence), np.nan)
    is_known = np.isfinite(ratios).any(axis=1)
    found[is_known] = np.nanmedian(ratios[is_known], axis=1)
    return found


def measured_matrices(evidence: Evidence) -> list[int]:
    """The columns of the ratios that tell how far a network moves: of embeddings only if there are no others."""
    columns = [column for column in evidence.of_kind("update_ratio", "param") if has_ratio(evidence, column)]
    classes = {column: evidence.places.class_of(evidence.series[column].module) for column in columns}
    return [column for column in columns if "Embedding" not in classes[column]] or columns


def _shares_left(evidence: Evidence, columns: list[int]) -> npt.NDArray[np.float64]:
    """The norm of each parameter over that at first or of usual weights, and at most 1, `[steps, columns]`."""
    series = [evidence.series[column] for column in columns]
    values = [evidence.find(one.module, one.call, one.role, one.path) or 0 for one in series]
    norms = evidence.matrix("l2_norm")[:, values].astype(np.float64)
    first = [next(iter(lengths[np.isfinite(lengths)]), np.nan) for lengths in norms.T]
    usual = [USUAL_GAIN * math.sqrt(_outputs(evidence, one)) for one in series]
    shares: npt.NDArray[np.float64] = np.fmin(norms / np.fmax(first, usual), 1.0)
    return shares


def has_ratio(evidence: Evidence, column: int) -> bool:
    """Whether a series is of a parameter of two or more dimensions that does not begin at zero, or nearly.

    The norm over the root of the outputs is that by which weights scale their input.
    """
    series = evidence.series[column]
    value = evidence.find(series.module, series.call, series.role, series.path)
    info = evidence.places.tensor(series)
    if value is None or info is None or dimensions(info) < 2:
        return False
    norms = evidence.column("l2_norm", value)
    known = norms[np.isfinite(norms)]
    return len(known) > 0 and bool(known[0] > LEAST_GAIN * math.sqrt(_outputs(evidence, series)))


def _outputs(evidence: Evidence, series: Series) -> int:
    """How many outputs the weights of a `series` have, or one vector for each, as an embedding."""
    info = evidence.places.tensor(series)
    return (info.shape[0] if info is not None and info.shape else 0) or 1


def trained_matrices(evidence: Evidence) -> list[int]:
    """The columns of the weight matrices that get gradients and do not begin at zero, or nearly."""
    return [
        evidence.find(one.module, one.call, one.role, one.path) or 0
        for one in map(evidence.series.__getitem__, evidence.of_kind("grad", "param"))
        if has_ratio(evidence, one.id)
    ]
