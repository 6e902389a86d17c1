"""The lines of the table's part `tensors`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchgraph_explorer.schema import Kind, ModuleGraph
from torchgraph_wandb.state import State, call_key
from torchgraph_wandb.strips import Strips
from torchgraph_wandb.wording import shape_text

ROLES = ("input", "output", "attached", "param")

SIDES: dict[Kind, tuple[str, int]] = {
    "value": ("", 0),
    "grad_norm": ("", 1),
    "grad": ("", 1),
    "update": (": update", 0),
    "optimizer_grad": (": update", 1),
    "update_ratio": (": update / value", 0),
}
"""What is added to a tensor's path for each kind, and on which side of that line it stands."""


def tensor_rows(state: State, drawn: Strips) -> Iterable[tuple[str, ...]]:
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
