"""Finds gradients from before the last update to which those of a step are added, as without `zero_grad`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.optim import Optimizer

from torchgraph_explorer.capture.facts.first_gradients import first_gradients
from torchgraph_explorer.capture.facts.names import Named, few, gradients_of
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import gradient_of, has_memory, is_readable, plain

MOST_ASKED = 4
"""How many parameters of an optimizer, the first ones, are searched for one with a gradient after an update.

They are few, since this is done in every step."""

MOST_OPTIMIZERS = 1 << 14
"""Most optimizers that are remembered. A loop may make an optimizer for each parameter."""

MOST_MEASURED = 8
"""Most gradients of a step that are measured, to tell those that were set to zero."""

MOST_BACKWARDS = 4
"""Most backward passes of a step at whose beginning gradients are measured."""


class _Witness(NamedTuple):
    """A parameter of an optimizer, and the gradient that it had after an update.

    Attributes:
        number: Its index in the first group.
        gradient: The `id` and the address of the gradient's tensor. A weak reference would keep torch from converting
            the model, see `parameter_places`.
    """

    number: int
    gradient: tuple[int, int]

    def is_there(self, parameters: Sequence[Tensor]) -> bool:
        """Whether the parameter still has that very gradient, which may have been set to zero or added to."""
        gradient = gradient_of(parameters[self.number]) if self.number < len(parameters) else None
        return gradient is not None and _identity(gradient) == self.gradient


def _identity(tensor: Tensor) -> tuple[int, int]:
    return id(tensor), tensor._cdata


class UpdateWitnesses:
    """Tells whether the gradient that was there after the last update of an optimizer is still there."""

    def __init__(self) -> None:
        """No update was seen."""
        self._of: dict[int, _Witness | None] = {}

    def note(self, optimizers: Iterable[Optimizer]) -> None:
        """These have made an update. This is done in every step, logged or not, so it looks at one gradient of each."""
        if torch._C._is_torch_function_mode_enabled():  # it would see that the gradient is looked at
            self._of.clear()
            return
        if len(self._of) > MOST_OPTIMIZERS:  # the loop makes new ones
            self._of.clear()
        for each in optimizers:
            found = next(first_gradients(each, MOST_ASKED), None)
            self._of[id(each)] = _Witness(found[0], _identity(found[2])) if found is not None else None

    def tell(self, optimizer: Optimizer) -> bool | None:
        """Whether the gradient after the last update of `optimizer` is still there; None if no update was seen."""
        key = id(optimizer)
        if key not in self._of:
            return None
        witness = self._of[key]
        return witness is not None and witness.is_there(optimizer.param_groups[0]["params"])


class LeftoverGradients:
    """Which gradients of one step were left from before the last update of their optimizer.

    Such a gradient is there when the first backward pass begins, is the same tensor when the optimizer gets it, and is
    not zero at the beginning of a pass: gradients may be set to zero in place.
    """

    def __init__(self, measure: Measure) -> None:
        """No backward pass has begun."""
        self._measure = measure
        self._before: dict[int, Tensor] = {}
        self._left: dict[int, bool | None] = {}
        self._rows: dict[int, list[Row]] = {}
        self._backwards = 0
        self._awaited: dict[int, dict[str, int] | None] = {}
        self._found: dict[str, int] | None = None

    def begin_backward(self, parameters: Named, optimizers: Iterable[Optimizer], witnesses: UpdateWitnesses) -> None:
        """A backward pass begins, which has not added any gradient yet."""
        self._backwards += 1
        if self._backwards == 1:
            self._left = {id(each): witnesses.tell(each) for each in optimizers}
            if any(self._left.values()):
                self._before = gradients_of(parameters)
                chosen = list(self._before)
                self._rows = {key: [] for key in chosen[:: -(-len(chosen) // MOST_MEASURED) or 1]}
        elif self._before:
            self._before = {key: old for key, old in self._before.items() if gradient_of(parameters[key][1]) is old}
        if self._backwards <= MOST_BACKWARDS:
            for key, rows in self._rows.items():
                if (gradient := self._before.get(key)) is not None:
                    gradient = plain(gradient)
                    if is_readable(gradient) and has_memory(gradient):
                        rows.append(Row(self._measure.values_again(gradient)))

    def before_update(self, parameters: Named, optimizer: Optimizer) -> None:
        """`optimizer` is about to update its parameters."""
        self._awaited[id(optimizer)] = self._left_of(parameters, optimizer)

    def after_update(self, parameters: Named, optimizer: Optimizer) -> None:
        """`optimizer` has updated its parameters in this step, which may have begun within a closure that it called."""
        key = id(optimizer)
        found = self._awaited.pop(key) if key in self._awaited else self._left_of(parameters, optimizer)
        if found is not None:
            self._found = {**(self._found or {}), **found}

    def _left_of(self, parameters: Named, optimizer: Optimizer) -> dict[str, int] | None:
        """The names of the parameters of `optimizer` with leftover gradients, with their `id`; None if not known."""
        left = self._left.get(id(optimizer)) if self._backwards else None
        if left is None:
            return None
        moved = (id(each) for group in optimizer.param_groups for each in group["params"]) if left else ()
        return {
            parameters[key][0]: key
            for key in moved
            if key in self._before and key in parameters and gradient_of(parameters[key][1]) is self._before[key]
        }

    def forget(self) -> None:
        """Release the gradients: no more updates come."""
        self._before = {}

    def names(self, statistics: npt.NDArray[np.float32]) -> tuple[str, ...] | None:
        """The names of the parameters with leftover gradients; None if that is not known."""
        if not self._found:
            return None if self._found is None else ()
        measured = {key: rows for key, rows in self._rows.items() if rows and key in self._found.values()}
        zero = {key for key, rows in measured.items() if any(_is_zero(row, statistics) for row in rows)}
        if len(zero) == len(measured):  # also if none could be measured
            return ()
        return few(name for name, key in self._found.items() if key not in zero)


def _is_zero(row: Row, statistics: npt.NDArray[np.float32]) -> bool:
    return row(statistics, "zeros") == row(statistics, "sampled")
