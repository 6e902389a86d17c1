"""Modules of torch whose inside need not be traced, since it is known what they do."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_hooks

from torchgraph_explorer.capture.no_dispatch import ORDINARY

SIMPLE: frozenset[type[nn.Module]] = frozenset(
    {
        nn.Linear,
        nn.Bilinear,
        nn.Conv1d,
        nn.Conv2d,
        nn.Conv3d,
        nn.ConvTranspose1d,
        nn.ConvTranspose2d,
        nn.ConvTranspose3d,
        nn.LayerNorm,
        nn.GroupNorm,
        nn.RMSNorm,
        nn.Identity,
        nn.Dropout,
        nn.Dropout1d,
        nn.Dropout2d,
        nn.Dropout3d,
        nn.ReLU,
        nn.ReLU6,
        nn.LeakyReLU,
        nn.ELU,
        nn.CELU,
        nn.SELU,
        nn.GELU,
        nn.SiLU,
        nn.Mish,
        nn.Hardswish,
        nn.Hardtanh,
        nn.Hardsigmoid,
        nn.Tanh,
        nn.Sigmoid,
        nn.LogSigmoid,
        nn.Softplus,
        nn.Softmax,
        nn.LogSoftmax,
        nn.Flatten,
        nn.Unflatten,
        nn.AvgPool1d,
        nn.AvgPool2d,
        nn.AvgPool3d,
        nn.AdaptiveAvgPool1d,
        nn.AdaptiveAvgPool2d,
        nn.AdaptiveAvgPool3d,
    }
)
"""Classes, and none derived from them. They compute one result from their arguments and from parameters `weight` and
`bias`, call no module, and write into nothing, unless they are asked to work in place."""

_FORWARDS: dict[type[nn.Module], object] = {one: one.forward for one in SIMPLE}
"""What they do. A program may have replaced it, for all modules of a class."""

GLOBAL_HOOKS = (
    torch_hooks._global_forward_pre_hooks,
    torch_hooks._global_forward_hooks,
    torch_hooks._global_backward_pre_hooks,
    torch_hooks._global_backward_hooks,
)
"""Hooks on all modules of the process. torch 2.6 has no function that asks for them."""


def is_simple(module: nn.Module, arguments: Iterable[Tensor]) -> bool:
    """Whether `module`, called with `arguments` and with our hooks on it, does what its class does and nothing else."""
    own = vars(module)
    return (
        _FORWARDS.get(type(module)) is type(module).forward
        and not (own.get("inplace") or own["_modules"] or own["_backward_hooks"] or own["_backward_pre_hooks"])
        and len(own["_forward_pre_hooks"]) <= 1  # ours
        and len(own["_forward_hooks"]) <= 1
        and not (own.keys() & {"forward", "weight", "bias"})  # put on the module itself
        and all(one is None or type(one) in ORDINARY for one in own["_parameters"].values())
        and all(type(one) in ORDINARY for one in arguments)
        and not any(GLOBAL_HOOKS)
        and not torch._C._is_any_autocast_enabled()  # it keeps converted parameters for the module's other calls
    )
