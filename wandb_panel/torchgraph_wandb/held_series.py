"""Leaves out the series of repeated calls that the chart does not hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import Frame, ModuleGraph, Series
from torchgraph_wandb.graph_layout import InsideLayouts, nodes_left_out


def held_series(
    series: Sequence[Series], graph: ModuleGraph, layouts: InsideLayouts, *, calls: Collection[tuple[str, int]]
) -> list[Series]:
    """The series that the chart shows, by their own ids. Those of calls that the graph does not have stay."""
    known = {(call.module, call.call) for call in graph.calls}
    left_out = known.difference(calls)
    attached = {
        (outer.module, outer.call, node.tensor.path)
        for node in map(graph.nodes.__getitem__, nodes_left_out(layouts))
        if node.kind == "attached" and node.tensor is not None and node.inside is not None
        for outer in [graph.calls[node.inside]]
    }
    return [
        one
        for one in series
        if (one.module, one.call) not in left_out
        and not (one.role == "attached" and (one.module, one.call, one.path) in attached)
    ]


def numbered_from_0(series: Sequence[Series]) -> list[Series]:
    """The series with their places as ids."""
    return [replace(one, id=number) for number, one in enumerate(series)]


def narrowed(frame: Frame, numbers: npt.NDArray[np.int64]) -> Frame:
    """A frame without the series whose number is -1; the others by these numbers. `numbers` is by id."""
    own = numbers[frame.series]
    held = own >= 0
    rows, places = np.unique(frame.rows[held].astype(np.int64), return_inverse=True)
    return replace(
        frame,
        series=own[held].astype(np.uint32),
        rows=places.astype(np.uint32),
        statistics=frame.statistics[rows],
        histograms=frame.histograms.of(rows),
        fingerprints=None if frame.fingerprints is None else frame.fingerprints[rows],
    )
