"""The table's parts of the graph: insides, nodes, edges, and the labels of stubs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.families import FAMILIES, family_of
from torchgraph_explorer.schema import ModuleGraph, Node
from torchgraph_wandb.chart_contents import ChartContents
from torchgraph_wandb.chart_data import call_key
from torchgraph_wandb.graph_layout import Box, InsideLayout
from torchgraph_wandb.node_statistics import typical_ranges
from torchgraph_wandb.nonfinite_marks import INSIDE
from torchgraph_wandb.stub_labels import StubLabel, stub_labels
from torchgraph_wandb.text_encoding import (
    LIST_SEPARATOR,
    encode_codes,
    encode_flags,
    encode_floats,
    listed,
    size_codes,
)

FAMILY_NAMES = (*FAMILIES, "tensor")
"""What a node is coloured as: the families of module classes, and tensors."""

Bits = npt.NDArray[np.uint8]


def inside_lines(contents: ChartContents) -> Iterator[tuple[str, ...]]:
    """The lines of the part `insides`."""
    data = contents.data
    graph = data.graph
    for inside, layout in data.layouts.items():
        parent = graph.calls[inside].parent if inside is not None else None
        trail = [part for call in _path_down(graph, inside) for part in (_title(contents, call), call_key(graph, call))]
        held = [graph.nodes[number] for box in layout.boxes for number in box.nodes]
        marked = [_marks(contents, box.all) for box in layout.boxes]
        yield (
            call_key(graph, inside),
            call_key(graph, parent) if inside is not None else "",
            _title(contents, inside),
            listed(trail),
            f"{layout.width:.0f}",
            f"{layout.height:.0f}",
            encode_floats(typical_ranges([contents.statistics.of(graph, node) for node in held])),
            encode_flags(_together(contents, marked)),
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


def node_lines(contents: ChartContents) -> Iterator[tuple[str, ...]]:
    """The lines of the part `nodes`: one for each call that the chart holds."""
    graph = contents.data.graph
    for inside, layout in contents.data.layouts.items():
        for at, box in enumerate(layout.boxes):
            place = LIST_SEPARATOR.join(f"{part:.0f}" for part in (box.x, box.y, box.width, box.height))
            for number, turn in enumerate(box.turns):
                node = graph.nodes[box.all[turn]]
                statistics = contents.statistics.of(graph, node)
                yield (
                    *_node(contents, node, call_key(graph, inside), times=_times(box, turn)),
                    encode_codes(size_codes(statistics)) if node.call is not None else "",
                    encode_flags(_marks_of_turn(contents, box, turn)),
                    place,
                    str(at),
                    _turn(box, number),
                )


def _times(box: Box, turn: int) -> tuple[int, int] | None:
    """Which of how many calls this is; None where no call is repeated."""
    return (turn + 1, len(box.all)) if len(box.all) > 1 else None


def _turn(box: Box, number: int) -> str:
    """The field `turn`."""
    if len(box.all) < 2:
        return ""
    shares = [turn / (len(box.all) - 1) for turn in box.turns]
    ends = [-1.0, *((low + high) / 2 for low, high in pairwise(shares)), 2.0]
    numbers = (number, len(shares), shares[number], ends[number], ends[number + 1])
    return listed(f"{value:.6g}" for value in numbers)


def _marks_of_turn(contents: ChartContents, box: Box, turn: int) -> Bits:
    """The flags of a call; those of the others of its box count as inside it, so that none is hidden."""
    own = _marks(contents, [box.all[turn]])
    others = _marks(contents, [node for node in box.all if node != box.all[turn]])
    return own | np.where(others > 0, INSIDE, 0).astype(np.uint8)


def _marks(contents: ChartContents, nodes: Iterable[int]) -> Bits:
    data = contents.data
    return _together(contents, [data.marks.of(data.graph, data.graph.nodes[number]) for number in nodes])


def _together(contents: ChartContents, some: Sequence[Bits]) -> Bits:
    found: Bits = np.bitwise_or.reduce([*some, np.zeros(contents.data.marks.steps, dtype=np.uint8)])
    return found


def _node(contents: ChartContents, node: Node, inside: str, *, times: tuple[int, int] | None) -> tuple[str, ...]:
    """All fields of a node up to its statistics."""
    graph, text = contents.data.graph, contents.text
    repeated = f" ×{times[1]}" if times else ""
    which = [f"call {times[0]:,} of {times[1]:,}"] if times else []
    if node.call is None:
        path = node.tensor.path if node.tensor else ""
        only = path if node.kind == "attached" else ""
        family = str(FAMILY_NAMES.index("tensor"))
        tooltip = listed([*text.tensor_tooltip(node), *which])
        label, shape = f"{text.tensor_label(node)}{repeated}", text.shape(node.tensor)
        return (f"{inside}@{path}", inside, inside, only, "", label, node.kind, shape, family, tooltip)
    call, key = graph.calls[node.call], call_key(graph, node.call)
    module = text.modules[call.module]
    opens = key if node.call in contents.data.layouts else ""
    family = str(FAMILY_NAMES.index(family_of(module.class_name, has_inside=bool(opens))))
    shape = text.shape(call.outputs[0] if call.outputs else None)
    label = f"{text.module_label(call, node.inside)}{repeated}" if times else text.call_label(call, node.inside)
    return (
        key,
        inside,
        key,
        "",
        opens,
        label,
        f"{module.class_name} #{call.call + 1}" if times else module.class_name,
        shape,
        family,
        listed([*text.call_tooltip(call), *which]),
    )


def edge_lines(contents: ChartContents) -> Iterator[tuple[str, ...]]:
    """The lines of the part `edges`: also the arrows from the labels of stubs."""
    graph = contents.data.graph
    for inside, layout in contents.data.layouts.items():
        key = call_key(graph, inside)
        for edge in layout.edges:
            ends = f"{edge.ends[0]}/{edge.ends[1]}" if edge.is_stub else ""
            yield key, _carries(graph, edge.edges), svg_path(edge.points), ends
        for label in _labels(contents, layout):
            if label.arrives:
                start, end = (
                    (label.x, label.y),
                    (layout.boxes[label.box].x - layout.boxes[label.box].width / 2, label.y),
                )
                yield key, "gradient", svg_path((start, start, end, end)), ""


def _carries(graph: ModuleGraph, edges: Iterable[int]) -> str:
    return "gradient" if any(graph.edges[number].gradient for number in edges) else "data"


def stub_lines(contents: ChartContents) -> Iterator[tuple[str, ...]]:
    """The lines of the part `stubs`."""
    for inside, layout in contents.data.layouts.items():
        for one in _labels(contents, layout):
            leads = "" if one.leads is None else str(one.leads)
            place = (f"{one.x:.0f}", f"{one.y:.0f}", str(int(one.arrives)))
            yield call_key(contents.data.graph, inside), str(one.box), leads, one.text, *place


def _labels(contents: ChartContents, layout: InsideLayout) -> list[StubLabel]:
    return list(stub_labels(layout, lambda at: _name(contents, layout.boxes[at])))


def _name(contents: ChartContents, box: Box) -> str:
    """What a box is called at the other end of its stubs."""
    graph, text = contents.data.graph, contents.text
    node = graph.nodes[box.all[0]]
    if node.call is None:
        return text.tensor_label(node)
    call = graph.calls[node.call]
    return text.module_label(call, node.inside) if len(box.all) > 1 else text.call_label(call, node.inside)


def svg_path(points: Sequence[tuple[float, float]]) -> str:
    """A cubic spline with an arrow head at its end, as the `d` of an SVG path."""
    (x, y), rest = points[0], points[1:]
    curve = f"M{x:.0f},{y:.0f}C" + " ".join(f"{px:.0f},{py:.0f}" for px, py in rest)
    tip, before = points[-1], next((point for point in reversed(points[:-1]) if point != points[-1]), points[-1])
    angle = math.atan2(tip[1] - before[1], tip[0] - before[0])
    ends = [(tip[0] - 7 * math.cos(angle + turn), tip[1] - 7 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
    return f"{curve}M{ends[0][0]:.0f},{ends[0][1]:.0f}L{tip[0]:.0f},{tip[1]:.0f}L{ends[1][0]:.0f},{ends[1][1]:.0f}"
