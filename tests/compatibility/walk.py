"""Finds tensors in nested values. Written apart from the package's own finder, so that each can prove the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def tensors_in(value: object, path: str = "", above: Sequence[object] = ()) -> Iterator[tuple[str, Tensor]]:
    """The tensors in `value` and where each sits, in lists, tuples, mappings and dataclasses; once in cycles."""
    if isinstance(value, Tensor):
        yield path, value
        return
    for name, inner in () if any(one is value for one in above) else _inside(value):
        yield from tensors_in(inner, path + name, (*above, value))


def _inside(value: Any) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", value[key]) for key in value]
    if isinstance(value, tuple) and type(value) is not tuple and hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", inner) for i, inner in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{one.name}", getattr(value, one.name, None)) for one in dataclasses.fields(value)]
    return []


def fingerprint(value: Any) -> Any:
    """Something that is equal for two values only if they are the same by bytes."""
    if isinstance(value, Tensor):
        return _bytes(value)
    if isinstance(value, Mapping):
        return [(str(key), fingerprint(inner)) for key, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return [fingerprint(inner) for inner in value]
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    return f"a {type(value).__name__}"


def _bytes(tensor: Tensor) -> Any:
    tensor = tensor.detach()
    head = (type(tensor).__name__, str(tensor.dtype), tensor.requires_grad)
    if tensor.is_nested:
        return (*head, [_bytes(part) for part in tensor.unbind()])
    if tensor.layout not in (torch.strided, torch.sparse_coo):
        tensor = tensor.to_dense()
    if tensor.is_sparse:
        tensor = tensor.coalesce()
        return (*head, _bytes(tensor.indices()), _bytes(tensor.values()))
    if type(tensor).__name__ == "DTensor":
        return (*head, _bytes(tensor.to_local()))  # type: ignore[attr-defined]
    plain = tensor.as_subclass(Tensor).contiguous().reshape(-1)
    if plain.is_quantized:
        plain = plain.int_repr()
    return (*head, tuple(tensor.shape), plain.resolve_conj().resolve_neg().cpu().view(torch.uint8).numpy().tobytes())
