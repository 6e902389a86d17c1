"""What the nodes of a graph can be coloured by: statistics of their tensors, most of them at the latest step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchgraph_explorer.records import ModuleGraph, Node, Series
from torchgraph_wandb.strips import TOLD, Strips

LOOKS = {
    "spread of output": ("output", "value", "std"),
    "size of output": ("output", "value", "l2_norm"),
    "zeros in output": ("output", "value", "zero_share"),
    "gradient of output": ("output", "grad_norm", "mean"),
    "gradient of parameters": ("param", "grad", "l2_norm"),
    "NaN and infinity": ("", "", "nonfinite"),
}
"""What is offered: the role and kind of the series, and the statistic. Several series: the largest; empty: any."""

EVER = ("nonfinite",)
"""Statistics of which the largest of all steps is shown: a step with NaN is looked for, wherever it was."""


@dataclass(frozen=True, slots=True)
class Looks:
    """The statistics of every owner of tensors (see `table.call_key`), in the order of `LOOKS`."""

    by_owner: dict[str, list[float]]

    def of(self, graph: ModuleGraph, node: Node) -> list[float]:
        """Those of a call with its module's parameters; NaN where there is none, and for placeholders."""
        if node.call is None:
            return [math.nan] * len(LOOKS)
        call = graph.calls[node.call]
        owners = (f"{call.module}#{call.call}", f"{call.module}#*")
        rows = [self.by_owner[owner] for owner in owners if owner in self.by_owner]
        return [_largest([row[at] for row in rows]) for at in range(len(LOOKS))]


def looks(series: Sequence[Series], drawn: Strips) -> Looks:
    """The statistics at the last step that has the series; those in `EVER` over all steps."""
    found: dict[str, list[float]] = {}
    for number, one in enumerate(series):
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        row = found.setdefault(owner, [math.nan] * len(LOOKS))
        for at, (role, kind, statistic) in enumerate(LOOKS.values()):
            if role in ("", one.role) and kind in ("", one.kind):
                told = drawn.told[number, :, TOLD.index(statistic)].tolist()
                row[at] = _largest([row[at], (_largest if statistic in EVER else _latest)(told)])
    return Looks(found)


def _latest(values: Sequence[float]) -> float:
    return next((value for value in reversed(values) if not math.isnan(value)), math.nan)


def _largest(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return max(known) if known else math.nan
