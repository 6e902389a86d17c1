"""What a chart is made from, and how its parts name calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.schema import Frame, ModuleGraph, Series, Session
from torchgraph_wandb.graph_layout import InsideLayouts
from torchgraph_wandb.nonfinite_marks import NonfiniteMarks
from torchgraph_wandb.xray_data import XrayData

NONFINITE, NONFINITE_BEFORE = 1, 2
"""Flags of a shown step: it has NaN or infinity; a step that is not shown, after the previous shown one, has."""


@dataclass(frozen=True, slots=True)
class ChartData:
    """What a chart is made from, at one moment.

    Attributes:
        session: The model's session.
        graph: The latest graph.
        layouts: The layout of each inside of that graph that the chart holds.
        calls: Numbers of the calls that it holds, by module and count, in the order of execution.
        series: The series of the calls that it holds; the id of each is its index here.
        frames: The steps to show. Their `series` are ids of the series above.
        marks: Which nodes of the whole graph have NaN or infinity at each of `frames`.
        logged: How many steps were recorded.
        notes: What a reader has to know about the record, in sentences.
        findings: What is wrong, root causes first.
        nonfinite: Where the record has NaN or infinity; None if it has none.
        xray: The x-ray of all recorded steps; None without any.
    """

    session: Session
    graph: ModuleGraph
    layouts: InsideLayouts
    calls: Mapping[tuple[str, int], int]
    series: Sequence[Series]
    frames: Sequence[Frame]
    marks: NonfiniteMarks
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


def place_of(data: ChartData, module: str | None, call: int | None) -> tuple[str, str]:
    """The keys of a call, and of the inside that it is in; empty if the chart has no such call.

    `call` None is the first one that the chart has.
    """
    found = (number for (of, count), number in data.calls.items() if of == module and call in (None, count))
    number = next(found, None)
    if number is None:
        return "", ""
    return call_key(data.graph, number), call_key(data.graph, data.graph.calls[number].parent)
