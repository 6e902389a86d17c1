"""The gradients of an optimizer's first parameters, of which one is enough to see what becomes of gradients."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor
from torch.optim import Optimizer

from torchgraph_explorer.capture.no_dispatch import ORDINARY, gradient_of


def first_gradients(optimizer: Optimizer, most: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Of the first `most` parameters of the first group: the number, the parameter and the gradient of each with one.

    What is not an ordinary tensor is left out: to look at its gradient may call the user's code.
    """
    for number, parameter in enumerate(optimizer.param_groups[0]["params"][:most]):
        if type(parameter) in ORDINARY and (gradient := gradient_of(parameter)) is not None:
            yield number, parameter, gradient
