"""Removes what a user may wrap a model in before it is watched."""

from __future__ import annotations

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


def unwrapped(model: nn.Module) -> nn.Module:
    """The model within the wrappers of `torch.compile` and the data-parallel classes; its module names are plain."""
    if isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
        return unwrapped(inner)
    if isinstance(model, (DataParallel, DistributedDataParallel)):
        return unwrapped(model.module)
    return model
