"""The tensors of a call, each with its description: what the record says of it, and the edge of its gradient."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import plain
from torchgraph_explorer.capture.path_gradients import Edge, edge_of, is_stale
from torchgraph_explorer.capture.tensor_tree import tensor_info
from torchgraph_explorer.schema import TensorInfo

Described: TypeAlias = "list[tuple[TensorInfo, Tensor]]"


def described(found: Iterable[tuple[str, Tensor]]) -> Described:
    """Each tensor, without the wrappers of `torch.func` and the like, with what is known of it."""
    return [(tensor_info(path, tensor), tensor) for path, tensor in ((path, plain(each)) for path, each in found)]


def infos(found: Described) -> tuple[TensorInfo, ...]:
    """The descriptions alone."""
    return tuple(info for info, _ in found)


def note_edges(edges: dict[Edge, list[str]], inputs: Described) -> None:
    """Add to `edges` where the gradients of inputs are delivered, with the paths of those inputs."""
    for info, tensor in inputs:
        if tensor.requires_grad:
            edges.setdefault(edge_of(tensor), []).append(info.path)


def hookable(found: Described, *, are_results: bool) -> Described:
    """Those with a gradient that a hook can be put on without making torch use a stale view.

    If they `are_results` of the whole forward pass, and all of them are stale views, these are returned: without any
    hook, the backward pass would not be noticed.
    """
    with_gradient = [each for each in found if each[1].requires_grad]
    fresh = [each for each in with_gradient if not is_stale(each[1])]
    return fresh or (with_gradient if are_results else [])
