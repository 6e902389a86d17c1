"""Finds parameters that the forward pass makes for itself, as those of a layer that `forward` makes and calls.

They are in no module of the model, so that no optimizer is given them. Only a traced step shows them: their first
values are written while a call of the model is open.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor, nn

from torchgraph_explorer.capture.facts.snapshot import version_of
from torchgraph_explorer.capture.facts.unregistered import ids_kept_by
from torchgraph_explorer.capture.modules_by_name import modules_by_name, parameters_within
from torchgraph_explorer.capture.no_dispatch import gradient_of, is_readable

INITIALISING = frozenset({"aten::uniform_", "aten::normal_", "aten::fill_", "aten::zero_"})
"""Torch's operations with which layers get their first values."""

MOST_MADE = 256
"""Most parameters that are followed in one step."""


class Made(NamedTuple):
    """A parameter that was made in a call, and has a gradient."""

    shape: tuple[int, ...]
    call: int


class MadeParameters:
    """The parameters that the forward pass of one traced step makes.

    Attributes:
        lost: Those of them that got a gradient and that no optimizer of an update held.
    """

    def __init__(self) -> None:
        """None was made."""
        self.lost: list[Made] = []
        self._made: dict[int, _Made] = {}
        self._trained: list[tuple[Tensor, int]] = []

    def note(self, tensor: object, call: int | None) -> None:
        """A value is being written to all of `tensor`, in a call of this number."""
        if call is not None and isinstance(tensor, nn.Parameter) and len(self._made) < MOST_MADE:
            self._made[id(tensor)] = _Made(weakref.ref(tensor), call, version_of(tensor))

    def after_backward(self, model: nn.Module) -> None:
        """A backward pass through `model` has ended, which may have registered what it has made.

        The optimizer is asked only at its step. Until then the parameters are held here: the loss may be gone.
        """
        own = {id(one) for one in parameters_within(model)} if self._made else set[int]()
        for one in self._made.values():
            tensor = one.tensor()
            if tensor is not None and id(tensor) not in own and _is_as_made(tensor, one.version):
                self._trained.append((tensor, one.call))
        self._made = {}

    def before_update(self, without_optimizer: Callable[[set[int]], set[int]], model: nn.Module) -> None:
        """An optimizer of `model` is about to step. `without_optimizer` tells which ones, by `id`, no optimizer holds.

        Those that modules keep without registering them are reported as such.
        """
        trained, self._trained = self._trained, []
        if trained:
            without, others = without_optimizer({id(one) for one, _ in trained}), ids_kept_by(modules_by_name(model))
            lost = (each for each in trained if id(each[0]) in without and id(each[0]) not in others)
            self.lost += [Made(tuple(one.shape), call) for one, call in lost]

    def forget(self) -> None:
        """The step is over: let go of the tensors."""
        self._made, self._trained = {}, []


class _Made(NamedTuple):
    """A parameter, the call that it was made in, and its version while its first values were written."""

    tensor: weakref.ref[Tensor]
    call: int
    version: int


def _is_as_made(tensor: Tensor, version: int) -> bool:
    """Whether a parameter has a gradient, and was not written to since: what is trained in `forward` itself, was.

    Writing the first values counts as one more version, when that is over.
    """
    is_trained = isinstance(tensor, nn.Parameter) and tensor.requires_grad and is_readable(tensor)
    return is_trained and version_of(tensor) <= version + 1 and gradient_of(tensor) is not None
