"""Groups of the elements of a tensor: those that share their index along some dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from torchgraph_explorer.errors import OptionError


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of the elements of a tensor of one shape.

    Attributes:
        shape: Of the tensor.
        dims: The dimensions that tell groups apart, ascending. With all of them, each element is a group; with none,
            all elements are one.
    """

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(not 0 <= dim < len(self.shape) for dim in self.dims) or list(self.dims) != sorted(set(self.dims)):
            raise OptionError(f"A tensor of shape {self.shape} cannot be grouped by the dimensions {self.dims}.")

    @property
    def count(self) -> int:
        """How many groups there are."""
        return prod(self.shape[dim] for dim in self.dims)

    def numbers(self, device: torch.device | str = "cpu") -> Tensor:
        """The number of each element's group, of the tensor's shape."""
        numbers = torch.zeros(self.shape, dtype=torch.long, device=device)
        for dim in self.dims:
            along = torch.arange(self.shape[dim], device=device)
            along = along.reshape([-1 if one == dim else 1 for one in range(len(self.shape))])
            numbers = numbers * self.shape[dim] + along
        return numbers

    def parts(self, tensor: Tensor, first: int, stop: int) -> Tensor:
        """`tensor` within each of the groups `first` to `stop`, and zeros elsewhere. `[stop - first, *shape]`."""
        wanted = torch.arange(first, stop, device=tensor.device).reshape(-1, *(1 for _ in self.shape))
        return torch.where(self.numbers(tensor.device)[None] == wanted, tensor, torch.zeros_like(tensor))

    def sums(self, tensors: Tensor) -> Tensor:
        """The sums over each group of `[n, *shape]`: `[n, count]`."""
        numbers = self.numbers(tensors.device).flatten()
        sums = tensors.new_zeros((len(tensors), self.count))
        return sums.index_add_(1, numbers, tensors.reshape(len(tensors), -1))

    def index(self, group: int) -> tuple[int | slice, ...]:
        """What selects a group: `tensor[index]`."""
        index: list[int | slice] = [slice(None)] * len(self.shape)
        for dim in reversed(self.dims):
            group, index[dim] = divmod(group, self.shape[dim])
        return tuple(index)


def by_default(shape: tuple[int, ...], most: int) -> Grouping:
    """Each element alone, if there are at most `most`; else by channel, the last dimension of `[n, t, c]`."""
    every = Grouping(shape, tuple(range(len(shape))))
    if every.count <= most:
        return every
    channel = 2 if len(shape) == 3 else min(1, len(shape) - 1)
    return Grouping(shape, (channel,))
