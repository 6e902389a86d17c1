"""The lines of the part `tensors` of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchgraph_explorer.schema import Kind, ModuleGraph
from torchgraph_wandb.chart_data import ChartData, call_key
from torchgraph_wandb.chart_text import shape_text
from torchgraph_wandb.heat_strips import HeatStrips

ROLES = ("input", "output", "attached", "param")

SIDES: dict[Kind, tuple[str, int]] = {
    "value": ("", 0),
    "grad_norm": ("", 1),
    "grad": ("", 1),
    "update": (": update", 0),
    "optimizer_grad": (": update", 1),
    "update_ratio": (": update / value", 0),
}
"""What is added to a tensor's path for each kind, and its column: 0 for values, 1 for gradients."""


def tensor_rows(data: ChartData, strips: HeatStrips) -> Iterable[tuple[str, ...]]:
    """A line for each tensor with its values and its gradients; inputs, outputs, attached tensors, then parameters."""
    shapes = _shapes(data.graph)
    pairs: dict[tuple[str, str, str], list[str]] = {}
    for number, one in enumerate(data.series):
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        suffix, side = SIDES[one.kind]
        pairs.setdefault((owner, one.role, one.path + suffix), ["", ""])[side] = strips.encoded(number)
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
