"""The table behind a chart: a few rows, whose cells are lines of text.

A row is a piece of one part. `FIELDS` names the fields of the lines of each part; the chart is built from `FIELDS` too,
so that both sides agree. Tabs separate fields, line feeds separate lines, `LIST_SEPARATOR` the items of a list.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from torchgraph_explorer.findings.report import as_roots
from torchgraph_explorer.schema import Series
from torchgraph_wandb import xray_rows
from torchgraph_wandb.chart_contents import ChartContents, contents_of
from torchgraph_wandb.chart_data import ChartData, call_key, place_of
from torchgraph_wandb.chart_text import LINE_WIDTH
from torchgraph_wandb.finding_rows import FINDING_FIELDS, finding_lines
from torchgraph_wandb.graph_rows import edge_lines, inside_lines, node_lines, stub_lines
from torchgraph_wandb.heat_strips import ROWS, STEP_STATISTICS
from torchgraph_wandb.tensor_rows import tensor_rows
from torchgraph_wandb.text_encoding import (
    CODE_WIDTH,
    FLOAT_WIDTH,
    LIST_SEPARATOR,
    encode_flags,
    listed,
)

COLUMNS = ("part", "packed")
"""The table's columns. Never `id`, `name`, `color` or `_defaultColorIndex`: W&B overwrites those with the run's."""

FIELDS = {
    "summary": ("model", "description", "steps", "home", "nonfinite", "first_nonfinite", "extent", "notes"),
    "insides": ("key", "parent", "title", "trail", "width", "height", "ranges", "marks"),
    "nodes": (
        "key",
        "inside",
        "owner",
        "only",
        "opens",
        "label",
        "detail",
        "shape",
        "family",
        "tooltip",
        "statistics",
        "marks",
        "box",
        "at",
        "turn",
    ),
    "edges": ("inside", "carries", "path", "ends"),
    "stubs": ("inside", "at", "leads", "text", "x", "y", "arrives"),
    "tensors": ("owner", "role", "path", "name", "shape", "values", "gradients"),
    "findings": FINDING_FIELDS,
    "xray": xray_rows.XRAY_FIELDS,
    "xray_rows": xray_rows.FIELDS,
}
"""The fields of a line of each part.

- `steps`: the numbers of the steps shown. `home`: key of the inside that is shown first. `notes`: lines on the record.
- `nonfinite`: one character per step, see `chart_data.NONFINITE`. `first_nonfinite`: where NaN or infinity occurs
  first, as a list: its index in `steps`, the step, the node's key, its inside's key, a sentence. Empty without any.
  `extent`: how many steps have NaN or infinity.
- `key`, `owner`: a call, as `call_key` names it, or `module#*` for the parameters of a module. `only`: of the owner's
  tensors, only the attached one with this path. `opens`: key of the inside that a click opens. `family`: index in
  `FAMILY_NAMES`.
- `trail`: titles and keys of the insides from the top down to this one, in turn. `box`: centre, width and height.
- `statistics`: step by step the statistics that a node can be coloured by, as codes, see `NODE_STATISTICS`. `ranges`:
  the range of each of them inside. `marks`: flags step by step, see `nonfinite_marks`; those of an inside are the flags
  of everything in it.
- `at`: number of the node's box in its inside. `turn`: empty but for one of the calls of a repeated module, which share
  a box: then a list of its number among those in the table, how many they are, its place between the first call, 0, and
  the last one, 1, and the places from which and up to which it is the one to show.
- `ends`: of a stub, the numbers of the boxes at both ends, with a slash between them; a stub is a line only when asked
  for. `leads`: number of the box at the only other end of a label's stubs, if there is one. `x`: where the text of a
  label ends, if it `arrives` (1), or else begins (0).
