"""The size of a node, from the text that the viewer writes in it."""

from __future__ import annotations

from torchgraph_explorer.labels import numbered
from torchgraph_explorer.layout.structure import Size
from torchgraph_explorer.schema import Call
from torchgraph_explorer.shapes import shape_text

LABEL_PX, DETAIL_PX, SHAPE_PX = 8.3, 6.6, 6.6
"""Width of a letter in the lines of a node, on average in a wide system font: 12 px semi-bold, 10.5 px, figures."""

PADDING_PX, CHEVRON_PX, GAP_PX = 24, 16, 12
CALL_HEIGHT, TENSOR_HEIGHT = 46.0, 30.0
STRIP_HEIGHT = 12.0
"""Height of the strip that shows all calls of a repeated module, below the lines of its node."""
LEAST_CALL_WIDTH, LEAST_TENSOR_WIDTH = 96.0, 64.0
MOST_CALL_WIDTH, MOST_TENSOR_WIDTH = 270.0, 214.0
"""Longer names are shortened in the middle. Inputs stand side by side, so they get less room."""


def call_size(call: Call, label: str, class_name: str, *, has_inside: bool, times: int = 1) -> Size:
    """Width and height of a call's node, in pixels; `label` is its module's label there.

    A node that stands for several calls says how many `times`; `call` is the last of them.
    """
    shape = shape_text(call.outputs[0], {}) if call.outputs else ""
    name = numbered(label or class_name, call) + _times_text(times)  # the model itself has no name
    upper = len(name) * LABEL_PX + (CHEVRON_PX if has_inside else 0)
    lower = len(class_name) * DETAIL_PX + (GAP_PX + len(shape) * SHAPE_PX if shape else 0)
    width = _bounded(max(upper, lower) + PADDING_PX, least=LEAST_CALL_WIDTH, most=MOST_CALL_WIDTH)
    return width, CALL_HEIGHT + (STRIP_HEIGHT if times > 1 else 0)


def tensor_size(label: str, *, times: int = 1) -> Size:
    """Width and height of the node of an input, output or attached tensor, in pixels."""
    width = len(label + _times_text(times)) * LABEL_PX + PADDING_PX
    return _bounded(width, least=LEAST_TENSOR_WIDTH, most=MOST_TENSOR_WIDTH), TENSOR_HEIGHT


def _times_text(times: int) -> str:
    return f" ×{times}" if times > 1 else ""


def _bounded(width: float, *, least: float, most: float) -> float:
    return float(round(min(max(width, least), most)))
