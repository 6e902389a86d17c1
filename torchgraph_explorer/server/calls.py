"""`api/calls`: one histogram of a tensor over all calls of its module in a step. See http_api.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchgraph_explorer.errors import NotFoundError
from torchgraph_explorer.histogram import add, counts_below, drawn_range
from torchgraph_explorer.moments import COLUMN
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.schema import Series

Json = dict[str, Any]

BARS = 64


def calls_answer(model: ModelRecord, one: Series, step: int) -> Json:
    """The histograms of `one` and of the same tensor of all other calls at `step`, added up.

    Raises:
        NotFoundError: Nothing was recorded at the step, or the tensor was not.
        RecordError: As `ModelRecord.frame_at`.
    """
    frame = model.frame_at(step)
    alike = [each.id for each in model.find(one.module, role=one.role, path=one.path, kind=one.kind)]
    rows = frame.rows[np.isin(frame.series, alike)].astype(np.intp)
    if not len(rows):
        raise NotFoundError(f"{one.module}, {one.path} was not recorded at step {step}.")
    found = frame.statistics[rows]
    merged = add(frame.histograms.of(rows), np.array([len(rows)]), weights=np.ones(len(rows)))
    answer = {"step": frame.step, "calls": len(rows), "elements": int(merged.counts.sum())}
    low, high = np.fmin.reduce(found[:, COLUMN["min"]]), np.fmax.reduce(found[:, COLUMN["max"]])
    if not answer["elements"] or not np.isfinite([low, high]).all():  # a record may hold any numbers
        return {**answer, "low": 0.0, "high": 0.0, "counts": []}
    reject = model.session.reject_outlier_proportion
    first, last = (float(end) for end in drawn_range(merged, reject, low=low, high=high)[0])
    if not first < last:
        return {**answer, "low": first, "high": last, "counts": [answer["elements"]]}
    edges = np.linspace(first, last, BARS + 1)
    below = counts_below(merged, np.zeros(1, np.int64), edges[None], low=low, high=high)[0]
    if last >= high:
        below[-1] = answer["elements"]  # the largest ones may be a bucket of no width
    return {**answer, "low": first, "high": last, "counts": np.diff(below).round(2).tolist()}
