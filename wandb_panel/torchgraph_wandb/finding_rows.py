"""The table's part of findings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings.equal import span, together
from torchgraph_explorer.findings.report import kind_and_place, place, when
from torchgraph_wandb.chart_data import ChartData, place_of
from torchgraph_wandb.chart_text import LINE_WIDTH
from torchgraph_wandb.text_encoding import listed
from torchgraph_wandb.xray_rows import module_id

FINDING_FIELDS = (
    "kind",
    "severity",
    "level",
    "place",
    "when",
    "step",
    "column",
    "lines",
    "module",
    "key",
    "inside",
    "group",
    "part",
)
"""Fields of a line of the part `findings`, which is one finding. Consequences stand behind their root cause.

- `level`: 0 of a root cause, 1 of what follows from another. `place`, `when`: in words. `step`: the first one.
- `column`: of the x-ray. `lines`: a list, the lines of its tooltip.
- `module`: id of its row in the x-ray; empty for the whole run. `key`, `inside`: see `xray_rows.ROW_FIELDS`.
- `group`: number of findings that say the same; empty without others. `part`: `head` of the line before them, which
  stands for them in the list and is no finding; `member` of each; else empty.
"""

MOST_FINDINGS = 200

LONGEST_TEXT = 600


def finding_lines(data: ChartData) -> Iterator[tuple[str, ...]]:
    """The lines of the part `findings`."""
    for number, some in enumerate(together(data.findings[:MOST_FINDINGS])):
        if len(some) == 1:
            yield (*_line(data, some[0]), "", "")
            continue
        yield (*_head(data, some), str(number), "head")
        for one in some:
            yield (*_line(data, one), str(number), "member")


def _line(data: ChartData, one: Finding) -> tuple[str, ...]:
    return (
        one.kind,
        one.severity,
        str(int(bool(one.causes))),
        place(one),
        when(one),
        str(one.step),
        str(_column(data, one)),
        listed(_words(one)),
        "" if one.module is None else module_id(one.module),
        *place_of(data, one.module, one.call),
    )


def _head(data: ChartData, some: Sequence[Finding]) -> tuple[str, ...]:
    """The line that stands for findings that say the same, with the names of their modules as its tooltip."""
    first, names = some[0], [place(one) for one in some]
    kind = f"{first.kind}: {len(some)} modules"
    head = f"{first.severity}: {kind}, {when(first)}"
    lines = [head, *textwrap.wrap(", ".join(names)[:LONGEST_TEXT], LINE_WIDTH)]
    return (
        kind,
        first.severity,
        "0",
        span(names),
        when(first),
        "",
        str(_column(data, first)),
        listed(lines),
        "",
        "",
        "",
    )


def _column(data: ChartData, one: Finding) -> int:
    return 0 if data.xray is None else max(0, int(np.searchsorted(data.xray.first, one.step, side="right")) - 1)


def _words(one: Finding) -> list[str]:
    advice = f"Try: {one.advice}" if one.advice else ""
    follows = f"It follows from {one.causes[0].kind}." if one.causes else ""
    head = f"{one.severity}: {kind_and_place([one])}, {when(one)}"
    texts = (one.text[:LONGEST_TEXT], follows, advice[:LONGEST_TEXT])
    return [head, *(line for text in texts for line in textwrap.wrap(text, LINE_WIDTH))]
