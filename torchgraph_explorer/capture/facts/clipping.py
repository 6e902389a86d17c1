"""Measures the norm of gradients after the last backward pass of a step, and when an optimizer gets them.

The second is smaller if the gradients were clipped in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.names import Named
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import ORDINARY, gradient_of, has_memory

MOST_ELEMENTS = 1 << 18
"""Most elements of all gradients together whose norm is taken: it takes some 50 microseconds on a CPU."""

MOST_TENSORS = 8
"""Most parameters whose gradients are measured."""


class Norms:
    """The norm of the gradients of some parameters in one step.

    Attributes:
        before: Where it will be known after the last backward pass; None if it was not measured.
        clipped: Likewise, when the optimizer gets the gradients.
    """

    def __init__(self, measure: Measure) -> None:
        """No backward pass has ended."""
        self._measure = measure
        self._chosen: tuple[int, ...] | None = None
        self._after_backward: dict[int, Tensor] = {}
        self.before: Row | None = None
        self.clipped: Row | None = None

    def after_backward(self, parameters: Named) -> None:
        """A backward pass has ended. An optimizer that got gradients before it calls a closure, and gets these, too."""
        self.forget()
        if self._chosen is None:
            self._chosen = tuple(_few_elements(parameters))
        self._after_backward = _norms(parameters, self._chosen)

    def before_update(self, parameters: Named, moved: Collection[int]) -> None:
        """An optimizer is about to move the parameters with the ids in `moved`. Only the first one is looked at."""
        if self.before is not None or not self._after_backward:
            return
        of = [key for key in self._after_backward if key in moved]
        now = _norms(parameters, of)
        if of and len(now) == len(of):
            self.before = self._row([self._after_backward[key] for key in of])
            self.clipped = self._row(list(now.values()))
        self._after_backward = {}

    def forget(self) -> None:
        """Drop the norms: they are not known."""
        self.before = self.clipped = None
        self._after_backward = {}

    def _row(self, norms: list[Tensor]) -> Row:
        """A row of the step's statistics whose l2 norm is that of all gradients with these norms together."""
        first = norms[0].device
        return Row(self._measure.values_again(torch.stack([one.to(first, torch.float32) for one in norms])))


def _few_elements(parameters: Named) -> Iterable[int]:
    """Parameters with a gradient, spread evenly over all, that have few enough elements together."""
    left = MOST_ELEMENTS
    device: torch.device | None = None
    keys = list(parameters)
    for key in keys[:: -(-len(keys) // MOST_TENSORS) or 1]:
        gradient = gradient_of(parameters[key][1])
        if gradient is None or type(gradient) not in ORDINARY or gradient.layout is not torch.strided:
            continue
        device = device or gradient.device
        size = gradient.numel()
        if size > left or gradient.device != device or not _is_readable(gradient):
            continue
        left -= size
        yield key


def _is_readable(gradient: Tensor) -> bool:
    return gradient.is_floating_point() and not gradient.is_meta and has_memory(gradient)


def _norms(parameters: Named, of: Iterable[int]) -> dict[int, Tensor]:
    """The norm of the gradient of each of these parameters that has one."""
    gradients = {key: gradient for key in of if (gradient := gradient_of(parameters[key][1])) is not None}
    if not gradients or not all(map(_is_readable, gradients.values())):
        return {}
    return dict(zip(gradients, torch._foreach_norm(list(gradients.values())), strict=True))
