"""Hides our own operations from autograd, from the trace, and from the user's modes and tensor subclasses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchgraph_explorer.capture.mode_stack import OutsideModes, are_modes_on
from torchgraph_explorer.interrupts import this_thread

ORDINARY = frozenset({Tensor, torch.nn.Parameter})
"""Types of tensors that do what torch does, and are not wrapped by Python."""

FLOATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""Types of elements that torch computes with on every device."""

UNREADABLE = frozenset(
    found
    for name in ("float4_e2m1fn_x2", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2")  # older releases lack some
    if isinstance(found := getattr(torch, name, None), torch.dtype)
)
"""Types of elements that torch only stores: it cannot convert or copy them."""

_DisableTorchFunction = torch._C.DisableTorchFunction
_is_grad_enabled, _set_grad_enabled = torch.is_grad_enabled, torch._C._set_grad_enabled
_are_function_modes_on = torch._C._is_torch_function_mode_enabled
_is_transformed = torch._C._functorch.is_functorch_wrapped_tensor
_is_batched = torch._C._functorch.is_legacy_batchedtensor


class NoDispatch:
    """A context in which only torch itself handles operations on the user's tensors.

    A mode of the user's may count operations or print them, and a tensor subclass may do anything. Neither may notice
    that a tensor is measured.
    """

    __slots__ = ("_depth", "_functions", "_gradient", "_modes")

    def __enter__(self) -> None:
        self._functions: Any = None
        self._gradient: bool | None = None
        self._modes: OutsideModes | None = None
        changed = this_thread.changed
        self._depth = len(changed)
        changed.append(self)  # before anything is changed: see `interrupts`
        try:
            functions = self._functions = _DisableTorchFunction()
            functions.__enter__()
            self._gradient = _is_grad_enabled()
            _set_grad_enabled(False)  # as `no_grad`, at a tenth of its cost
            if are_modes_on():
                self._modes = OutsideModes()
                self._modes.leave()
        except Exception:
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        self.restore()
        del this_thread.changed[self._depth :]

    def restore(self) -> None:
        """Restore what was on before; see `interrupts.Changed`."""
        if self._modes is not None:
            self._modes.restore()
        if self._gradient is not None:
            _set_grad_enabled(self._gradient)
        if self._functions is not None:
            self._functions.__exit__(None, None, None)


def is_leaf(tensor: Tensor) -> bool:
    """Its `is_leaf`, without using a view of what requires a gradient: False for such a view.

    Asking torch uses the view. If its memory was written to since, that makes another node of autograd, or raises.
    """
    base = tensor._base if tensor._is_view() else None
    return (base is None or not base.requires_grad) and tensor.is_leaf


def gradient_of(parameter: Tensor) -> Tensor | None:
    """Its `.grad`. Torch warns of looking at that of one that was computed, as TorchOpt puts into modules."""
    return parameter.grad if is_leaf(parameter) or parameter.retains_grad else None


def is_hidden(tensor: Tensor) -> bool:
    """Whether what is done to `tensor` is hidden without a `NoDispatch`, as is usual in a backward pass."""
    return not (
        type(tensor) is not Tensor
        or _is_grad_enabled()
        or _are_function_modes_on()
        or are_modes_on()
        or _is_transformed(tensor)
    )


def untransformed(tensor: Tensor) -> Tensor:
    """The tensor without the wrappers of `torch.func`, e.g. to hide the samples from the function that `vmap` runs."""
    while _is_transformed(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


transforms_on = torch._C._functorch.get_dynamic_layer_stack_depth
"""How many transforms of `torch.func` are on in this thread."""


def of_last_pass(gradient: Tensor, level: int) -> Tensor:
    """Of several backward passes that `vmap` makes at once, the gradient of the last one.

    `level` is how many transforms were on in the forward pass: what these hide belongs to one backward pass.
    """
    functorch = torch._C._functorch
    while functorch.is_batchedtensor(gradient) and functorch.maybe_get_level(gradient) > level:
        gradient = functorch.get_unwrapped(gradient).select(functorch.maybe_get_bdim(gradient), -1)
    return gradient


def plain(tensor: Tensor) -> Tensor:
    """The tensor without its wrappers. Of a distributed tensor, this is the part on this rank."""
    tensor = untransformed(tensor)
    if type(tensor) in ORDINARY:
        return tensor
    local = getattr(tensor, "_local_tensor", None)
    return local if isinstance(local, Tensor) else tensor


def is_readable(tensor: Tensor) -> bool:
    """Whether there are elements to read.

    There are none on the meta device, and while shapes are only simulated; those of some types cannot be read.
    """
    if type(tensor) not in ORDINARY and type(tensor).__name__ == "FakeTensor":
        return False
    return not (tensor.is_meta or _is_batched(tensor) or tensor.dtype in UNREADABLE)


def has_plain_elements(tensor: Tensor) -> bool:
    """Whether it is an ordinary strided tensor with elements to read, without a wrapper of `torch.func`."""
    is_ordinary = type(tensor) in ORDINARY and not _is_transformed(tensor)
    return is_ordinary and tensor.layout is torch.strided and not tensor.is_nested and is_readable(tensor)


def has_memory(tensor: Tensor) -> bool:
    """Whether its elements are in memory. Sharding and offloading free memory that is not in use, and fill it again."""
    if type(tensor) not in ORDINARY or tensor.layout is not torch.strided or tensor.is_nested:
        return True
    span = tensor.numel()
    if span == 0 or not torch._C._has_storage(tensor):
        return True
    if not tensor.is_contiguous():
        span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() >= (tensor.storage_offset() + span) * tensor.itemsize
