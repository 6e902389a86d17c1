"""Has the test cases make their tensors on another device than the processor, without a mode of torch in the way.

Set `TORCHGRAPH_TEST_DEVICE=cuda` to train the cases of the compatibility table on a GPU.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

DEVICE = os.environ.get("TORCHGRAPH_TEST_DEVICE", "cpu")
"""Where the cases are trained."""

_FACTORIES = (
    *("arange", "as_tensor", "empty", "empty_strided", "eye", "from_numpy", "full", "linspace", "ones", "rand"),
    *("randint", "randn", "randperm", "tensor", "zeros"),
)


@contextmanager
def made_on(device: str) -> Iterator[None]:
    """What makes tensors makes them on `device`, unless it is told where or draws them from a generator."""
    if device == "cpu":
        yield
        return
    originals = {name: getattr(torch, name) for name in _FACTORIES}
    for name, original in originals.items():
        setattr(torch, name, _making(original, device))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(torch, name, original)


def _making(original: Callable[..., Tensor], device: str) -> Callable[..., Tensor]:
    @functools.wraps(original)
    def make(*args: Any, **named: Any) -> Tensor:
        if named.get("device") is not None:
            return original(*args, **named)
        made = original(*args, **named)
        requires_grad = made.requires_grad and made.is_leaf
        return made.detach().to(device).requires_grad_(requires_grad) if requires_grad else made.to(device)

    return make
