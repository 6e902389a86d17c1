"""`attach`: names an intermediate tensor inside `forward`, so that it is recorded."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.errors import OptionError

T = TypeVar("T")


def attach(
    tensor: T, module: nn.Module | None = None, name: str | None = None, *, parent: nn.Module | None = None
) -> T:
    """Record `tensor` as `name`, a node of its own inside the call of `module` that is being executed.

    Args:
        tensor: A tensor, or any nesting of lists, tuples, dicts and dataclasses with tensors in it. The result need not
            be assigned: the name belongs to the tensor itself.
        module: The module whose `forward` this is called in: `self`.
        name: What to call it. Attached twice in one call, the second is `name #2`.
        parent: What TorchExplorer calls `module`.

    Returns:
        `tensor` itself. Nothing else happens if nothing is watched, or this step is not logged.

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
        for one in process_state.attach_targets.open_steps():
            one.attach(tensor, module, str(name))  # a number, say, could not be recorded
    except Exception as fault:  # ours, in the middle of the user's forward pass
        warn(f"A tensor cannot be attached ({reason(fault)}). Training goes on.")
