"""`attach`: names an intermediate tensor inside `forward`, so that it is recorded."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.console import reason
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.schema import TensorKind

T = TypeVar("T")

KINDS: tuple[Any, ...] = (None, "input", "intermediate", "target", "loss")
"""The values of `kind`."""


def attach(
    tensor: T,
    module: nn.Module | None = None,
    name: str | None = None,
    *,
    parent: nn.Module | None = None,
    kind: TensorKind | None = None,
    node: str | None = None,
) -> T:
    """Record `tensor` as `name`, a node of its own inside the call of `module` that is being executed.

    Without a module, in the training loop: keep it whole, if `watch(keep=Keep(name))` selects it. It belongs to the
    latest step until the next one begins. A name that the loop first attaches before the first step names batches, and
    belongs to the step that begins next.

    Args:
        tensor: A tensor, or any nesting of lists, tuples, dicts and dataclasses with tensors in it. The result need not
            be assigned: the name belongs to the tensor itself.
        module: The module whose `forward` this is called in: `self`.
        name: What to call it. Attached twice in one call, the second is `name #2`.
        parent: What TorchExplorer calls `module`.
        kind: What it is to the training, for the dependency graph of kept tensors: `"input"`, `"target"`, `"loss"` or
            `"intermediate"`.
        node: The node that it shares with others in that graph. By default, it has one of its own.

    Returns:
        `tensor` itself. Nothing else happens if nothing is watched, or this step is not logged.

    Raises:
        OptionError: The name is missing, or the kind is not one of those.

    Example:
        >>> class Block(nn.Module):
        ...     def forward(self, x):
        ...         return attach(x + 1, self, "sum")
        >>> Block()(torch.zeros(2))
        tensor([1., 1.])
    """
    module = parent if module is None else module
    if name is None:
        raise OptionError(
            "attach() needs a name. Inside forward, call attach(tensor, self, 'name'), and in the training loop "
            "attach(tensor, name='name')."
        )
    if kind not in KINDS:
        raise OptionError(f"attach(kind={kind!r}) is no kind of tensor. Choose from {', '.join(KINDS[1:])}.")
    if not torch.compiler.is_compiling():
        _attach(tensor, module, AttachedAs(str(name), kind, "" if node is None else str(node)))
    return tensor


@interrupts.guarded
def _attach(tensor: object, module: nn.Module | None, name: AttachedAs) -> None:
    try:
        targets = process_state.attach_targets
        if module is None:
            for loop in targets.loops:
                loop.attach_in_loop(tensor, name)
            return
        for one in targets.open_steps():
            one.attach(tensor, module, name)
    except Exception as fault:  # ours, in the middle of the user's forward pass
        process_state.warn_once(f"A tensor cannot be attached ({reason(fault)}). Training goes on.")
