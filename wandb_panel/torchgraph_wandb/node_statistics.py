"""The statistics that nodes can be coloured by, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import ModuleGraph, Node, Series
from torchgraph_wandb.heat_strips import HAS_INFINITY, HAS_NAN, STEP_STATISTICS, HeatStrips

NODE_STATISTICS = {
    "spread of output": ("output", "value", "std"),
    "size of output": ("output", "value", "l2_norm"),
    "zeros in output": ("output", "value", "zero_share"),
    "gradient of output": ("output", "grad_norm", "mean"),
    "gradient of parameters": ("param", "grad", "l2_norm"),
    "NaN and infinity": ("", "", "nonfinite"),
}
"""The choices: role and kind of the series (empty: any), and the statistic. Of several series, the largest counts."""

Floats = npt.NDArray[np.float64]

TYPICAL_PERCENTILES = (2, 98)
"""Colours span the values between these, so that a few steps that exploded do not make all others look alike."""


@dataclass(frozen=True, slots=True)
class NodeStatistics:
    """The statistics of each owner of tensors (see `table.FIELDS`), `[steps, len(NODE_STATISTICS)]`.

    NaN where nothing was recorded, infinity where the statistic is not finite.
    """

    by_owner: Mapping[str, Floats]
    steps: int

    def of(self, graph: ModuleGraph, node: Node) -> Floats:
        """The statistics of a call, with its module's parameters; NaN for a node that is not a call."""
        missing = np.full((self.steps, len(NODE_STATISTICS)), np.nan)
        if node.call is None:
            return missing
        call = graph.calls[node.call]
        found = (self.by_owner.get(owner, missing) for owner in (f"{call.module}#{call.call}", f"{call.module}#*"))
        return np.fmax(*found)


def node_statistics(series: Sequence[Series], strips: HeatStrips) -> NodeStatistics:
    """The statistics of every owner, from the `strips` of `series`."""
    steps = strips.statistics.shape[1]
    found: dict[str, Floats] = {}
    for number, one in enumerate(series):
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        own = found.setdefault(owner, np.full((steps, len(NODE_STATISTICS)), np.nan))
        for column, (role, kind, statistic) in enumerate(NODE_STATISTICS.values()):
            if role in ("", one.role) and kind in ("", one.kind):
                own[:, column] = np.fmax(own[:, column], _values(strips, number, statistic))
    return NodeStatistics(found, steps)


def _values(strips: HeatStrips, series: int, statistic: str) -> Floats:
    statistics = strips.statistics[series].astype(np.float64)
    nonfinite = statistics[:, STEP_STATISTICS.index("nonfinite")]
    value = statistics[:, STEP_STATISTICS.index(statistic)]
    if statistic == "nonfinite":  # without the infinity of a mask
        return np.where(
            (strips.flags[series] & (HAS_NAN | HAS_INFINITY)) > 0, value, np.where(np.isnan(value), value, 0)
        )
    return np.where(np.isnan(value) & (nonfinite > 0), np.inf, value)


def typical_ranges(found: Sequence[Floats]) -> Floats:
    """The range of most values of each statistic of some nodes, `[len(NODE_STATISTICS), 2]`; NaN if none is above 0."""
    ranges = np.full((len(NODE_STATISTICS), 2), np.nan)
    if not found:
        return ranges
    together = np.concatenate(found)
    for column in range(len(NODE_STATISTICS)):
        values = together[:, column]
        positive = values[np.isfinite(values) & (values > 0)]
        if len(positive):
            ranges[column] = np.percentile(positive, TYPICAL_PERCENTILES)
    return ranges
