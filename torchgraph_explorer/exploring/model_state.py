"""Whether a model is still what it was."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def state_of(model: nn.Module) -> object:
    """Something that differs once modules, their modes, parameters or buffers have changed.

    That elements were changed through `.data` shows nowhere.
    """
    return tuple(
        (
            id(module),
            module.training,
            *map(_version, (*module.parameters(recurse=False), *module.buffers(recurse=False))),
        )
        for module in model.modules()
    )


def _version(tensor: Tensor) -> tuple[int, int, int]:
    address = tensor.data_ptr() if torch._C._has_storage(tensor) else 0
    return id(tensor), address, 0 if tensor.is_inference() else tensor._version
