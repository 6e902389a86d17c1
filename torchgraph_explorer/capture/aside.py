"""Lets our own operations pass unseen: by autograd, by the trace, and by modes and subclasses of the user's."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes


class Aside:
    """A context in which what is done to the user's tensors is nobody's business but ours.

    A mode of the user's may count operations or print them, and a tensor subclass may do anything; neither is to
    notice that somebody looks.
    """

    __slots__ = ("_exits",)

    def __enter__(self) -> None:
        self._exits = ExitStack()
        enter = self._exits.enter_context
        enter(torch._C.DisableTorchFunction())
        enter(torch.no_grad())
        if torch._C._len_torch_dispatch_stack() > 0:
            enter(_disable_current_modes())
        if torch._C._functorch.peek_interpreter_stack() is not None:
            enter(_outside_transforms())

    def __exit__(self, *exception: object) -> None:
        self._exits.close()


def plain(tensor: Tensor) -> Tensor:
    """The tensor within its wrappers.

    `torch.func` has some, e.g. one that hides the samples from what `vmap` runs; of a distributed tensor it is the
    part that lies here.
    """
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, Tensor) else tensor


def is_readable(tensor: Tensor) -> bool:
    """Whether there are elements to look at: not so on the meta device, and while shapes are only simulated."""
    simulated = type(tensor).__name__ == "FakeTensor"
    return not (tensor.is_meta or simulated or torch._C._functorch.is_legacy_batchedtensor(tensor))


def _outside_transforms() -> Any:
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    return temporarily_clear_interpreter_stack()
