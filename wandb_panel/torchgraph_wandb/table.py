"""The table behind a chart: few rows, whose cells are lines of packed text.

A row is a piece of one part. `FIELDS` says what the lines of each part hold, and the chart is built from that same
table, so that both sides agree. Fields are separated by tabs, lines by line feeds, lines within a field by `LIST`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from torchgraph_explorer.records import Frame, Kind, ModuleGraph, Node, Series, Session
from torchgraph_wandb.drawing import Drawing, Drawings
from torchgraph_wandb.letters import packed_numbers
from torchgraph_wandb.looks import looks
from torchgraph_wandb.strips import Strips, strips
from torchgraph_wandb.wording import (
    TENSOR,
    call_lines,
    class_text,
    family_colour,
    label,
    shape_text,
    tensor_lines,
)

COLUMNS = ("part", "packed")
"""Of the table. Never `id`, `name`, `color` or `_defaultColorIndex`: W&B overwrites those with the run's."""

LIST = "|"

FIELDS = {
    "facts": ("model", "told", "steps", "home", "notes"),
    "insides": ("key", "parent", "title", "trail", "width", "height"),
    "nodes": ("key", "inside", "owner", "only", "opens", "label", "detail", "shape", "colour", "told", "looks", "box"),
    "edges": ("inside", "carries", "path"),
    "tensors": ("owner", "role", "path", "shape", "values", "gradients"),
}
"""The fields of a line of each part.

- `home`: the inside to begin with. `steps`: their numbers. `notes`: sentences on how sessions join.
- `key`, `owner`: a call, as `call_key` writes it, or `module#*` for a module's parameters. `only`: of an owner's
  tensors just the attached one of this path. `opens`: the key of the inside that a click opens.
- `trail`: the titles and keys of the insides on the way there, in turn. `box`: centre, width and height.
- `looks`: what a node can be coloured by, see `looks`. `values`, `gradients`: see `Strips.packed`; may be empty.
"""

PIECE = 200_000
"""Characters of a cell, about."""

BUDGET = 8_000_000
"""Characters of a table, about; a model of very many series shows fewer steps."""

ROLES = ("input", "output", "attached", "param")


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
    """

    session: Session
    graph: ModuleGraph
    drawings: Drawings
    series: Sequence[Series]
    frames: Sequence[Frame]
    logged: int
    notes: tuple[str, ...] = ()


def table_rows(state: State) -> list[tuple[str, str]]:
    """The rows for `COLUMNS`. Complete in themselves: a later table replaces an earlier one."""
    drawn = strips(state.frames, len(state.series), reject=state.session.reject_outlier_proportion)
    lines: dict[str, Iterable[Sequence[str]]] = {
        "facts": [_facts(state)],
        "insides": _insides(state.graph, state.drawings),
        "nodes": _nodes(state, drawn),
        "edges": _edges(state.graph, state.drawings),
        "tensors": _tensors(state, drawn),
    }
    return [(part, piece) for part, parts in lines.items() for piece in _pieces(parts)]


def affordable_steps(series: int, most: int) -> int:
    """How many steps, up to `most`, a table of so many series can show within `BUDGET`."""
    letters_a_step = 12 + 3 * 7
    return max(8, min(most, BUDGET // max(1, series * letters_a_step)))


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


def call_key(graph: ModuleGraph, call: int | None) -> str:
    """How a call is named: `layers.0.conv#1`; the top, which holds the calls of the model itself, is `top`."""
    if call is None:
        return "top"
    return f"{graph.calls[call].module}#{graph.calls[call].call}"


def _facts(state: State) -> tuple[str, ...]:
    steps = [frame.step for frame in state.frames]
    root = next((module for module in state.graph.modules if module.name == ""), None)
    params = root.total_params if root else 0
    told = (
        f"{state.session.class_name}: {len(state.graph.modules):,} modules, {params:,} parameters; "
        f"{state.logged:,} steps recorded, {len(steps)} shown"
    )
    home = call_key(state.graph, _home(state))
    return state.session.model, told, LIST.join(map(str, steps)), home, " ".join(state.notes)


def _home(state: State) -> int | None:
    """The inside of the model's call if there is just one, else the top."""
    roots = [number for number, call in enumerate(state.graph.calls) if call.parent is None]
    return roots[0] if len(roots) == 1 and roots[0] in state.drawings else None


