"""Leaves the dispatch modes and `torch.func` transforms of this thread for a moment, and reorders them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat, starmap
from typing import Any

import torch
from torch._ops import _len_torch_dispatch_stack_pre_dispatch, _pop_mode_from_pre_dispatch
from torch.utils._python_dispatch import _push_mode

_length = torch._C._len_torch_dispatch_stack
_at = torch._C._get_dispatch_stack_at
_transforms = torch._C._functorch


def are_modes_on() -> bool:
    """Whether this thread has any mode or transform."""
    return _length() > 0 or _transforms.peek_interpreter_stack() is not None


def modes() -> list[Any]:
    """The dispatch modes of this thread, the lowest first."""
    return [_at(i) for i in range(_length())]


def set_modes(wanted: Iterable[Any]) -> None:
    """Set the dispatch modes of this thread, the lowest first."""
    while _length() > 0:
        torch._C._pop_torch_dispatch_stack(None)
    for mode in wanted:
        torch._C._push_on_torch_dispatch_stack(mode)


class OutsideModes:
    """Leaves the modes and transforms of this thread, until `restore`."""

    def __init__(self) -> None:
        """Note the dispatch modes; all are still on."""
        self._modes = modes()
        self._traced: list[Any] = []
        self._transforms: list[Any] = []

    def leave(self) -> None:
        """Leave all modes. No instruction is between removing a mode and keeping it, so an interrupt loses none."""
        take = torch._C._functorch.pop_dynamic_layer_stack
        self._traced.extend(starmap(_pop_mode_from_pre_dispatch, repeat((), _len_torch_dispatch_stack_pre_dispatch())))
        set_modes(())
        self._transforms.extend(starmap(take, repeat((), _transforms.get_dynamic_layer_stack_depth())))

    def restore(self) -> None:
        """Enter the modes again. May be called twice."""
        while (depth := _transforms.get_dynamic_layer_stack_depth()) < len(self._transforms):
            _transforms.push_dynamic_layer_stack(self._transforms[-1 - depth])
        set_modes(self._modes)
        while (at := _len_torch_dispatch_stack_pre_dispatch()) < len(self._traced):
            _push_mode(self._traced[-1 - at])
