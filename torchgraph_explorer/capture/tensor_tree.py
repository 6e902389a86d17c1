"""Finds the tensors in a module's arguments and results, with their paths."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from torchgraph_explorer.schema import Shape, TensorInfo

Leaf: TypeAlias = "tuple[str, Tensor]"
"""A tensor with its path."""

DEEPEST, MOST_PARTS = 32, 1 << 17
"""Levels of nesting that are searched, and parts of one argument or result: there may be a graph of objects in it. What
contains itself, as the nodes of a tree that know their parents, is not searched again within itself."""

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, slice, torch.dtype, torch.device, torch.Size})
"""Types of arguments that hold no tensor."""

MANY = 16
"""Items of a list that are first looked at as one: it may be of a million numbers, or of the words of a text."""

MOST_PLAIN_LEVELS, MOST_PLAIN_PARTS = 4, 32
"""Containers that are deeper, or have more parts, are not looked through twice: by `plain_inputs` and then again."""

FURTHER = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, nn.Module)
"""Types of values whose attributes are no part of a result."""

MOST_ATTRIBUTES = 1000
"""How many attributes and items of the objects in a result are looked at: one may refer to all that there is."""


def input_tensors(args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[Leaf]:
    """The tensors among a call's arguments with their paths: `input[0]`, `input['mask']`."""
    if len(args) == 1 and not kwargs and isinstance(args[0], Tensor):  # most calls
        return [("input[0]", args[0])]
    found: list[Leaf] = []
    for path, value in _arguments(args, kwargs):
        _find(value, path, found)
    return found


def _arguments(args: tuple[object, ...], kwargs: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The arguments of a call, each with its path."""
    yield from ((f"input[{i}]", value) for i, value in enumerate(args))
    yield from ((f"input[{name!r}]", value) for name, value in kwargs.items())


def tensors(value: object, path: str) -> list[Leaf]:
    """Every tensor in `value` and in the containers and dataclasses within it, in order. `path` is that of `value`."""
    if isinstance(value, Tensor):
        return [(path, value)]
    found: list[Leaf] = []
    _find(value, path, found)
    return found


def _find(value: object, path: str, found: list[Leaf]) -> None:
    todo: list[tuple[object, str, tuple[int, ...]]] = [(value, path, ())]
    left = MOST_PARTS
    while todo and left:
        one, place, above = todo.pop()
        left -= 1
        if isinstance(one, Tensor):
            found.append((place, one))
        elif type(one) not in ATOMS and len(above) < DEEPEST and id(one) not in above:
            within = (*above, id(one))
            todo += [(inner, place + part, within) for part, inner in reversed([*_parts(one)])]


def plain_inputs(args: tuple[object, ...], kwargs: Mapping[str, object]) -> list[Leaf] | None:
    """Like `input_tensors`; None if an object of another library's class may have tensors in it, or is one."""
    found: list[Leaf] = []
    return found if all(_find_plain(value, path, found) for path, value in _arguments(args, kwargs)) else None


def plain_outputs(output: object) -> list[Leaf] | None:
    """Like `tensors`, for a result; None if it has parts that are neither tensors nor containers of Python's own."""
    found: list[Leaf] = []
    return found if _find_plain(output, "output", found, is_result=True) else None


def _find_plain(  # noqa: PLR0917  # called very often
    value: object, path: str, found: list[Leaf], depth: int = 0, *, is_result: bool = False
) -> bool:
    kind = type(value)
    if kind is Tensor:
        found.append((path, value))  # type: ignore[arg-type]  # it is one
        return True
    if kind in ATOMS:
        return True
    if kind is tuple or kind is list or kind is dict:
        if depth >= MOST_PLAIN_LEVELS or len(value) > MOST_PLAIN_PARTS:  # type: ignore[arg-type]  # it has a length
            return False
        parts = _parts(value)
        return all(_find_plain(inner, path + part, found, depth + 1, is_result=is_result) for part, inner in parts)
    return not is_result and not isinstance(value, (Tensor, Mapping, tuple, list)) and not is_dataclass(value)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """The items of `value`, each with the piece that it adds to the path.

    A class of the user's that is a dict or a list may do something when it is iterated over: here it is not asked.
    """
    if isinstance(value, dict):
        kind: Any = OrderedDict if isinstance(value, OrderedDict) else dict
        yield from ((f"[{key!r}]", inner) for key, inner in kind.items(value))
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", inner) for name, inner in zip(value._fields, value, strict=False))
    elif isinstance(value, (list, tuple)):
        kind = list if isinstance(value, list) else tuple
        if kind.__len__(value) < MANY or not ATOMS.issuperset(map(type, kind.__iter__(value))):
            yield from ((f"[{i}]", inner) for i, inner in enumerate(kind.__iter__(value)))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name, None)) for field in fields(value))


def attribute_tensors(value: object) -> list[Tensor]:
    """Those that the objects in `value` have as attributes, such as those of a `torch.distributions.Distribution`.

    Their properties are not asked: what an object computes only then is missing.
    """
    if isinstance(value, Tensor) or type(value) in ATOMS:
        return []
    found: list[Tensor] = []
    todo, left, seen = [(value, False)], MOST_ATTRIBUTES, set[int]()
    while todo and left:
        one, is_inside = todo.pop()
        left -= 1
        if isinstance(one, Tensor):
            found += [one] if is_inside else []
        elif id(one) not in seen:
            seen.add(id(one))
            parts = [inner for _, inner in _parts(one)]
            todo += [(inner, is_inside) for inner in parts] or [(inner, True) for inner in _attributes(one)]
    return found


def _attributes(value: object) -> list[object]:
    """What an object has in its `__dict__`."""
    if type(value) in ATOMS or isinstance(value, FURTHER):
        return []
    try:
        return list(object.__getattribute__(value, "__dict__").values())
    except AttributeError:  # it has slots, or is built in
        return []


def tensor_info(path: str, tensor: Tensor, *, values: Tensor | None = None) -> TensorInfo:
    """What is known of `tensor` besides its values, which are in `values` if it is a wrapper."""
    return info_of(path, _shape(tensor if values is None else values), tensor.dtype, tensor.requires_grad)


@lru_cache(maxsize=1 << 14)
def info_of(path: str, shape: Shape, dtype: torch.dtype, requires_grad: bool) -> TensorInfo:  # noqa: PLR0917
    """Cached, since the same ones come step after step."""
    return TensorInfo(path, tuple(shape), str(dtype).removeprefix("torch."), requires_grad)


def _shape(tensor: Tensor) -> Shape:
    """The dimensions; None for a ragged one."""
    if type(tensor) is Tensor and not tensor.is_nested:
        return tensor.shape
    if tensor.is_nested and tensor.layout != torch.jagged:
        return (tensor.size(0), *(None for _ in range(tensor.dim() - 1)))
    return tuple(size if type(size) is int else None for size in tensor.shape)