- `name`: the tensor's path as shown. `values`, `gradients`: see `HeatStrips.encoded`; may be empty.
"""

MOST_DESCRIBED = 3
"""Findings in the description."""

CELL_CHARACTERS = 200_000
"""About how many characters a cell has at most."""

TABLE_CHARACTERS = 8_000_000
"""About how many characters a table has at most. A model with very many series shows fewer steps."""

CHARACTERS_PER_STEP = 1 + CODE_WIDTH * ROWS + FLOAT_WIDTH * len(STEP_STATISTICS)
"""Characters that one step of one series takes."""


def table_rows(data: ChartData) -> list[tuple[str, str]]:
    """The rows of the table. They are complete: a later table replaces an earlier one."""
    contents = contents_of(data)
    lines: dict[str, Iterable[Sequence[str]]] = {
        "summary": [_summary(contents)],
        "insides": inside_lines(contents),
        "nodes": node_lines(contents),
        "edges": edge_lines(contents),
        "stubs": stub_lines(contents),
        "tensors": tensor_rows(data, contents.strips, contents.text),
        "findings": finding_lines(data),
    }
    if data.xray is not None:
        lines |= {"xray": [xray_rows.xray_line(data.xray)], "xray_rows": xray_rows.xray_rows(data, data.xray)}
    return [(part, piece) for part, parts in lines.items() for piece in _pieces(parts)]


def affordable_steps(series: int, most: int) -> int:
    """How many steps, at most `most`, a table with this many series can show within `TABLE_CHARACTERS`."""
    return max(4, min(most, TABLE_CHARACTERS // max(1, series * CHARACTERS_PER_STEP)))


def _pieces(lines: Iterable[Sequence[str]]) -> list[str]:
    """The lines as text, split into pieces of about `CELL_CHARACTERS`."""
    texts = ["\t".join(without_separators(field) for field in line) for line in lines]
    ends, reached = [], 0
    for text in texts:
        reached += len(text)
        ends.append(reached // CELL_CHARACTERS)
    return [
        "\n".join(text for text, _ in group)
        for _, group in groupby(zip(texts, ends, strict=True), lambda pair: pair[1])
    ]


def without_separators(text: str) -> str:
    """`text` with spaces in place of tabs and line breaks."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _summary(contents: ChartContents) -> tuple[str, ...]:
    data = contents.data
    steps = [frame.step for frame in data.frames]
    root = next((module for module in data.graph.modules if module.name == ""), None)
    params = root.total_params if root else 0
    description = (
        f"{data.session.class_name}: {_counted(len(data.graph.modules), 'module')}, {_counted(params, 'parameter')}; "
        f"{_counted(data.logged, 'step')} recorded, {len(steps)} shown{_found(as_roots(data.findings))}"
    )
    flags = encode_flags(np.array(data.nonfinite.flags if data.nonfinite else [0] * len(steps), dtype=np.int64))
    return (
        data.session.model,
        description,
        LIST_SEPARATOR.join(map(str, steps)),
        call_key(data.graph, _home(data)),
        flags,
        listed(_first_nonfinite(contents)),
        f"{data.nonfinite.count:,} of {data.logged:,} recorded steps" if data.nonfinite else "",
        listed(line for note in data.notes for line in textwrap.wrap(note, LINE_WIDTH)),
    )


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _found(findings: Sequence[str]) -> str:
    """The first findings, at the end of the description, which reports show too."""
    more = f"; and {len(findings) - MOST_DESCRIBED} more" if len(findings) > MOST_DESCRIBED else ""
    return f". Found: {'; '.join(findings[:MOST_DESCRIBED])}{more}" if findings else ""


def _first_nonfinite(contents: ChartContents) -> tuple[str, ...]:
    """The field `first_nonfinite`."""
    data = contents.data
    if data.nonfinite is None:
        return ()
    step, origin = data.frames[data.nonfinite.frame].step, data.nonfinite.origin
    key, inside = _node_of(data, origin) if origin is not None else ("", "")
    frame = data.frames[data.nonfinite.frame]
    return (
        str(data.nonfinite.frame),
        str(step),
        key,
        inside,
        contents.text.first_nonfinite(frame, origin, data.session.class_name),
    )


def _node_of(data: ChartData, series: Series) -> tuple[str, str]:
    """The keys of the node that a series belongs to and of the inside it is in; empty if the chart has no such node."""
    key, inside = place_of(data, series.module, series.call)
    if key and series.role == "attached":
        return f"{key}@{series.path}", key
    return key, inside


def _home(data: ChartData) -> int | None:
    """The inside of the model's call if there is exactly one, else the top."""
    roots = [number for number, call in enumerate(data.graph.calls) if call.parent is None]
    return roots[0] if len(roots) == 1 and roots[0] in data.layouts else None