def _insides(graph: ModuleGraph, drawings: Drawings) -> Iterable[tuple[str, ...]]:
    for inside, drawing in drawings.items():
        parent = graph.calls[inside].parent if inside is not None else None
        trail = [part for call in _way(graph, inside) for part in (_title(graph, call), call_key(graph, call))]
        yield (
            call_key(graph, inside),
            call_key(graph, parent) if inside is not None else "",
            _title(graph, inside),
            LIST.join(part.replace(LIST, "/") for part in trail),
            f"{drawing.width:.0f}",
            f"{drawing.height:.0f}",
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


def _nodes(state: State, drawn: Strips) -> Iterable[tuple[str, ...]]:
    seen = looks(state.series, drawn)
    for inside, drawing in state.drawings.items():
        for number, (x, y, width, height) in drawing.boxes.items():
            node = state.graph.nodes[number]
            box = LIST.join(f"{part:.0f}" for part in (x, y, width, height))
            yield (*_node(state, node, call_key(state.graph, inside)), packed_numbers(seen.of(state.graph, node)), box)


def _node(state: State, node: Node, inside: str) -> tuple[str, ...]:
    """All fields of a node but its looks and its box."""
    graph = state.graph
    if node.call is None:
        path = node.tensor.path if node.tensor else ""
        only = path if node.kind == "attached" else ""
        told = LIST.join(line.replace(LIST, "/") for line in tensor_lines(node.tensor, node.kind))
        shape = shape_text(node.tensor.shape) if node.tensor else ""
        return (f"{inside}@{path}", inside, inside, only, "", path, node.kind, shape, TENSOR, told)
    call, key = graph.calls[node.call], call_key(graph, node.call)
    module = next(module for module in graph.modules if module.name == call.module)
    opens = key if node.call in state.drawings else ""
    told = LIST.join(line.replace(LIST, "/") for line in call_lines(module, call))
    shape = shape_text(call.outputs[0].shape) if call.outputs else ""
    colour = family_colour(module.class_name, has_inside=bool(opens))
    return (key, inside, key, "", opens, label(module), class_text(module, call), shape, colour, told)


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


SIDES: dict[Kind, tuple[str, int]] = {
    "value": ("", 0),
    "grad_norm": ("", 1),
    "grad": ("", 1),
    "update": (": update", 0),
    "optimizer_grad": (": update", 1),
    "update_ratio": (": update / value", 0),
}
"""What is added to a tensor's path for each kind, and on which side of that line it stands."""


def _tensors(state: State, drawn: Strips) -> Iterable[tuple[str, ...]]:
    """A line for each tensor, its values beside its gradients; inputs before outputs before parameters."""
    shapes = _shapes(state.graph)
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for number, one in enumerate(state.series):
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        more, side = SIDES[one.kind]
        pairs.setdefault((owner, one.role, one.path + more), ["", ""])[side] = drawn.packed(number)
    for (owner, role, path), (left, right) in sorted(pairs.items(), key=lambda item: ROLES.index(item[0][1])):
        yield owner, role, path, shapes.get((owner, role, path), ""), left, right


def _shapes(graph: ModuleGraph) -> Mapping[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for number, call in enumerate(graph.calls):
        owner = call_key(graph, number)
        found |= {(owner, "input", tensor.path): shape_text(tensor.shape) for tensor in call.inputs}
        found |= {(owner, "output", tensor.path): shape_text(tensor.shape) for tensor in call.outputs}
    for module in graph.modules:
        found |= {(f"{module.name}#*", "param", tensor.path): shape_text(tensor.shape) for tensor in module.params}
    for node in graph.nodes:
        if node.kind == "attached" and node.tensor:
            found[call_key(graph, node.inside), "attached", node.tensor.path] = shape_text(node.tensor.shape)
    return found


__all__ = ["BUDGET", "COLUMNS", "FIELDS", "LIST", "Drawing", "State", "affordable_steps", "call_key", "table_rows"]
