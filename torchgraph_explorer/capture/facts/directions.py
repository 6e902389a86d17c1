"""Measures whether vectors that a loss compares by their direction all point the same way, as after a collapse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.tensor_infos import Described, differentiable, hookable
from torchgraph_explorer.schema import Operation

LEAST_SAMPLES, LEAST_FEATURES, MOST_ELEMENTS = 8, 8, 1 << 16
"""Fewest samples and features of vectors that are looked at, and most elements."""

MOST_OUTPUTS = 4
"""Most outputs of a step that are looked at."""


class Directions:
    """The directions of the outputs `[samples, features]` of the first pass of a step that gets gradients."""

    def __init__(self, measure: Measure, lock: threading.RLock) -> None:
        """No pass has begun. `lock` is held while a gradient is read, which may be in an autograd thread."""
        self._measure, self._lock = measure, lock
        self._is_open = True
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        self._found: list[tuple[str, list[Row]]] = []

    def end(self, outputs: Described, fail: Callable[[Exception], None]) -> None:
        """The model has returned `outputs`. `fail` is called with a fault of ours when their gradients come."""
        if self._handles or not self._is_open:
            return
        for one in hookable(differentiable(outputs), are_results=False):
            path, tensor = one.path, one.tensor
            if tensor.dtype not in FLOATS or not has_plain_elements(tensor) or tensor.numel() > MOST_ELEMENTS:
                continue
            sizes = tuple(tensor.shape)  # a nested tensor, which has none, is not plain
            if (
                len(sizes) == 2
                and sizes[0] >= LEAST_SAMPLES
                and sizes[1] >= LEAST_FEATURES
                and len(self._handles) < MOST_OUTPUTS
            ):
                take = partial(self._take, path, tensor.detach().clone())
                self._handles.append(tensor.register_hook(Hook(take, fail)))

    def _take(self, path: str, values: Tensor, gradient: Tensor) -> None:
        with self._lock:
            is_like = has_plain_elements(gradient) and gradient.shape == values.shape
            if self._is_open and is_like and gradient.dtype == values.dtype:
                with NoDispatch():
                    stacked = torch.stack(_directions(values.float(), gradient.detach().float()))
                    self._found.append((path, [Row(number) for number in self._measure.numbers(stacked)]))

    def close(self) -> None:
        """Nothing more will come."""
        self._is_open = False
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def operations(self, statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
        """What was found, once the `statistics` of the step are known."""
        return tuple(
            Operation("direction", path, numbers=tuple(row(statistics, "mean") for row in rows))
            for path, rows in self._found
        )


def _directions(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """How much gradients depend on the vectors' lengths, and how far these point apart: `direction` in `Operation`."""
    products = values * gradient
    along = products.sum(1).abs().sum() / products.abs().sum().clamp(min=TINY)
    unit = values / torch.linalg.vector_norm(values, dim=1, keepdim=True).clamp(min=TINY)
    center = unit.mean(0)
    return [along, (unit - center).square().sum(1).mean()]
