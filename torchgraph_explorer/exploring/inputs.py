"""The inputs of a model, by name, and how they are put together again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map_only

from torchgraph_explorer.capture.tensor_tree import input_tensors
from torchgraph_explorer.errors import OptionError


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and keyword arguments of one call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class Inputs:
    """The arguments of a forward pass.

    Attributes:
        tensors: A copy of each tensor among them, by name: `input[0]`, `input['mask']`.
    """

    def __init__(self, inputs: Any) -> None:
        """Take `inputs`: positional arguments in a tuple, keyword arguments in a mapping, both, or one argument.

        Raises:
            OptionError: They hold no tensor.
        """
        given = _arguments(inputs)
        self._args, self._kwargs = given.args, dict(given.kwargs)
        within = {id(leaf) for leaf in tree_flatten((self._args, self._kwargs))[0]}
        found = input_tensors(self._args, self._kwargs)
        self._names = {id(tensor): name for name, tensor in reversed(found) if id(tensor) in within}
        self.tensors = {name: _copy(tensor) for name, tensor in found if self._names.get(id(tensor)) == name}
        if not self.tensors:
            raise OptionError(
                "The inputs hold no tensor. Pass a tensor, a tuple of positional arguments, or a dict of keyword "
                "arguments: explore(model, (x, mask), loss=...)."
            )

    def filled(self, values: Mapping[str, Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with other values for the tensors; those of floating point require gradients."""
        fresh = {name: _fresh(value) for name, value in values.items()}

        def fill(tensor: Tensor) -> Tensor:
            name = self._names.get(id(tensor))
            return tensor if name is None else fresh[name]

        args, kwargs = tree_map_only(Tensor, fill, (self._args, self._kwargs))
        return args, kwargs


def _arguments(inputs: Any) -> Arguments:
    if isinstance(inputs, Arguments):
        return inputs
    if isinstance(inputs, Mapping):
        return Arguments((), inputs)
    return Arguments(inputs if isinstance(inputs, tuple) else (inputs,), {})


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def _fresh(tensor: Tensor) -> Tensor:
    """A copy that a model may change in place; no leaf, so that it may even if it requires gradients."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor.clone()
    return tensor.clone().requires_grad_().clone()
