"""What is said of modules and tensors in the chart."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from torchgraph_explorer.families import RULES
from torchgraph_explorer.schema import STATISTICS, Call, Frame, Module, Series, Shape, TensorInfo

MOST_ROWS = 12
"""Tensors that a tooltip names."""

WIDTH = 58
"""Letters in a line of a tooltip."""

FAMILIES = (*dict.fromkeys(family for family, _ in RULES), "other", "tensor")
"""What the chart has a colour for: the families of modules, and one more for tensors."""


def family_number(family: str) -> int:
    """The place of a family in `FAMILIES`."""
    return FAMILIES.index(family)


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


def first_text(frame: Frame, origin: Series | None, class_name: str) -> str:
    """`First NaN at step 6: blocks.0.inner (call 1), output`; the place is left out where it is not known."""
    if origin is None:
        return f"First NaN or infinity at step {frame.step:,}"
    row = frame.statistics[frame.rows[frame.series == origin.id][0]]
    kind = "NaN" if row[STATISTICS.index("nan")] > 0 else "infinity"
    call = "" if origin.call is None else f" (call {origin.call + 1})"
    return f"First {kind} at step {frame.step:,}: {origin.module or class_name}{call}, {series_text(origin)}"


def series_text(series: Series) -> str:
    """What a series is called beside its module: `output`, `gradient of weight`."""
    name = f"parameter {series.path}" if series.role == "param" else series.path
    if series.role == "attached":
        name = f"attached tensor {series.path}"
    return {
        "value": name,
        "grad": f"gradient of {series.path}",
        "grad_norm": f"gradient of {series.path}",
        "optimizer_grad": f"gradient of {series.path} that the optimizer took",
        "update": f"update of {series.path}",
        "update_ratio": f"update-to-weight ratio of {series.path}",
    }[series.kind]


def _few(tensors: Iterable[TensorInfo]) -> list[TensorInfo]:
    return list(tensors)[:MOST_ROWS]
