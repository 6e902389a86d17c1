"""What the nodes of a graph can be coloured by, step by step: statistics of their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import ModuleGraph, Node, Series
from torchgraph_wandb.strips import HAS_INFINITY, HAS_NAN, TOLD, Strips

LOOKS = {
    "spread of output": ("output", "value", "std"),
    "size of output": ("output", "value", "l2_norm"),
    "zeros in output": ("output", "value", "zero_share"),
    "gradient of output": ("output", "grad_norm", "mean"),
    "gradient of parameters": ("param", "grad", "l2_norm"),
    "NaN and infinity": ("", "", "nonfinite"),
}
"""What is offered: the role and kind of the series, and the statistic. Several series: the largest; empty: any."""

Floats = npt.NDArray[np.float64]

USUAL = (2, 98)
"""Percentiles between which the colours differ: a few steps that exploded do not make all others alike."""


@dataclass(frozen=True, slots=True)
class InlineProbes:
    """The statistics of every owner of tensors (see `table.call_key`), `[steps, len(LOOKS)]`.

    NaN where there is none, and infinity where it is not finite.
    """

    by_owner: Mapping[str, Floats]
    steps: int

    def of(self, graph: ModuleGraph, node: Node) -> Floats:
        """Those of a call with its module's parameters; NaN for what is no call."""
        nothing = np.full((self.steps, len(LOOKS)), np.nan)
        if node.call is None:
            return nothing
        call = graph.calls[node.call]
        found = (self.by_owner.get(owner, nothing) for owner in (f"{call.module}#{call.call}", f"{call.module}#*"))
        return np.fmax(*found)


def looks(series: Sequence[Series], drawn: Strips) -> InlineProbes:
    """The statistics at each step."""
    steps = drawn.told.shape[1]
    found: dict[str, Floats] = {}
    for number, one in enumerate(series):
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        mine = found.setdefault(owner, np.full((steps, len(LOOKS)), np.nan))
        for at, (role, kind, statistic) in enumerate(LOOKS.values()):
            if role in ("", one.role) and kind in ("", one.kind):
                mine[:, at] = np.fmax(mine[:, at], _values(drawn, number, statistic))
    return InlineProbes(found, steps)


def _values(drawn: Strips, series: int, statistic: str) -> Floats:
    told = drawn.told[series].astype(np.float64)
    nonfinite, value = told[:, TOLD.index("nonfinite")], told[:, TOLD.index(statistic)]
    if statistic == "nonfinite":  # without what is infinite on purpose
        return np.where(
            (drawn.flags[series] & (HAS_NAN | HAS_INFINITY)) > 0, value, np.where(np.isnan(value), value, 0)
        )
    return np.where(np.isnan(value) & (nonfinite > 0), np.inf, value)


def usual_ranges(found: Sequence[Floats]) -> Floats:
    """Between which values most of the statistics of some nodes lie, `[len(LOOKS), 2]`; NaN without any above 0."""
    ranges = np.full((len(LOOKS), 2), np.nan)
    if not found:
        return ranges
    together = np.concatenate(found)
    for at in range(len(LOOKS)):
        known = together[:, at][np.isfinite(together[:, at]) & (together[:, at] > 0)]
        if len(known):
            ranges[at] = np.percentile(known, USUAL)
    return ranges
