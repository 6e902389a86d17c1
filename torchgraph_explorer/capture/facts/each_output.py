"""Looks at each of several outputs of the model, and at the gradient that comes back to it.

Used within `capture`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.tensor_infos import Differentiable

MOST_OUTPUTS, MOST_PASSES = 8, 4
"""Outputs that are looked at, and passes that one is waited for in: gradient may not come back to it in the first one.
A model may return very many, as one for each time step."""


class EachOutput:
    """Calls a function with the path of an output, its elements, and the first gradient that comes back to it."""

    def __init__(self, look: Callable[[str, Tensor, Tensor], None], lock: threading.RLock, *, sizes: range) -> None:
        """Look at outputs whose number of elements is in `sizes`. `lock` is held while one is looked at."""
        self._look, self._lock, self._sizes = look, lock, sizes
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._waiting: dict[str, int] = {}
        self._seen: set[str] = set()
        self._is_open = True

    def begin(self, outputs: Iterable[Differentiable], fail: Callable[[Exception], None]) -> None:
        """The model has returned `outputs`. `fail` is called with a fault of ours when a gradient comes."""
        for one in outputs:
            tensor = one.tensor
            is_fit = tensor.dim() > 0 and tensor.dtype in FLOATS and tensor.numel() in self._sizes
            if is_fit and self._waits_for(one.path) and has_plain_elements(tensor):
                self._waiting[one.path] = self._waiting.get(one.path, 0) + 1
                self._handles.append(tensor.register_hook(Hook(self._taker(one.path, tensor.detach().clone()), fail)))

    def close(self) -> None:
        """Nothing more will come."""
        self._is_open = False
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()

    def _waits_for(self, path: str) -> bool:
        is_known = path in self._waiting or len(self._waiting) < MOST_OUTPUTS
        return self._is_open and is_known and path not in self._seen and self._waiting.get(path, 0) < MOST_PASSES

    def _taker(self, path: str, values: Tensor) -> Callable[[Tensor], None]:
        def take(gradient: Tensor) -> None:
            with self._lock:
                if not (self._is_open and path not in self._seen and has_plain_elements(gradient)):
                    return
                if gradient.shape == values.shape and gradient.dtype == values.dtype:
                    self._seen.add(path)
                    with NoDispatch():
                        self._look(path, values.float(), gradient.detach().float())

        return take
