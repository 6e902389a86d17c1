"""Finds gradients that are changed after the update that used them, where it has no effect."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.optim import Optimizer

from torchgraph_explorer.capture.facts.first_gradients import first_gradients
from torchgraph_explorer.capture.facts.names import Named
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.facts.snapshot import version_of
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import FLOATS, ORDINARY, gradient_of, has_memory, is_readable
from torchgraph_explorer.schema import Operation

MOST_ASKED = 16
"""How many parameters of an optimizer, the first ones, are searched for one with a gradient that can be held.

They are more than in `leftover`, since only recorded steps are searched, and a small gradient is rarer."""

MOST_ELEMENTS = 1 << 12
"""Most elements of a gradient that is held and copied."""


class _Held(NamedTuple):
    """The gradient of a parameter as an update has used it.

    Attributes:
        parameter: The `id` of the parameter.
        gradient: Shares the gradient's memory and version. The gradient itself is not referred to: torch may refuse to
            convert a model whose gradients others refer to.
        version: The gradient's version after the update.
        used: A copy of its elements.
    """

    parameter: int
    gradient: Tensor
    version: int
    used: Tensor


class HeldGradient:
    """One gradient of a model, from the last recorded update until the next recorded step begins."""

    def __init__(self) -> None:
        """No update was seen."""
        self._held: _Held | None = None

    def hold(self, optimizer: Optimizer) -> None:
        """`optimizer` has just made an update of a recorded step."""
        self._held = None
        for _, parameter, gradient in first_gradients(optimizer, MOST_ASKED):
            if _can_be_held(gradient):
                shared = gradient.detach()
                self._held = _Held(id(parameter), shared, version_of(shared), shared.clone())
                break

    def take(self, parameters: Named) -> _Held | None:
        """The held gradient, if it was written to since, and is not the parameter's any more. Nothing is held then."""
        held, self._held = self._held, None
        if held is None or held.parameter not in parameters or version_of(held.gradient) == held.version:
            return None
        now = gradient_of(parameters[held.parameter][1])
        is_in_use = now is not None and (type(now) not in ORDINARY or now.data_ptr() == held.gradient.data_ptr())
        return None if is_in_use else held


class LateChanges:
    """What has changed a gradient between the last recorded update and a step."""

    def __init__(self, measure: Measure) -> None:
        """The step begins."""
        self._measure = measure
        self._rows: list[Row] = []

    def look(self, before: HeldGradient, parameters: Named) -> None:
        """A backward pass of the step begins."""
        if (held := before.take(parameters)) is None:
            return
        used, now = held.used.reshape(-1).to(torch.float32), held.gradient.reshape(-1).to(torch.float32)
        factor = (used @ now) / (used @ used)
        off = (now - factor * used).abs().max() / now.abs().max()
        self._rows = [Row(number) for number in self._measure.numbers(torch.stack([factor, off]))]

    def found(self, statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
        """The change as an operation; empty if there was none."""
        numbers = tuple(row(statistics, "mean") for row in self._rows)
        return (Operation("late", numbers=numbers),) if numbers and np.isfinite(numbers).all() else ()


def _can_be_held(gradient: Tensor) -> bool:
    """Whether the gradient is small, and has memory of its own: to that of a bucket, others write."""
    if type(gradient) not in ORDINARY or gradient.layout is not torch.strided or gradient._is_view():
        return False
    if gradient.dtype not in FLOATS or gradient.is_inference() or not is_readable(gradient) or not has_memory(gradient):
        return False
    size = gradient.numel()
    return 0 < size <= MOST_ELEMENTS and gradient.untyped_storage().nbytes() == size * gradient.element_size()
