"""Counts backward passes whose gradients are gone when the next one of the same step begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from torchgraph_explorer.capture.facts.names import Named, gradients_of
from torchgraph_explorer.capture.facts.snapshot import Snapshot, version_of
from torchgraph_explorer.capture.no_dispatch import gradient_of
from torchgraph_explorer.schema import Call, Operation


class ClearedGradients:
    """The backward passes of one step, and how many of them lost their gradients before the next one.

    They do not count where gradients are cleared on purpose: in an attack on the inputs, which require a gradient then;
    in a search for flat minima, which writes to parameters in between; and by an optimizer that calls the model itself.
    """

    def __init__(self) -> None:
        """No backward pass has begun."""
        self._passes, self._cleared, self._is_known = 0, 0, True
        self._with_gradient: tuple[int, ...] = ()
        self._witness: tuple[int, Snapshot] | None = None
        self._gradient: int | None = None
        self._before: dict[int, int] = {}

    def begin_backward(self, parameters: Named) -> None:
        """A backward pass begins."""
        self._passes += 1
        if self._passes > 1 and self._with_gradient and self._is_known:
            if not self._is_as_it_was(parameters):
                self._is_known = False
            elif all(gradient_of(parameters[key][1]) is None for key in self._with_gradient):
                self._cleared += 1
        if self._is_known:
            self._before = {key: _written(one) for key, one in gradients_of(parameters).items()}

    def after_backward(self, parameters: Named, gradients: Mapping[int, Tensor], calls: Iterable[Call]) -> None:
        """A backward pass has ended, in a step with these calls so far, and left `gradients`."""
        if not self._is_known:
            return
        if any(one.requires_grad for call in calls if call.parent is None for one in call.inputs):
            self.forget()
            return
        before = self._before  # `torch.autograd.grad` leaves none: what is there may be from before the last update
        self._with_gradient = tuple(
            key for key, one in gradients.items() if key not in before or before[key] != _written(one)
        )
        self._witness = self._gradient = None
        if self._with_gradient:
            key = self._with_gradient[0]
            one = parameters[key][1]
            self._witness = key, Snapshot.of(one)
            self._gradient = id(gradients[key])

    def before_update(self, parameters: Named) -> None:
        """An optimizer of the model is about to step: gradients that were replaced have been gathered elsewhere."""
        if self._witness is not None and id(gradient_of(parameters[self._witness[0]][1])) != self._gradient:
            self.forget()

    def forget(self) -> None:
        """Gradients of this step are used for something else, so nothing is told of them."""
        self._is_known = False
        self._witness, self._with_gradient, self._before = None, (), {}

    def found(self) -> tuple[Operation, ...]:
        """The number of backward passes, and of those whose gradients were gone; empty if none were."""
        is_told = self._is_known and self._cleared > 0
        return (Operation("cleared", numbers=(float(self._passes), float(self._cleared))),) if is_told else ()

    def _is_as_it_was(self, parameters: Named) -> bool:
        if self._witness is None:
            return False
        key, snapshot = self._witness
        return snapshot.is_still(parameters[key][1])


def _written(gradient: Tensor) -> int:
    """A number that changes if another tensor takes the gradient's place, or if it is written to.

    It is a single number, as Python's garbage collector does not look at numbers.
    """
    return (id(gradient) << 32) + version_of(gradient)
