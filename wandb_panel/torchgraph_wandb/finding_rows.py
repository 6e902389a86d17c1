"""The table's part of findings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from torchgraph_explorer.finding import Finding
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
)
"""Fields of a line of the part `findings`, which is one finding. Consequences stand behind their root cause.

- `level`: 0 of a root cause, 1 of what follows from another. `place`, `when`: in words. `step`: the first one.
- `column`: of the x-ray. `lines`: a list, the lines of its tooltip.
- `module`: id of its row in the x-ray; empty for the whole run. `key`, `inside`: see `xray_rows.ROW_FIELDS`.
"""

MOST_FINDINGS = 200

LONGEST_TEXT = 600


def finding_lines(data: ChartData) -> Iterator[tuple[str, ...]]:
    """The lines of the part `findings`."""
    for one in data.findings[:MOST_FINDINGS]:
        yield (
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


def _column(data: ChartData, one: Finding) -> int:
    return 0 if data.xray is None else max(0, int(np.searchsorted(data.xray.first, one.step, side="right")) - 1)


def _words(one: Finding) -> list[str]:
    advice = f"Try: {one.advice}" if one.advice else ""
    follows = f"It follows from {one.causes[0].kind}." if one.causes else ""
    head = f"{one.severity}: {kind_and_place([one])}, {when(one)}"
    texts = (one.text[:LONGEST_TEXT], follows, advice[:LONGEST_TEXT])
    return [head, *(line for text in texts for line in textwrap.wrap(text, LINE_WIDTH))]
