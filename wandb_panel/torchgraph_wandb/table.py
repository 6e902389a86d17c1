"""The table behind a chart: few rows, whose cells are lines of packed text.

A row is a piece of one part. `FIELDS` says what the lines of each part hold, and the chart is built from that same
table, so that both sides agree. Fields are separated by tabs, lines by line feeds, lines within a field by `LIST`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from torchgraph_explorer.families import family_of
from torchgraph_explorer.schema import ModuleGraph, Node, Series
from torchgraph_wandb.drawing import Drawings
from torchgraph_wandb.letters import (
    CODE_LETTERS,
    FLOAT_LETTERS,
    packed_codes,
    packed_flags,
    packed_numbers,
    size_codes,
)
from torchgraph_wandb.looks import InlineProbes, looks, usual_ranges
from torchgraph_wandb.state import State, call_key
from torchgraph_wandb.strips import ROWS, TOLD, Strips, strips
from torchgraph_wandb.tensors import tensor_rows
from torchgraph_wandb.troubles import Marks, marks
from torchgraph_wandb.wording import (
    WIDTH,
    call_lines,
    class_text,
    family_number,
    first_text,
    label,
    shape_text,
    tensor_lines,
)

COLUMNS = ("part", "packed")
"""Of the table. Never `id`, `name`, `color` or `_defaultColorIndex`: W&B overwrites those with the run's."""

LIST = "|"

FIELDS = {
    "facts": ("model", "told", "steps", "home", "bad", "first", "extent", "notes"),
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
        "told",
        "looks",
        "marks",
        "box",
    ),
    "edges": ("inside", "carries", "path"),
    "tensors": ("owner", "role", "path", "shape", "values", "gradients"),
}
"""The fields of a line of each part.

- `home`: the inside to begin with. `steps`: their numbers. `notes`: lines on how sessions join.
- `bad`: a letter for each step, see `state.BAD`. `first`: where NaN or infinity came up first, as a list of its place
  in `steps`, the step, the node's key, its inside and what to say; empty if it did not. `extent`: how many steps have.
- `key`, `owner`: a call, as `call_key` writes it, or `module#*` for a module's parameters. `only`: of an owner's
  tensors just the attached one of this path. `opens`: the key of the inside that a click opens. `family`: its place in
  `wording.FAMILIES`.
- `trail`: the titles and keys of the insides on the way there, in turn. `box`: centre, width and height.
- `looks`: step by step what a node can be coloured by, as codes, see `looks`. `ranges`: between which values each of
  those lies inside. `marks`: flags step by step, see `troubles`; those of an inside are of all that is in it.
- `values`, `gradients`: see `Strips.packed`; may be empty.
"""

PIECE = 200_000
"""Characters of a cell, about."""

BUDGET = 8_000_000
"""Characters of a table, about; a model of very many series shows fewer steps."""

LETTERS_A_STEP = 1 + CODE_LETTERS * ROWS + FLOAT_LETTERS * len(TOLD)
"""Of a series."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of a state, besides its graph."""

    state: State
    strips: Strips
    looks: InlineProbes
    marks: Marks


def table_rows(state: State) -> list[tuple[str, str]]:
    """The rows for `COLUMNS`. Complete in themselves: a later table replaces an earlier one."""
    drawn = _drawn(state)
    lines: dict[str, Iterable[Sequence[str]]] = {
        "facts": [_facts(state)],
        "insides": _insides(drawn),
        "nodes": _nodes(drawn),
        "edges": _edges(state.graph, state.drawings),
        "tensors": tensor_rows(state, drawn.strips),
    }
    return [(part, piece) for part, parts in lines.items() for piece in _pieces(parts)]


def _drawn(state: State) -> Drawn:
    found = strips(state.frames, state.series, reject=state.session.reject_outlier_proportion)
    return Drawn(state, found, looks(state.series, found), marks(state.graph, state.series, found.flags))


