"""`attach`: names an intermediate tensor inside `forward`, so that it is recorded."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import nn

from torchgraph_explorer import interrupts
from torchgraph_explorer.capture.attach_targets import AttachedAs
from torchgraph_explorer.capture.process_state import process_state
from torchgraph_explorer.console import reason, warn_once
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
    """Record `tensor` under `name`, as a node of the graph inside the current call of `module`.

    In the training loop, outside `forward`, there is no module. Then the tensor is kept whole if
    `watch(keep=Keep(name))` selects it, and belongs to the latest step, until the next one begins. If the loop first
    attaches a name before the first step, the name is taken for that of a batch, which belongs to the step that begins
    next.

    Args:
        tensor: A tensor, or any nesting of lists, tuples, dicts and dataclasses with tensors in it. The result need not
            be assigned: the name belongs to the tensor itself.
        module: The module whose `forward` calls this: `self`.
        name: The name. If it is attached twice in one call, the second tensor is called `name #2`.
        parent: TorchExplorer's name for `module`.
        kind: The tensor's part in the training, for the dependency graph of kept tensors: `"input"`, `"target"`,
            `"loss"` or `"intermediate"`.
        node: The node of that graph that it shares with other tensors. By default, it has a node of its own.

    Returns:
        `tensor` itself. If nothing is watched, or this step is not logged, nothing else happens.

    Raises:
        OptionError: The name is missing or empty, `module` is no module, or `kind` is not one of these.

    Example:
        >>> class Block(nn.Module):
        ...     def forward(self, x):
        ...         return attach(x + 1, self, "sum")
        >>> Block()(torch.zeros(2))
        tensor([1., 1.])
    """
    module = parent if module is None else module
    if module is not None and not isinstance(module, nn.Module):
        raise OptionError(
            f"attach() was given {type(module).__name__} as the module. Inside forward, call "
            f"attach(tensor, self, 'name')."
        )
    if name is None or name == "":
        raise OptionError(
            "attach() needs a name. Inside forward, call attach(tensor, self, 'name'); in the training loop, "
            "call attach(tensor, name='name')."
        )
    if kind not in KINDS:
        raise OptionError(f"attach(kind={kind!r}) is not a kind of tensor. Choose from {', '.join(KINDS[1:])}.")
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
        warn_once(f"A tensor cannot be attached ({reason(fault)}). Training goes on.")
