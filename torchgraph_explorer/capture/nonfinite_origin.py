"""Finds what else is not finite where NaN or infinity was seen first, before an update carries it to all parameters.

This happens once in a training, since it reads all parameters or gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.facts.names import named_parameters
from torchgraph_explorer.capture.modules_by_name import modules_by_name
from torchgraph_explorer.capture.no_dispatch import FLOATS, ORDINARY, gradient_of, has_memory, is_readable
from torchgraph_explorer.capture.tensor_tree import input_tensors
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import NotFiniteOrigin, OriginKind

MOST_NAMES = 200


def of_output(model: nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object]) -> NotFiniteOrigin | None:
    """Which inputs are not finite, in a pass whose output is not. If all inputs are finite: which parameters are not.

    None if one of them cannot be read without waiting or without calling code of others. Minus infinity in an input
    may be meant, where it masks.
    """
    inputs = [(path, one) for path, one in input_tensors(args, kwargs) if one.is_floating_point()]
    found = _origin("input", inputs, may_mask=True)
    return found if found is None or found.count else _origin("parameter", parameters_of(model))


def of_gradient(model: nn.Module, *, is_updated: bool = False) -> NotFiniteOrigin | None:
    """Which parameters have gradients that are not finite. If no gradient is finite: which parameters are not.

    None if one of them cannot be read without waiting. Also if no gradient is finite and the model `is_updated` with
    them, since nothing is known of the parameters before that.
    """
    gradients = ((name, gradient_of(one)) for name, one in parameters_of(model))
    found = _origin("gradient", ((name, one) for name, one in gradients if one is not None))
    if found is None or found.count < found.total:
        return found
    if is_updated:
        return None
    parameters = _origin("parameter", parameters_of(model))
    return parameters if parameters is not None and parameters.count else found


def parameters_of(model: nn.Module) -> Iterable[tuple[str, Tensor]]:
    """The parameters of the model that have values, with their names."""
    return named_parameters(modules_by_name(unwrapped(model))).values()


def _origin(
    kind: OriginKind, tensors: Iterable[tuple[str, Tensor]], *, may_mask: bool = False
) -> NotFiniteOrigin | None:
    names, total = [], 0
    for name, tensor in tensors:
        if not _is_on_host(tensor):
            return None
        total += 1
        if tensor.numel() and not _is_finite(tensor.detach(), may_mask=may_mask):
            names.append(name)
    some = names[-MOST_NAMES:] if kind == "gradient" else names[:MOST_NAMES]
    return NotFiniteOrigin(kind, tuple(some), len(names), total)


def _is_on_host(tensor: Tensor) -> bool:
    if type(tensor) not in ORDINARY or tensor.dtype not in FLOATS or tensor.layout is not torch.strided:
        return False
    if not is_readable(tensor) or torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    return tensor.is_cpu and has_memory(tensor)


def _is_finite(tensor: Tensor, *, may_mask: bool) -> bool:
    if may_mask:
        largest = torch.amax(tensor).item()
        return not math.isnan(largest) and largest != math.inf
    return math.isfinite(torch.linalg.vector_norm(tensor, math.inf).item())
