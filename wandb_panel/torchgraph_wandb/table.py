"""The table behind a chart: a few rows, whose cells are lines of text.

A row is a piece of one part. `FIELDS` names the fields of the lines of each part; the chart is built from `FIELDS` too,
so that both sides agree. Tabs separate fields, line feeds separate lines, `LIST_SEPARATOR` the items of a list.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from torchgraph_explorer.families import FAMILIES, family_of
from torchgraph_explorer.findings.report import as_roots
from torchgraph_explorer.schema import ModuleGraph, Node, Series
from torchgraph_wandb import xray_rows
from torchgraph_wandb.chart_data import ChartData, call_key
from torchgraph_wandb.chart_text import LINE_WIDTH, GraphText, graph_text
from torchgraph_wandb.finding_rows import FINDING_FIELDS, finding_lines
from torchgraph_wandb.graph_layout import InsideLayouts
from torchgraph_wandb.heat_strips import ROWS, STEP_STATISTICS, HeatStrips, heat_strips
from torchgraph_wandb.node_statistics import NodeStatistics, node_statistics, typical_ranges
from torchgraph_wandb.nonfinite_marks import NonfiniteMarks, nonfinite_marks
from torchgraph_wandb.tensor_rows import tensor_rows
from torchgraph_wandb.text_encoding import (
    CODE_WIDTH,
    FLOAT_WIDTH,
    LIST_SEPARATOR,
    encode_codes,
    encode_flags,
    encode_floats,
    listed,
    size_codes,
)

COLUMNS = ("part", "packed")
"""The table's columns. Never `id`, `name`, `color` or `_defaultColorIndex`: W&B overwrites those with the run's."""

FAMILY_NAMES = (*FAMILIES, "tensor")
"""What a node is coloured as: the families of module classes, and tensors."""

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
    ),
    "edges": ("inside", "carries", "path"),
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


@dataclass(frozen=True, slots=True)
class ChartContents:
    """The chart's data and what is computed from it."""

    data: ChartData
    text: GraphText
    strips: HeatStrips
    statistics: NodeStatistics
    marks: NonfiniteMarks


def table_rows(data: ChartData) -> list[tuple[str, str]]:
    """The rows of the table. They are complete: a later table replaces an earlier one."""
    contents = _contents(data)
    lines: dict[str, Iterable[Sequence[str]]] = {
        "summary": [_summary(contents)],
        "insides": _insides(contents),
        "nodes": _nodes(contents),
        "edges": _edges(data.graph, data.layouts),
        "tensors": tensor_rows(data, contents.strips, contents.text),
        "findings": finding_lines(data),
    }
    if data.xray is not None:
        lines |= {"xray": [xray_rows.xray_line(data.xray)], "xray_rows": xray_rows.xray_rows(data, data.xray)}
    return [(part, piece) for part, parts in lines.items() for piece in _pieces(parts)]


def _contents(data: ChartData) -> ChartContents:
    strips = heat_strips(data.frames, data.series, reject=data.session.reject_outlier_proportion)
    marks = nonfinite_marks(data.graph, data.series, strips.flags)
    return ChartContents(data, graph_text(data.graph), strips, node_statistics(data.series, strips), marks)


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
        f"{data.session.class_name}: {len(data.graph.modules):,} modules, {params:,} parameters; "
        f"{data.logged:,} steps recorded, {len(steps)} shown{_found(as_roots(data.findings))}"
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
    """The keys of the node that a series belongs to and of the inside it is in; empty if the graph has no such node."""
    graph = data.graph
    found = (
        n for n, call in enumerate(graph.calls) if call.module == series.module and series.call in (None, call.call)
    )
    number = next(found, None)
    if number is None:
        return "", ""
    if series.role == "attached":
        key = call_key(graph, number)
        return f"{key}@{series.path}", key
    return call_key(graph, number), call_key(graph, graph.calls[number].parent)


def _home(data: ChartData) -> int | None:
    """The inside of the model's call if there is exactly one, else the top."""
    roots = [number for number, call in enumerate(data.graph.calls) if call.parent is None]
    return roots[0] if len(roots) == 1 and roots[0] in data.layouts else None


