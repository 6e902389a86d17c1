"""`attach`: gives an intermediate tensor a name inside `forward`."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture import attach_targets
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError

T = TypeVar("T")


def attach(
    tensor: T, module: nn.Module | None = None, name: str | None = None, *, parent: nn.Module | None = None
) -> T:
    """Record `tensor` as `name`, a node of its own inside the call of `module` that is being executed.

    Args:
        tensor: A tensor, or any nesting of lists, tuples, dicts and dataclasses that holds some. It need not be
            assigned again: the name sticks to the tensor itself.
        module: The module in whose `forward` this stands: `self`.
        name: What to call it. Attached twice in one call, the second is `name #2`.
        parent: What TorchExplorer calls `module`.

    Returns:
        `tensor` itself. Where nothing is watched, or this step is not logged, that is all that happens.

    Raises:
        OptionError: The module or the name is missing.
    """
    module = parent if module is None else module
    if module is None or name is None:
        raise OptionError("attach() needs a module and a name. Inside forward, call attach(tensor, self, 'name').")
    if not torch.compiler.is_compiling():
        _attach(tensor, module, name)
    return tensor


@interrupts.guarded
def _attach(tensor: object, module: nn.Module, name: object) -> None:
    try:
        for one in attach_targets.open_steps():
            one.attach(tensor, module, str(name))  # a number, say, would spoil the record
    except Exception as fault:  # ours, in the middle of the user's forward pass
        warn(f"A tensor cannot be attached ({reason(fault)}). Training goes on.")
