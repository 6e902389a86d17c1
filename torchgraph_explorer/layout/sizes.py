"""How large a node is drawn: by the text that the viewer writes in it."""

from __future__ import annotations

from torchgraph_explorer.records import Call, ModuleGraph, Node, Shape

LABEL_PX, DETAIL_PX, SHAPE_PX = 6.9, 6.0, 6.2
"""Average width of a letter in the lines of a node: 12 px semi-bold, 10.5 px, and 10.5 px figures."""

PADDING_PX, CHEVRON_PX, GAP_PX = 24, 16, 12
CALL_HEIGHT, TENSOR_HEIGHT = 46.0, 30.0
LEAST_WIDTH, MOST_WIDTH = 96.0, 250.0


def node_size(graph: ModuleGraph, node: Node, *, has_inside: bool) -> tuple[float, float]:
    """Width and height of `node` in pixels."""
    if node.call is None:
        path = node.tensor.path if node.tensor is not None else ""
        return _bounded(len(path) * LABEL_PX + PADDING_PX, least=64.0), TENSOR_HEIGHT
    call = graph.calls[node.call]
    label, detail = label_of(graph, call), _detail(graph, call)
    shape = _shape_text(call.outputs[0].shape) if call.outputs else ""
    upper = len(label) * LABEL_PX + (CHEVRON_PX if has_inside else 0)
    lower = len(detail) * DETAIL_PX + (GAP_PX + len(shape) * SHAPE_PX if shape else 0)
    return _bounded(max(upper, lower) + PADDING_PX), CALL_HEIGHT


def label_of(graph: ModuleGraph, call: Call) -> str:
    """The last part of the module's name; the model itself goes by its class."""
    return call.module.rpartition(".")[2] or _class_name(graph, call)


def _detail(graph: ModuleGraph, call: Call) -> str:
    name = _class_name(graph, call)
    return f"{name} #{call.call + 1}" if call.call else name


def _class_name(graph: ModuleGraph, call: Call) -> str:
    return next((module.class_name for module in graph.modules if module.name == call.module), "")


def _shape_text(shape: Shape) -> str:
    return "×".join("–" if size is None else str(size) for size in shape) or "scalar"


def _bounded(width: float, *, least: float = LEAST_WIDTH) -> float:
    return float(round(min(max(width, least), MOST_WIDTH)))
