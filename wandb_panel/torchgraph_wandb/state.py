"""All that a chart is made of, and how its parts name calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchgraph_explorer.schema import Frame, ModuleGraph, Series, Session
from torchgraph_wandb.drawing import Drawings

BAD, BAD_BEFORE = 1, 2
"""Flags of a step: it has NaN or infinity; steps that are not shown, since the one before, have."""


@dataclass(frozen=True, slots=True)
class State:
    """All that a chart is made of, at one moment.

    Attributes:
        session: Of the model.
        graph: The latest.
        drawings: Of that graph.
        series: With ids from 0 on, each its place here.
        frames: The steps to show; their `series` are ids of the above.
        logged: How many steps were recorded.
        notes: What is to be known of them, in sentences.
        trouble: Where it has NaN or infinity; None if it does not.
    """

    session: Session
    graph: ModuleGraph
    drawings: Drawings
    series: Sequence[Series]
    frames: Sequence[Frame]
    logged: int
    notes: tuple[str, ...] = ()
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Where the whole record has NaN or infinity.

    Attributes:
        frame: The place of the first step that has in `State.frames`.
        origin: The series that comes first there in the order of execution; None where that is not known.
        bad: A flag of `BAD` and `BAD_BEFORE` for each of `State.frames`.
        count: How many of the recorded steps have.
    """

    frame: int
    origin: Series | None
    bad: Sequence[int]
    count: int


def call_key(graph: ModuleGraph, call: int | None) -> str:
    """How a call is named: `layers.0.conv#1`; the top, which holds the calls of the model itself, is `top`."""
    if call is None:
        return "top"
    return f"{graph.calls[call].module}#{graph.calls[call].call}"
