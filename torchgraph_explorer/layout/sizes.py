"""How large a node is drawn: by the text that the viewer writes in it."""

from __future__ import annotations

from collections.abc import Mapping

from torchgraph_explorer.layout.structure import Size
from torchgraph_explorer.records import Call, Shape, TensorInfo

LABEL_PX, DETAIL_PX, SHAPE_PX = 7.7, 6.6, 6.6
"""Width of a letter in the lines of a node, on average in a wide system font: 12 px semi-bold, 10.5 px, figures."""

PADDING_PX, CHEVRON_PX, GAP_PX = 24, 16, 12
CALL_HEIGHT, TENSOR_HEIGHT = 46.0, 30.0
LEAST_CALL_WIDTH, LEAST_TENSOR_WIDTH, MOST_WIDTH = 96.0, 64.0, 270.0


def call_size(call: Call, classes: Mapping[str, str], *, has_inside: bool) -> Size:
    """Width and height of a call's node, in pixels; `classes` has the class of each module."""
    class_name = classes.get(call.module, "")
    label = call.module.rpartition(".")[2] or class_name  # the model itself goes by its class
    detail = f"{class_name} #{call.call + 1}" if call.call else class_name
    shape = _shape_text(call.outputs[0].shape) if call.outputs else ""
    upper = len(label) * LABEL_PX + (CHEVRON_PX if has_inside else 0)
    lower = len(detail) * DETAIL_PX + (GAP_PX + len(shape) * SHAPE_PX if shape else 0)
    return _bounded(max(upper, lower) + PADDING_PX, least=LEAST_CALL_WIDTH), CALL_HEIGHT


def tensor_size(tensor: TensorInfo | None) -> Size:
    """Width and height of the node of an input, output or attached tensor, in pixels."""
    path = tensor.path if tensor is not None else ""
    return _bounded(len(path) * LABEL_PX + PADDING_PX, least=LEAST_TENSOR_WIDTH), TENSOR_HEIGHT


def _shape_text(shape: Shape) -> str:
    return "×".join("–" if size is None else str(size) for size in shape) or "scalar"


def _bounded(width: float, *, least: float) -> float:
    return float(round(min(max(width, least), MOST_WIDTH)))
