"""Finds a loss that counts one sample of each batch, as `loss[0]` of the losses of all samples does.

The evidence is the norms of the samples' gradients at the model's output, of which all but one are zero at each step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.losses import need_not_fall
from torchgraph_explorer.findings.rules.classes import RECURRENT, RECURRENT_CELLS
from torchgraph_explorer.findings.rules.outputs import trained_outputs
from torchgraph_explorer.findings.rules.rule import Rows, finding

LEAST_STEPS = 4
"""Fewest recorded steps at which a single sample has a gradient."""

LEAST_SAMPLES = 8
"""Fewest samples of the batches, in the median."""

LEAST_NUMBERS = 2
"""Fewest numbers of each sample. Of one number each, the largest, or a chosen one, may well be meant alone."""


def samples_left_out(evidence: Evidence) -> Iterator[Finding]:
    """At each step, one sample of the batch has a gradient at an output `[samples, numbers]`, and the others have none.

    A sequence that is fed as one sample has places in the first dimension, of which the loss may take the last one.
    What goes on from place to place shows it: gradients come back to other places, or there is a recurrence.
    """
    if need_not_fall(evidence) or _goes_through_places(evidence):
        return
    for series, info, _, norms in trained_outputs(evidence):
        if len(info.shape) != 2 or (info.shape[1] or 0) < LEAST_NUMBERS:
            continue
        rows = _rows_of_one(evidence, norms)
        if rows is None or not _are_apart(evidence, rows):
            continue
        samples = int(np.median(evidence.column("count", norms)[rows]))
        yield finding(
            evidence,
            "samples-left-out",
            "warning",
            at=series,
            rows=rows,
            numbers={"samples": samples, "steps": len(rows)},
            text=f"At all {len(rows)} recorded steps, only one of the {samples} samples of a batch has a gradient: the "
            "loss leaves out the others, and the model learns nothing from them.",
            advice="Take the mean of the losses of all samples. Look for `loss[0]` or `loss[-1]` of a loss with "
            "`reduction='none'`, and for a loop over the samples that only keeps the loss of the last one.",
        )


def _rows_of_one(evidence: Evidence, norms: int) -> Rows | None:
    """The rows with gradients, if a single sample has one at each of them; else None."""
    count, sampled, zeros = (evidence.column(name, norms) for name in ("count", "sampled", "zeros"))
    rows = np.flatnonzero(np.isfinite(count))
    is_long = len(rows) >= LEAST_STEPS and np.median(count[rows]) >= LEAST_SAMPLES
    is_whole = (count[rows] == sampled[rows]).all()
    return rows if is_long and is_whole and (zeros[rows] == count[rows] - 1).all() else None


def _goes_through_places(evidence: Evidence) -> bool:
    """Whether a recurrent layer or cell of torch is called."""
    return any(evidence.places.torch_class_of(name) in RECURRENT | RECURRENT_CELLS for name in evidence.places.called)


def _are_apart(evidence: Evidence, rows: Rows) -> bool:
    """Whether the other samples have no gradient at the outputs of modules before, either, up to a batch normalisation.

    A batch normalisation hands on gradients to all samples. Other modules do not, unless samples are places.
    """
    places = evidence.places
    last = max((places.order(name) for name in places.called if "BatchNorm" in places.class_of(name)), default=-1)
    samples = [facts.batch_size if facts is not None else None for facts in evidence.training]
    for column in evidence.of_kind("grad_norm", "output"):
        series = evidence.series[column]
        if not series.module or places.order(series.module) <= last:
            continue
        count, zeros = evidence.column("count", column)[rows], evidence.column("zeros", column)[rows]
        is_of_samples = np.isfinite(count) & (count == [samples[row] for row in rows.tolist()])
        if (zeros[is_of_samples] != count[is_of_samples] - 1).any():
            return False
    return True
