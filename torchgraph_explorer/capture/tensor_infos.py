"""The tensors of a call, each with its description: what the record says of it, and the edge of its gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import plain, untransformed
from torchgraph_explorer.capture.path_gradients import Edge, edge_and_staleness, has_edge
from torchgraph_explorer.capture.tensor_tree import tensor_info
from torchgraph_explorer.schema import TensorInfo
from torchgraph_explorer.unvisited import unvisited

Described: TypeAlias = "list[tuple[TensorInfo, Tensor]]"
"""A distributed tensor is here as it is, since gradient comes to it, and not to the part of this rank."""


def described(found: Iterable[tuple[str, Tensor]]) -> Described:
    """Each tensor, without the wrappers of `torch.func`, with what is known of it and of its part on this rank."""
    return [(tensor_info(path, tensor := untransformed(each), values=plain(tensor)), tensor) for path, each in found]


def infos(found: Described) -> tuple[TensorInfo, ...]:
    """The descriptions alone."""
    return unvisited((found[0][0],) if len(found) == 1 else tuple([info for info, _ in found]))


class Differentiable(NamedTuple):
    """A tensor that requires a gradient.

    Attributes:
        path: Its path.
        tensor: The tensor.
        edge: Where its gradient is delivered; see `path_gradients.edge_of`.
        is_stale: See `path_gradients.is_stale`.
    """

    path: str
    tensor: Tensor
    edge: Edge
    is_stale: bool


def differentiable(found: Described) -> list[Differentiable]:
    """Those that have an edge. Each is looked at once: asking torch takes long, and a stale view longer."""
    return [
        Differentiable(info.path, tensor, *edge_and_staleness(tensor))
        for info, tensor in found
        if info.requires_grad and has_edge(tensor)
    ]


def hookable(found: list[Differentiable], *, are_results: bool) -> list[Differentiable]:
    """Those that a hook can be put on without making torch use a stale view.

    If they `are_results` of the whole forward pass, and all of them are stale views, these are returned: without any
    hook, the backward pass would not be noticed.
    """
    fresh = [each for each in found if not each.is_stale]
    return fresh or (found if are_results else [])
