"""What is said of modules and tensors in the chart, and the colours of module families."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from torchgraph_explorer.records import Call, Module, Shape, TensorInfo

MOST_ROWS = 12
"""Tensors that a tooltip names."""

WIDTH = 58
"""Letters in a line of a tooltip."""

FAMILIES = {
    "loss": (r"loss$|criterion$", "#c03b3b"),
    "attention": (r"attention|attn", "#c2417d"),
    "regularisation": (r"dropout|drop_?path|stochasticdepth", "#94835a"),
    "embedding": (r"embedding|positional", "#0e7fa8"),
    "normalisation": (r"norm(\d+d?)?$|norm[^a-z]|localresponse", "#15877c"),
    "pooling": (r"pool", "#5f7f1e"),
    "recurrent": (r"(lstm|gru|rnn)(cell)?$|^(lstm|gru|rnn)", "#a0522d"),
    "activation": (r"relu|elu$|gelu|silu|swish|mish|sigmoid|tanh|soft(max|min|plus)|hard|threshold|glu$", "#c4731a"),
    "convolution": (r"conv|unfold|^fold$|pixelshuffle|upsample", "#3b74c9"),
    "linear": (r"linear|dense|^mlp$|projection$", "#8858c4"),
}
"""Pattern of class names, and colour; the first that matches counts. The colours are the viewer's."""

CONTAINER, OTHER, TENSOR = "#5b6475", "#6f778a", "#9aa3b2"


def family_colour(class_name: str, *, has_inside: bool) -> str:
    """The colour of a class; one of the user's own that has an inside is a container."""
    for family, (pattern, colour) in FAMILIES.items():
        if re.search(pattern, class_name, re.IGNORECASE):
            return CONTAINER if has_inside and family in ("convolution", "linear") else colour
    return CONTAINER if has_inside else OTHER


def shape_text(shape: Shape) -> str:
    """`8×3×32×32`; a dimension that varied is `–`."""
    return "×".join("–" if size is None else str(size) for size in shape) or "scalar"


def label(module: Module) -> str:
    """What a node of the module is called: the last part of its name."""
    return module.name.rpartition(".")[2] or module.class_name


def class_text(module: Module, call: Call) -> str:
    """`ReLU`, and `ReLU #2` for the second call of one module."""
    return module.class_name if call.call == 0 else f"{module.class_name} #{call.call + 1}"


def call_lines(module: Module, call: Call) -> list[str]:
    """A tooltip: name, class, shapes in and out, `extra_repr`, parameters."""
    lines = [module.name or module.class_name, class_text(module, call)]
    lines += [f"{tensor.path}: {tensor_text(tensor)}" for tensor in _few((*call.inputs, *call.outputs))]
    lines += textwrap.wrap(", ".join(f"{key}={value}" if key else value for key, value in module.extra_repr), WIDTH)
    if module.total_params:
        frozen = module.total_params - module.trainable_params
        lines.append(f"{module.total_params:,} parameters{f', {frozen:,} frozen' if frozen else ''}")
    return lines


def tensor_lines(tensor: TensorInfo | None, kind: str) -> list[str]:
    """The tooltip of an input, output or attached tensor."""
    return [kind] if tensor is None else [tensor.path, f"{kind}, {tensor_text(tensor)}"]


def tensor_text(tensor: TensorInfo) -> str:
    """Shape and type, and whether gradient reaches it."""
    return f"{shape_text(tensor.shape)} {tensor.dtype}{'' if tensor.requires_grad else ', no gradient'}"


def _few(tensors: Iterable[TensorInfo]) -> list[TensorInfo]:
    return list(tensors)[:MOST_ROWS]
