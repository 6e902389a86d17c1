"""Finds parameters that modules keep where torch does not: in lists and dictionaries, or as plain tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from torchgraph_explorer.capture.facts.names import named_parameters
from torchgraph_explorer.capture.facts.snapshot import Snapshot
from torchgraph_explorer.capture.modules_by_name import ModulesByName, modules_by_name, parameters_within
from torchgraph_explorer.capture.no_dispatch import ORDINARY, is_leaf, is_readable

MOST_ITEMS, DEEPEST = 64, 2
"""Most items of a list or dictionary that are looked at, and how many levels of lists within lists are."""

MOST_HELD = 64
"""Most such parameters of a model that are looked at."""

_TORCHS = frozenset(vars(nn.Module()))
"""Names of the attributes that torch itself gives to modules."""


class Unregistered:
    """The unregistered parameters of one model that have a gradient when an optimizer steps, in one step."""

    def __init__(self) -> None:
        """None was looked at."""
        self._held: list[_Held] = []

    def look(self, modules: ModulesByName, model: nn.Module) -> None:
        """An optimizer of `model` is about to step."""
        if not self._held and (found := [*_held_by(modules)]):
            own = {id(one) for one in parameters_within(model)}
            held = (one for one in found if id(one.tensor) not in own)
            self._held = [*{id(one.tensor): one for one in held}.values()][:MOST_HELD]

    @property
    def ids(self) -> set[int]:
        """The `id`s of the parameters, by which optimizers can be asked for them."""
        return {id(one.tensor) for one in self._held}

    def unchanged(self, without: Iterable[int]) -> Iterator[str]:
        """The names of those with an id in `without` that nothing has written to since they were looked at."""
        wanted = {*without}
        return (one.name for one in self._held if id(one.tensor) in wanted and one.snapshot.is_still(one.tensor))

    def forget(self) -> None:
        """Let go of the tensors."""
        self._held = []


def ids_kept_by(modules: ModulesByName) -> set[int]:
    """The `id`s of the parameters with a gradient that `modules` keep where torch does not find them."""
    return {id(one.tensor) for one in _held_by(modules)}


class _Held(NamedTuple):
    """A tensor with the name of its place, such as `block.layers[0].weight`, and how it was when it was found."""

    name: str
    tensor: Tensor
    snapshot: Snapshot


def _held_by(modules: ModulesByName) -> Iterator[_Held]:
    for name, module in modules.items():
        for key, value in tuple(vars(module).items()):
            if key not in _TORCHS and isinstance(value, (nn.Module, Tensor, list, tuple, dict)):
                yield from _in_value(f"{name}.{key}" if name else key, value, depth=0)


def _in_value(name: str, value: Any, *, depth: int) -> Iterator[_Held]:
    if isinstance(value, nn.Module):
        # one that only measures, as a network within a loss, is mostly in eval mode
        for path, one in named_parameters(modules_by_name(value)).values() if value.training else ():
            yield from _in_value(f"{name}.{path}", one, depth=depth)
    elif isinstance(value, Tensor):
        if _is_trained(value):
            yield _Held(name, value, Snapshot.of(value))
    elif isinstance(value, (list, tuple, dict)) and depth < DEEPEST:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in tuple(islice(items, MOST_ITEMS)):  # it may be a long list of anything
            if isinstance(item, (nn.Module, Tensor, list, tuple, dict)):
                yield from _in_value(f"{name}[{key!r:.40}]", item, depth=depth + 1)


def _is_trained(tensor: Tensor) -> bool:
    is_known = type(tensor) in ORDINARY or isinstance(tensor, nn.Parameter)
    is_trained = is_known and tensor.requires_grad and is_leaf(tensor) and tensor.grad is not None
    return is_trained and tensor.layout is torch.strided and is_readable(tensor)
