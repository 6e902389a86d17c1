"""The labels of edges that are not drawn as lines: at a target the names of its sources, at a source how many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torchgraph_wandb.graph_layout import Box, InsideLayout

ROW = 15
"""Height of a label, in pixels. `web/src/graph/stubs.ts` places labels in the same way."""

ARROW, GAP = 16, 5
"""Pixels from an arriving label to its node, and from a node to its leaving label."""

LONGEST = 14
"""Characters of a label; the layout keeps room for so many. Longer names are shortened in the middle."""


class StubLabel(NamedTuple):
    """A label.

    Attributes:
        box: The number of the box beside which it stands.
        leads: The number of the box at the only other end; None if there are several.
        text: What is written.
        x: Where the text ends, if it arrives, or else begins.
        y: Of its middle.
        arrives: It stands at a target.
    """

    box: int
    leads: int | None
    text: str
    x: float
    y: float
    arrives: bool


def stub_labels(layout: InsideLayout, name: Callable[[int], str]) -> Iterator[StubLabel]:
    """The labels of one inside; `name` gives the name of a box by its number."""
    sources: dict[int, list[int]] = {}
    targets: dict[int, list[int]] = {}
    for edge in layout.edges:
        if edge.is_stub:
            sources.setdefault(edge.ends[1], []).append(edge.ends[0])
            targets.setdefault(edge.ends[0], []).append(edge.ends[1])
    for at, box in enumerate(layout.boxes):
        yield from _arriving(at, box, sources.get(at, []), name=name)
        if at in targets:
            ends = targets[at]
            x = box.x + box.width / 2 + GAP
            yield StubLabel(at, _only(ends), f"→ {len(ends)}", x, box.y, arrives=False)


def _arriving(at: int, box: Box, sources: list[int], *, name: Callable[[int], str]) -> Iterator[StubLabel]:
    """One label for each source, as far as there is room; the last one then stands for all others."""
    room = max(1, int((box.height + 2) // ROW))
    alone = sources if len(sources) <= room else sources[: room - 1]
    others = sources[len(alone) :]
    rows = [[source] for source in alone] + ([others] if others else [])
    for row, some in enumerate(rows):
        text = _shortened(name(some[0])) if len(some) == 1 else f"{len(some)} more"
        y = box.y + (row - (len(rows) - 1) / 2) * ROW
        yield StubLabel(at, _only(some), text, box.x - box.width / 2 - ARROW, y, arrives=True)


def _only(ends: list[int]) -> int | None:
    return ends[0] if len(set(ends)) == 1 else None


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    head = LONGEST // 2
    return f"{text[:head]}…{text[head + 1 - LONGEST :]}"
