"""The norm of gradients after the last backward pass of a step, and when an optimizer gets them: is it clipped?"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor

from torchgraph_explorer.capture.facts.names import Named
from torchgraph_explorer.capture.facts.pending import Row
from torchgraph_explorer.capture.gradient_hooks import Measure
from torchgraph_explorer.capture.no_dispatch import ORDINARY, gradient_of, has_memory

MOST_ELEMENTS = 1 << 18
"""Elements whose norm is taken, some 50 microseconds' worth on a CPU."""

MOST_TENSORS = 8


class Norms:
    """The norms of gradients in one step."""

    def __init__(self, measure: Measure) -> None:
        """No backward pass has ended."""
        self._measure = measure
        self._chosen: tuple[int, ...] | None = None
        self._after_backward: dict[int, Tensor] = {}
        self.before: Row | None = None
        self.clipped: Row | None = None

    def after_backward(self, parameters: Named) -> None:
        """A backward pass has ended. What an optimizer had before it is no longer of interest: it calls a closure."""
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
        """The norms are not known."""
        self.before = self.clipped = None
        self._after_backward = {}

    def _row(self, norms: list[Tensor]) -> Row:
        """A row whose l2 norm is that of all of them."""
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
