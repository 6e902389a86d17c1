"""Edits of the inputs, which can be undone and redone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torchgraph_explorer.errors import OptionError

Values: TypeAlias = "Mapping[str, Tensor]"
"""The tensors of the inputs, by name."""

MOST_STATES = 200
"""States that can be gone back to."""


class Edits:
    """The states of the inputs, from the original one on, and which of them is the present one.

    Attributes:
        original: As they were given.
        revision: Grows with every change.
    """

    def __init__(self, original: Values) -> None:
        """Nothing is edited yet."""
        self.original: Values = MappingProxyType(dict(original))
        self._states: list[Values] = [self.original]
        self._at = self.revision = 0

    @property
    def now(self) -> Values:
        """The present values."""
        return self._states[self._at]

    @property
    def is_edited(self) -> bool:
        """Whether a value differs from the original one."""
        return any(not _is_equal(self.now[name], tensor) for name, tensor in self.original.items())

    @property
    def undoable(self) -> int:
        """How many edits can be undone."""
        return self._at

    @property
    def redoable(self) -> int:
        """How many undone edits can be done again."""
        return len(self._states) - 1 - self._at

    def set(self, name: str, index: Any, value: Any) -> None:
        """Set `tensor[index]` of the input `name` to `value`.

        Raises:
            OptionError: There is no such input or element, or it cannot have that value.
        """
        before = self._input(name)
        after = before.clone()
        try:
            after[index] = value.to(after.device, after.dtype) if isinstance(value, Tensor) else value
            _require_kept(after[index], value)
        except (IndexError, TypeError, ValueError, RuntimeError) as fault:
            raise OptionError(
                f"edit({name!r}, {index!r:.80}, ...) cannot be done: {fault}. The input has shape "
                f"{tuple(after.shape)}; index it as a tensor, and pass a number or values of the indexed shape."
            ) from fault
        self.replace(name, after)

    def replace(self, name: str, values: Tensor) -> None:
        """Give the input `name` new values of the same shape."""
        self._input(name)
        self._go_on_with(MappingProxyType({**self.now, name: values}))

    def undo(self) -> bool:
        """Go back before the latest edit; False if there is none."""
        self._at, before = max(self._at - 1, 0), self._at
        self.revision += 1
        return self._at != before

    def redo(self) -> bool:
        """Do again the edit that was undone last; False if there is none."""
        self._at, before = min(self._at + 1, len(self._states) - 1), self._at
        self.revision += 1
        return self._at != before

    def reset(self) -> None:
        """Go back to the original values. This can be undone, too."""
        self._go_on_with(self.original)

    def _go_on_with(self, state: Values) -> None:
        """Make `state` the present one, which comes after the one before."""
        self._states[self._at + 1 :] = [state]
        del self._states[:-MOST_STATES]
        self._at = len(self._states) - 1
        self.revision += 1

    def _input(self, name: str) -> Tensor:
        if name not in self.original:
            names = ", ".join(map(repr, self.original))
            raise OptionError(f"{name!r:.80} is not an input that can be edited. The inputs are {names}.")
        return self.now[name]


def _require_kept(elements: Tensor, value: Any) -> None:
    """Raise a ValueError if `elements`, which were set to `value`, could only take part of it."""
    is_whole = not (elements.is_floating_point() or elements.is_complex())
    if is_whole and torch.any(elements != torch.as_tensor(value, device=elements.device)):
        raise ValueError(f"{str(elements.dtype).removeprefix('torch.')} cannot be {value!r:.80}")


def _is_equal(one: Tensor, other: Tensor) -> bool:
    return one is other or bool(torch.equal(one, other))