def affordable_steps(series: int, most: int) -> int:
    """How many steps, up to `most`, a table of so many series can show within `BUDGET`."""
    return max(4, min(most, BUDGET // max(1, series * LETTERS_A_STEP)))


def _pieces(lines: Iterable[Sequence[str]]) -> list[str]:
    """The lines as text, in pieces of about `PIECE`."""
    texts = ["\t".join(clean(field) for field in line) for line in lines]
    ends, reached = [], 0
    for text in texts:
        reached += len(text)
        ends.append(reached // PIECE)
    return [
        "\n".join(text for text, _ in group)
        for _, group in groupby(zip(texts, ends, strict=True), lambda pair: pair[1])
    ]


def clean(text: str) -> str:
    """`text` without what separates fields and lines."""
    return text.replace("\t", " ").replace("\n", " ").replace("\r", " ")


def _facts(state: State) -> tuple[str, ...]:
    steps = [frame.step for frame in state.frames]
    root = next((module for module in state.graph.modules if module.name == ""), None)
    params = root.total_params if root else 0
    told = (
        f"{state.session.class_name}: {len(state.graph.modules):,} modules, {params:,} parameters; "
        f"{state.logged:,} steps recorded, {len(steps)} shown"
    )
    bad = packed_flags(np.array(state.trouble.bad if state.trouble else [0] * len(steps), dtype=np.int64))
    return (
        state.session.model,
        told,
        LIST.join(map(str, steps)),
        call_key(state.graph, _home(state)),
        bad,
        LIST.join(part.replace(LIST, "/") for part in _first(state)),
        f"{state.trouble.count:,} of {state.logged:,} recorded steps" if state.trouble else "",
        LIST.join(line.replace(LIST, "/") for note in state.notes for line in textwrap.wrap(note, WIDTH)),
    )


def _first(state: State) -> tuple[str, ...]:
    """The field `first`."""
    if state.trouble is None:
        return ()
    step, origin = state.frames[state.trouble.frame].step, state.trouble.origin
    key, inside = _node_of(state, origin) if origin is not None else ("", "")
    frame = state.frames[state.trouble.frame]
    return str(state.trouble.frame), str(step), key, inside, first_text(frame, origin, state.session.class_name)


def _node_of(state: State, series: Series) -> tuple[str, str]:
    """Key of the node that a series belongs to, and of the inside that it is in; empty if the graph has none."""
    graph = state.graph
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


def _home(state: State) -> int | None:
    """The inside of the model's call if there is just one, else the top."""
    roots = [number for number, call in enumerate(state.graph.calls) if call.parent is None]
    return roots[0] if len(roots) == 1 and roots[0] in state.drawings else None


def _insides(drawn: Drawn) -> Iterable[tuple[str, ...]]:
    graph = drawn.state.graph
    for inside, drawing in drawn.state.drawings.items():
        parent = graph.calls[inside].parent if inside is not None else None
        trail = [part for call in _way(graph, inside) for part in (_title(graph, call), call_key(graph, call))]
        nodes = [graph.nodes[number] for number in drawing.boxes]
        marked = [drawn.marks.of(graph, node) for node in nodes] + [np.zeros(drawn.marks.steps, dtype=np.uint8)]
        yield (
            call_key(graph, inside),
            call_key(graph, parent) if inside is not None else "",
            _title(graph, inside),
            LIST.join(part.replace(LIST, "/") for part in trail),
            f"{drawing.width:.0f}",
            f"{drawing.height:.0f}",
            packed_numbers(usual_ranges([drawn.looks.of(graph, node) for node in nodes])),
            packed_flags(np.bitwise_or.reduce(marked)),
        )


def _way(graph: ModuleGraph, inside: int | None) -> list[int | None]:
    """The insides from the top down to `inside`."""
    way: list[int | None] = []
    while inside is not None:
        way.insert(0, inside)
        inside = graph.calls[inside].parent
    return [None, *way]


def _title(graph: ModuleGraph, inside: int | None) -> str:
    if inside is None:
        return "all calls"
    call = graph.calls[inside]
    name = call.module.rpartition(".")[2]
    class_name = next(module.class_name for module in graph.modules if module.name == call.module)
    return (name or class_name) + (f" #{call.call + 1}" if call.call else "")


def _nodes(drawn: Drawn) -> Iterable[tuple[str, ...]]:
    graph = drawn.state.graph
    for inside, drawing in drawn.state.drawings.items():
        for number, (x, y, width, height) in drawing.boxes.items():
            node = graph.nodes[number]
            box = LIST.join(f"{part:.0f}" for part in (x, y, width, height))
            seen = packed_codes(size_codes(drawn.looks.of(graph, node))) if node.call is not None else ""
            yield (
                *_node(drawn.state, node, call_key(graph, inside)),
                seen,
                packed_flags(drawn.marks.of(graph, node)),
                box,
            )


def _node(state: State, node: Node, inside: str) -> tuple[str, ...]:
    """All fields of a node but its looks, its marks and its box."""
    graph = state.graph
    if node.call is None:
        path = node.tensor.path if node.tensor else ""
        only = path if node.kind == "attached" else ""
        told = LIST.join(line.replace(LIST, "/") for line in tensor_lines(node.tensor, node.kind))
        shape = shape_text(node.tensor.shape) if node.tensor else ""
        return (
            f"{inside}@{path}",
            inside,
            inside,
            only,
            "",
            path,
            node.kind,
            shape,
            str(family_number("tensor")),
            told,
        )
    call, key = graph.calls[node.call], call_key(graph, node.call)
    module = next(module for module in graph.modules if module.name == call.module)
    opens = key if node.call in state.drawings else ""
    told = LIST.join(line.replace(LIST, "/") for line in call_lines(module, call))
    shape = shape_text(call.outputs[0].shape) if call.outputs else ""
    family = family_number(family_of(module.class_name, has_inside=bool(opens)))
    return (key, inside, key, "", opens, label(module), class_text(module, call), shape, str(family), told)


def _edges(graph: ModuleGraph, drawings: Drawings) -> Iterable[tuple[str, ...]]:
    for inside, drawing in drawings.items():
        for number, points in drawing.lines.items():
            carries = "gradient" if graph.edges[number].gradient else "data"
            yield call_key(graph, inside), carries, svg_path(points)


def svg_path(points: Sequence[tuple[float, float]]) -> str:
    """A cubic spline with an arrow head at its end, as SVG has it."""
    (x, y), rest = points[0], points[1:]
    curve = f"M{x:.0f},{y:.0f}C" + " ".join(f"{px:.0f},{py:.0f}" for px, py in rest)
    tip, before = points[-1], next((point for point in reversed(points[:-1]) if point != points[-1]), points[-1])
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    ends = [(tip[0] - 7 * math.cos(angle + turn), tip[1] - 7 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    return f"{curve}M{ends[0][0]:.0f},{ends[0][1]:.0f}L{tip[0]:.0f},{tip[1]:.0f}L{ends[1][0]:.0f},{ends[1][1]:.0f}"
