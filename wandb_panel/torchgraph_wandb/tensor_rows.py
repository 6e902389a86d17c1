"""The lines of the part `tensors` of the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchgraph_explorer.schema import Kind, ModuleGraph
from torchgraph_wandb.chart_data import ChartData, call_key
from torchgraph_wandb.chart_text import GraphText
from torchgraph_wandb.heat_strips import HeatStrips

ROLES = ("input", "output", "attached", "param")

SIDES: dict[Kind, tuple[str, int]] = {
    "value": ("", 0),
    "grad_norm": ("", 1),
    "grad": ("", 1),
    "update": (": update", 0),
    "optimizer_grad": (": update", 1),
    "update_ratio": (": update / value", 0),
    "time": (": time", 0),
    "memory": (": memory", 0),
}
"""What is added to a tensor's path for each kind, and its column: 0 for values, 1 for gradients."""


def tensor_rows(data: ChartData, strips: HeatStrips, text: GraphText) -> Iterable[tuple[str, ...]]:
    """A line for each tensor with its values and its gradients; inputs, outputs, attached tensors, then parameters."""
    shapes = _shapes(data.graph, text)
    pairs: dict[tuple[str, str, str], list[str]] = {}
    names: dict[tuple[str, str, str], str] = {}
    for number, one in enumerate(data.series):
        if one.role not in ROLES:  # of an edge, which the chart draws without a number
            continue
        owner = f"{one.module}#{'*' if one.call is None else one.call}"
        suffix, side = SIDES[one.kind]
        name = text.argument_name(one.module, one.path) if one.role == "input" else one.path
        names[owner, one.role, one.path + suffix] = name + suffix
        pairs.setdefault((owner, one.role, one.path + suffix), ["", ""])[side] = strips.encoded(number)
    for (owner, role, path), (left, right) in sorted(pairs.items(), key=lambda item: ROLES.index(item[0][1])):
        key = (owner, role, path)
        yield owner, role, path, names[key], shapes.get(key, ""), left, right


def _shapes(graph: ModuleGraph, text: GraphText) -> Mapping[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for number, call in enumerate(graph.calls):
        owner = call_key(graph, number)
        found |= {(owner, "input", tensor.path): text.shape(tensor) for tensor in call.inputs}
        found |= {(owner, "output", tensor.path): text.shape(tensor) for tensor in call.outputs}
    for module in graph.modules:
        found |= {(f"{module.name}#*", "param", tensor.path): text.shape(tensor) for tensor in module.params}
    for node in graph.nodes:
        if node.kind == "attached" and node.tensor:
            found[call_key(graph, node.inside), "attached", node.tensor.path] = text.shape(node.tensor)
    return found