def _insides(contents: ChartContents) -> Iterable[tuple[str, ...]]:
    graph = contents.data.graph
    for inside, layout in contents.data.layouts.items():
        parent = graph.calls[inside].parent if inside is not None else None
        trail = [part for call in _path_down(graph, inside) for part in (_title(contents, call), call_key(graph, call))]
        nodes = [graph.nodes[number] for number in layout.boxes]
        marked = [contents.marks.of(graph, node) for node in nodes] + [np.zeros(contents.marks.steps, dtype=np.uint8)]
        yield (
            call_key(graph, inside),
            call_key(graph, parent) if inside is not None else "",
            _title(contents, inside),
            listed(trail),
            f"{layout.width:.0f}",
            f"{layout.height:.0f}",
            encode_floats(typical_ranges([contents.statistics.of(graph, node) for node in nodes])),
            encode_flags(np.bitwise_or.reduce(marked)),
        )


def _path_down(graph: ModuleGraph, inside: int | None) -> list[int | None]:
    """The insides from the top down to `inside`."""
    path: list[int | None] = []
    while inside is not None:
        path.insert(0, inside)
        inside = graph.calls[inside].parent
    return [None, *path]


def _title(contents: ChartContents, inside: int | None) -> str:
    """The title of an inside: the label of its call."""
    if inside is None:
        return "all calls"
    call = contents.data.graph.calls[inside]
    return contents.text.call_label(call, call.parent)


def _nodes(contents: ChartContents) -> Iterable[tuple[str, ...]]:
    graph = contents.data.graph
    for inside, layout in contents.data.layouts.items():
        for number, (x, y, width, height) in layout.boxes.items():
            node = graph.nodes[number]
            box = LIST_SEPARATOR.join(f"{part:.0f}" for part in (x, y, width, height))
            statistics = encode_codes(size_codes(contents.statistics.of(graph, node))) if node.call is not None else ""
            yield (
                *_node(contents, node, call_key(graph, inside)),
                statistics,
                encode_flags(contents.marks.of(graph, node)),
                box,
            )


def _node(contents: ChartContents, node: Node, inside: str) -> tuple[str, ...]:
    """All fields of a node except its statistics, its marks and its box."""
    graph, text = contents.data.graph, contents.text
    if node.call is None:
        path = node.tensor.path if node.tensor else ""
        only = path if node.kind == "attached" else ""
        family = str(FAMILY_NAMES.index("tensor"))
        tooltip = listed(text.tensor_tooltip(node))
        label, shape = text.tensor_label(node), text.shape(node.tensor)
        return (f"{inside}@{path}", inside, inside, only, "", label, node.kind, shape, family, tooltip)
    call, key = graph.calls[node.call], call_key(graph, node.call)
    module = text.modules[call.module]
    opens = key if node.call in contents.data.layouts else ""
    family = str(FAMILY_NAMES.index(family_of(module.class_name, has_inside=bool(opens))))
    label, shape = text.call_label(call, node.inside), text.shape(call.outputs[0] if call.outputs else None)
    return (
        key,
        inside,
        key,
        "",
        opens,
        label,
        module.class_name,
        shape,
        family,
        listed(text.call_tooltip(call)),
    )


def _edges(graph: ModuleGraph, layouts: InsideLayouts) -> Iterable[tuple[str, ...]]:
    for inside, layout in layouts.items():
        for number, points in layout.edges.items():
            carries = "gradient" if graph.edges[number].gradient else "data"
            yield call_key(graph, inside), carries, svg_path(points)


def svg_path(points: Sequence[tuple[float, float]]) -> str:
    """A cubic spline with an arrow head at its end, as the `d` of an SVG path."""
    (x, y), rest = points[0], points[1:]
    curve = f"M{x:.0f},{y:.0f}C" + " ".join(f"{px:.0f},{py:.0f}" for px, py in rest)
    tip, before = points[-1], next((point for point in reversed(points[:-1]) if point != points[-1]), points[-1])
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    ends = [(tip[0] - 7 * math.cos(angle + turn), tip[1] - 7 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    return f"{curve}M{ends[0][0]:.0f},{ends[0][1]:.0f}L{tip[0]:.0f},{tip[1]:.0f}L{ends[1][0]:.0f},{ends[1][1]:.0f}"
