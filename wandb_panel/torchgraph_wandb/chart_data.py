"""What a chart is made from, and how its parts name calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import Frame, ModuleGraph, Series, Session
from torchgraph_wandb.graph_layout import InsideLayouts
from torchgraph_wandb.xray_data import XrayData

NONFINITE, NONFINITE_BEFORE = 1, 2
"""Flags of a shown step: it has NaN or infinity; a step that is not shown, after the previous shown one, has."""


@dataclass(frozen=True, slots=True)
class ChartData:
    """What a chart is made from, at one moment.

    Attributes:
        session: The model's session.
        graph: The latest graph.
        layouts: The layout of each inside of that graph.
        series: All series; the id of each is its index here.
        frames: The steps to show. Their `series` are ids of the series above.
        logged: How many steps were recorded.
        notes: What a reader has to know about the record, in sentences.
        findings: What is wrong, root causes first.
        nonfinite: Where the record has NaN or infinity; None if it has none.
        xray: The x-ray of all recorded steps; None without any.
    """

    session: Session
    graph: ModuleGraph
    layouts: InsideLayouts
    series: Sequence[Series]
    frames: Sequence[Frame]
    logged: int
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    nonfinite: NonfiniteSummary | None = None
    xray: XrayData | None = None


@dataclass(frozen=True, slots=True)
class NonfiniteSummary:
    """Where the whole record has NaN or infinity.

    Attributes:
        frame: Index in `ChartData.frames` of the first step that has.
        origin: The series of that step that comes first in the order of execution; None if it is unknown.
        flags: `NONFINITE` and `NONFINITE_BEFORE` for each of `ChartData.frames`.
        count: How many of the recorded steps have.
    """

    frame: int
    origin: Series | None
    flags: Sequence[int]
    count: int


def call_key(graph: ModuleGraph, call: int | None) -> str:
    """The name of a call: `layers.0.conv#1`. The top, which holds the calls of the model itself, is `top`."""
    if call is None:
        return "top"
    return f"{graph.calls[call].module}#{graph.calls[call].call}"
