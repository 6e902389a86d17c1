"""Lets our own operations pass unseen: by autograd, by the trace, and by modes and subclasses of the user's."""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

ORDINARY = frozenset({Tensor, torch.nn.Parameter})
"""Types of tensors that do what torch does, and are not wrapped by Python."""

_is_transformed = torch._C._functorch.is_functorch_wrapped_tensor
_is_batched = torch._C._functorch.is_legacy_batchedtensor


class Aside:
    """A context in which what is done to the user's tensors is nobody's business but ours.

    A mode of the user's may count operations or print them, and a tensor subclass may do anything; neither is to
    notice that somebody looks.
    """

    __slots__ = ("_functions", "_gradient", "_more")

    def __enter__(self) -> None:
        self._more: ExitStack | None = None
        self._functions = torch._C.DisableTorchFunction()
        self._functions.__enter__()
        self._gradient = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # as `no_grad`, at a tenth of its cost
        if torch._C._len_torch_dispatch_stack() > 0 or torch._C._functorch.peek_interpreter_stack() is not None:
            try:
                self._more = _outside_modes()
            except BaseException:
                self.__exit__()
                raise

    def __exit__(self, *exception: object) -> None:
        if self._more is not None:
            self._more.close()
        torch._C._set_grad_enabled(self._gradient)
        self._functions.__exit__(None, None, None)


def _outside_modes() -> ExitStack:
    """Leaves the user's dispatch modes and `torch.func` transforms, until it is closed."""
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    with ExitStack() as exits:
        exits.enter_context(_disable_current_modes())
        if torch._C._functorch.peek_interpreter_stack() is not None:
            exits.enter_context(temporarily_clear_interpreter_stack())
        return exits.pop_all()


def plain(tensor: Tensor) -> Tensor:
    """The tensor within its wrappers.

    `torch.func` has some, e.g. one that hides the samples from what `vmap` runs; of a distributed tensor it is the
    part that lies here.
    """
    while _is_transformed(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if type(tensor) in ORDINARY:
        return tensor
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, Tensor) else tensor


def is_readable(tensor: Tensor) -> bool:
    """Whether there are elements to look at: not so on the meta device, and while shapes are only simulated."""
    simulated = type(tensor) not in ORDINARY and type(tensor).__name__ == "FakeTensor"
    return not (tensor.is_meta or simulated or _is_batched(tensor))


def has_memory(tensor: Tensor) -> bool:
    """Whether its elements are in memory: sharding and offloading free what is not in use, and fill it again."""
    if type(tensor) not in ORDINARY or tensor.layout is not torch.strided or tensor.is_nested:
        return True
    span = tensor.numel()
    if span == 0 or not torch._C._has_storage(tensor):
        return True
    if not tensor.is_contiguous():
        span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + span) * tensor.element_size()
