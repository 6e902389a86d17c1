"""Measures whether modules are given, or give, features that are standardised over the samples of the batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.label_losses import TINY
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.facts.snapshot import version_of
from torchgraph_explorer.capture.facts.units import UnitWindows
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.modules_by_name import ModulesByName
from torchgraph_explorer.capture.no_dispatch import FLOATS, NoDispatch, has_plain_elements
from torchgraph_explorer.capture.tensor_infos import Described
from torchgraph_explorer.schema import Operation

LEAST_SAMPLES, LEAST_FEATURES, MOST_ELEMENTS = 8, 4, 1 << 16
"""Fewest samples and features of tensors that are looked at, and most elements."""

MOST_TENSORS = 32
"""Most tensors of a step that are looked at."""

NEARLY = 0.01
"""Largest mean of a feature, and range of the deviations, over the largest deviation, where features may be
standardised. The rule asks for less in the first step."""

CONSTANT = 0.1
"""Largest standard deviation of a feature, over the largest of all, that is taken for a constant."""

_Found = tuple[str, str, list[Row]]
"""A module, `input` or `output`, and where the numbers are."""


class _Looked(NamedTuple):
    """A tensor that was looked at, without its graph: as long as it is held, no other one is at its place in memory.

    Attributes:
        values: The tensor.
        version: How often torch had counted writes to it.
        rows: Where its numbers are.
        may_be: Whether its features may be standardised; False on a GPU, which would have to be waited for.
    """

    values: Tensor
    version: int
    rows: list[Row]
    may_be: bool

    def is_of(self, values: Tensor) -> bool:
        """Whether these are the same elements, unchanged since."""
        return (
            values.data_ptr() == self.values.data_ptr()
            and version_of(values) == self.version
            and values.shape == self.values.shape
            and values.stride() == self.values.stride()
            and values.dtype == self.values.dtype
        )


class Standardised:
    """The inputs and outputs `[samples, features]` of the modules' first calls in one step."""

    def __init__(self, measure: Measure, modules: ModulesByName, windows: UnitWindows) -> None:
        """No module was called. In host memory, the first step tells which tensors are looked at in the next ones."""
        self._measure, self._windows = measure, windows
        self._may_be: set[tuple[str, str]] | None = set() if windows.standardised is None else windows.standardised
        self._found: list[_Found] = []
        self._latest: _Looked | None = None
        self._waiting = {
            role: {name for name in modules if windows.standardised is None or (name, role) in windows.standardised}
            for role in ("input", "output")
        }

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
                looked = self._looked_at(tensor.detach())
            self._found.append((name, role, looked.rows))
            if not tensor.is_cpu:
                self._may_be = None  # to know it, a GPU would have to be waited for
            elif looked.may_be and self._may_be is not None:
                self._may_be.add((name, role))

    def _looked_at(self, values: Tensor) -> _Looked:
        """What is known of `values`: an output is mostly the next input, and is computed once."""
        if (latest := self._latest) is None or not latest.is_of(values):
            numbers = torch.stack(_standardised(values.float()))
            may_be = values.is_cpu and max(numbers.tolist()[:2]) < NEARLY
            rows = [Row(number) for number in self._measure.numbers(numbers)]
            self._latest = latest = _Looked(values, version_of(values), rows, may_be)
        return latest

    def forget(self) -> None:
        """The step is over: release the last tensor."""
        self._latest = None
        if self._found:
            self._windows.standardised = self._may_be

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
    means = values.mean(0)
    deviations = (values - means).square_().sum(0).div_(len(values) - 1).sqrt_()  # in a tenth of the time of `std`
    largest = deviations.max().clamp(min=TINY)
    is_varied = deviations > CONSTANT * largest
    least = torch.where(is_varied, deviations, torch.inf).min()
    farthest = torch.where(is_varied, means.abs(), 0.0).max()
    return [farthest / largest, (largest - least) / largest, is_varied.float().mean()]
