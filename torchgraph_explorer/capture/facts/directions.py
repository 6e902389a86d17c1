"""Measures whether vectors that a loss compares by their direction all point the same way, as after a collapse."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.safe_hook import Hook
from torchgraph_explorer.capture.tensor_infos import Described, differentiable, hookable
from torchgraph_explorer.schema import Operation, OperationKind

LEAST_SAMPLES, LEAST_FEATURES, MOST_ELEMENTS = 8, 8, 1 << 16
"""Fewest samples and features of vectors that are looked at, and most elements."""

MOST_OUTPUTS = 4
"""Most outputs of a step that are looked at."""

_Place: TypeAlias = tuple[OperationKind, str]
"""`direction` and the path of an output of the model, or `part` and the name of a module."""

Fail: TypeAlias = Callable[[Exception], None]


class Directions:
    """The directions of the outputs `[samples, features]` of the first pass of a step that gets gradients.

    Where the model returns nothing but numbers, such as its loss, they are those of the outputs of its parts.

    Attributes:
        is_of_numbers: The model has returned nothing but numbers; None as long as it has not returned.
    """

    def __init__(self, measure: Measure, lock: threading.RLock, parts: set[str]) -> None:
        """No pass has begun.

        Args:
            measure: Measures tensors of the step.
            lock: Held while a gradient is read, which may be in an autograd thread.
            parts: Qualified names of the parts of the model whose outputs are looked at; not to be changed.
        """
        self._measure, self._lock, self._parts = measure, lock, parts
        self._is_open = True
        self._handles: list[RemovableHandle] = []
        self._of_parts: list[RemovableHandle] = []
        self._found: list[tuple[OperationKind, str, list[Row]]] = []
        self.is_of_numbers: bool | None = None

    @property
    def parts(self) -> set[str]:
        """The parts of the model whose outputs are still looked at."""
        has_room = self._is_open and not self._handles and len(self._of_parts) < MOST_OUTPUTS
        return self._parts if has_room and self.is_of_numbers is None else set()

    def end_part(self, name: str, outputs: Described, fail: Fail) -> None:
        """A part of the model, of the qualified name `name`, has returned `outputs`. `fail` is as of `end`."""
        for _, tensor in _vectors(outputs)[: MOST_OUTPUTS - len(self._of_parts)]:
            self._of_parts.append(self._hook(("part", name), tensor, fail))

    def end(self, outputs: Described, fail: Fail) -> None:
        """The model has returned `outputs`. `fail` is called with a fault of ours when their gradients come."""
        if self._handles or not self._is_open:
            return
        self.is_of_numbers = bool(outputs) and all(tensor.dim() == 0 for _, tensor in outputs)
        if not self.is_of_numbers:
            self._drop(self._of_parts)
        for path, tensor in _vectors(outputs)[:MOST_OUTPUTS]:
            self._handles.append(self._hook(("direction", path), tensor, fail))

    def _hook(self, place: _Place, tensor: Tensor, fail: Fail) -> RemovableHandle:
        handle: RemovableHandle = tensor.register_hook(Hook(partial(self._take, place, tensor.detach().clone()), fail))
        return handle

    def _take(self, place: _Place, values: Tensor, gradient: Tensor) -> None:
        with self._lock:
            is_like = has_plain_elements(gradient) and gradient.shape == values.shape
            if self._is_open and is_like and gradient.dtype == values.dtype:
                with NoDispatch():
                    stacked = torch.stack(_directions(values.float(), gradient.detach().float()))
                    self._found.append((*place, [Row(number) for number in self._measure.numbers(stacked)]))

    def close(self) -> None:
        """Nothing more will come."""
        self._is_open = False
        self._drop(self._handles)
        self._drop(self._of_parts)

    def _drop(self, handles: list[RemovableHandle]) -> None:
        for handle in handles:
            handle.remove()
        handles.clear()

    def operations(self, statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
        """What was found, once the `statistics` of the step are known."""
        return tuple(
            Operation(kind, name, numbers=tuple(row(statistics, "mean") for row in rows))
            for kind, name, rows in self._found
            if kind == "direction" or self.is_of_numbers
        )


def _vectors(outputs: Described) -> list[tuple[str, Tensor]]:
    """The outputs `[samples, features]` that gradients come to, with their paths."""
    found = [(one.path, one.tensor) for one in hookable(differentiable(outputs), are_results=False)]
    return [(path, tensor) for path, tensor in found if _is_looked_at(tensor)]


def _is_looked_at(tensor: Tensor) -> bool:
    if tensor.dtype not in FLOATS or not has_plain_elements(tensor) or tensor.numel() > MOST_ELEMENTS:
        return False
    sizes = tuple(tensor.shape)  # a nested tensor, which has none, is not plain
    return len(sizes) == 2 and sizes[0] >= LEAST_SAMPLES and sizes[1] >= LEAST_FEATURES


def _directions(values: Tensor, gradient: Tensor) -> list[Tensor]:
    """How much gradients depend on the vectors' lengths, and how far these point apart: `direction` in `Operation`."""
    products = values * gradient
    along = products.sum(1).abs().sum() / products.abs().sum().clamp(min=TINY)
    unit = values / torch.linalg.vector_norm(values, dim=1, keepdim=True).clamp(min=TINY)
    center = unit.mean(0)
    return [along, (unit - center).square().sum(1).mean()]
