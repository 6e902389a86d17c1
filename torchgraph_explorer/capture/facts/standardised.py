"""Measures whether modules are given, or give, features that are standardised over the samples of the batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.tensor_infos import Described
from torchgraph_explorer.schema import Operation

LEAST_SAMPLES, LEAST_FEATURES, MOST_ELEMENTS = 8, 4, 1 << 16
"""Fewest samples and features of tensors that are looked at, and most elements."""

MOST_TENSORS = 32
"""Most tensors of a step that are looked at."""

CONSTANT = 0.1
"""Largest standard deviation of a feature, over the largest of all, that is taken for a constant."""

_Found = tuple[str, str, list[Row]]
"""A module, `input` or `output`, and where the numbers are."""


class Standardised:
    """The inputs and outputs `[samples, features]` of the modules' first calls in one step."""

    def __init__(self, measure: Measure, modules: ModulesByName) -> None:
        """No module was called."""
        self._measure = measure
        self._found: list[_Found] = []
        self._waiting = {role: {*modules} for role in ("input", "output")}

    @property
    def looked_at(self) -> tuple[set[str], set[str]]:
        """The modules whose inputs, and those whose outputs, are still to be looked at."""
        return (self._waiting["input"], self._waiting["output"]) if self._has_room else (set(), set())

    @property
    def _has_room(self) -> bool:
        return len(self._found) < MOST_TENSORS

    def look(self, name: str, role: str, tensors: Described) -> None:
        """The first call of a module has these inputs or outputs."""
        self._waiting[role].discard(name)
        if len(tensors) == 1 and self._has_room and _is_looked_at(tensor := tensors[0][1]):
            with NoDispatch():
                stacked = torch.stack(_standardised(tensor.detach().float()))
                self._found.append((name, role, [Row(number) for number in self._measure.numbers(stacked)]))

    def operations(self, statistics: npt.NDArray[np.float32]) -> tuple[Operation, ...]:
        """What was found, once the `statistics` of the step are known."""
        return tuple(
            Operation(
                "standardised", name, numbers=(float(role == "output"), *(row(statistics, "mean") for row in rows))
            )
            for name, role, rows in self._found
        )


def _is_looked_at(tensor: Tensor) -> bool:
    if tensor.dtype not in FLOATS or not has_plain_elements(tensor):
        return False
    sizes = tuple(tensor.shape)
    return (
        len(sizes) == 2 and sizes[0] >= LEAST_SAMPLES and sizes[1] >= LEAST_FEATURES and tensor.numel() <= MOST_ELEMENTS
    )


def _standardised(values: Tensor) -> list[Tensor]:
    """The largest mean of a feature, and the range of the deviations, each over the largest deviation.

    Both are of features that are not constant; and the share of these. What is constant may be a rounding error, which
    a division by a small number has made larger.
    """
    means, deviations = values.mean(0), values.std(0)
    largest = deviations.max().clamp(min=TINY)
    is_varied = deviations > CONSTANT * largest
    least = torch.where(is_varied, deviations, torch.inf).min()
    farthest = torch.where(is_varied, means.abs(), 0.0).max()
    return [farthest / largest, (largest - least) / largest, is_varied.float().mean()]
