"""The tensors that an operation of torch's gets, gives, and writes into."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from torch import Tensor

from torchgraph_explorer.capture.tensor_tree import ATOMS, tensors


def tensors_of(values: Iterable[Any]) -> list[Tensor]:
    """The tensors among arguments or results of an operation, in order."""
    found: list[Tensor] = []
    for value in values:
        if type(value) in ATOMS:
            continue
        if isinstance(value, Tensor):
            found.append(value)
        else:
            found += [tensor for _, tensor in tensors(value, "")]
    return found


def written_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that the operation writes into."""
    return [tensor for place in _written_arguments(func) for _, tensor in tensors(_argument(place, args, kwargs), "")]


@cache
def _written_arguments(func: Any) -> tuple[tuple[int, str], ...]:
    """Position and name of each argument that the operation writes into."""
    schema = getattr(func, "_schema", None)
    return tuple(
        (i, argument.name)
        for i, argument in enumerate(schema.arguments if schema else ())
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def _argument(place: tuple[int, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    position, name = place
    return args[position] if position < len(args) else kwargs.get(name)
