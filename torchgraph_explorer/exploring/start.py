"""`explore`: what a user calls to see how gradient flows."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchgraph_explorer.exploring.session import Session, Target


def explore(model: nn.Module, inputs: Any, *, loss: Target | None = None) -> Session:
    """Explore how gradient flows between any two tensors of one forward pass of `model`.

    Args:
        model: Any `nn.Module` that is not divided among ranks. It is left as it is: modes, hooks, `.grad`, buffers and
            random numbers.
        inputs: A tensor, a tuple of positional arguments, or a dict of keyword arguments.
        loss: The scalar whose gradient flows, as a function of what the model returns. None: what the model returns, if
            that is a scalar, or its attribute `loss`.

    Returns:
        The session, which answers in Python.

    Raises:
        OptionError: The model cannot be explored, or the inputs hold no tensor.
    """
    return Session(model, inputs, loss=loss)
