"""What is measured in a logged step, and which of its tensors are kept whole."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from torchgraph_explorer.capture.gradient_hooks import Measure, SeriesKey
from torchgraph_explorer.schema import TensorKind


class Keeper(Protocol):
    """Keeps tensors of one step whole. No method raises.

    Attributes:
        native: Does what `take` does, for ordinary tensors that were measured just now, and returns whether it did.
            None where that was not built.
    """

    native: Callable[[SeriesKey, Tensor], bool] | None

    def selects(self, module: str, role: str, path: str) -> bool:
        """Whether the tensor is to be kept."""

    def take(self, key: SeriesKey, tensor: Tensor) -> None:
        """If `tensor` is to be kept, keep it as it is now, in place of an earlier tensor of the same series."""

    def fail(self, fault: Exception) -> None:
        """Some tensors could not be given to `take`."""

    def describe(self, key: SeriesKey, kind: TensorKind | None, node: str) -> None:
        """Note what `attach` was told of the tensor of this series."""

    def forget(self) -> None:
        """Hold no weak reference any more: torch swaps no tensor that has one."""


@dataclass(frozen=True, slots=True)
class StepRows:
    """What is measured in one step, and where it goes.

    Attributes:
        kinds: Of `io`, `io_grad`, `params` and `params_grad`.
        measure: Turns tensors into rows.
        rows: The row of each series so far.
        keeper: Keeps tensors whole; None in a step that keeps none.
    """

    kinds: frozenset[str]
    measure: Measure
    rows: MutableMapping[SeriesKey, int]
    keeper: Keeper | None = None

    def uses(self, kind: str) -> bool:
        """Whether tensors of this kind are measured or may be kept."""
        return kind in self.kinds or self.keeper is not None
