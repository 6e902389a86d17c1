"""What a page asks for, as indices, edits and targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from torchgraph_explorer.capture.tensor_tree import tensors
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.exploring.session import Target

MOST_CELLS = 65_536
"""Elements that one edit may set one by one."""


def region(parts: Any, shape: Sequence[int]) -> tuple[int | slice, ...]:
    """An index: for each dimension a number, `[start, stop]`, or null for all of it.

    Raises:
        OptionError: There is no such element.
    """
    if not isinstance(parts, list) or len(parts) != len(shape):
        raise OptionError(f"{parts!r:.80} is not an element of a tensor of shape {tuple(shape)}.")
    return tuple(_range(part, size) for part, size in zip(parts, shape, strict=True))


def _range(part: Any, size: int) -> int | slice:
    match part:
        case None:
            return slice(None)
        case bool():
            pass
        case int() if 0 <= part < size:
            return part
        case [int(start), int(stop)] if 0 <= start < stop <= size:
            return slice(start, stop)
    raise OptionError(f"{part!r:.40} is not an index or range of a dimension of size {size}.")


def edited(tensor: Tensor, kind: str, arguments: Mapping[str, Any]) -> Tensor:
    """A copy of `tensor` with an edit.

    Raises:
        OptionError: There is no such edit.
    """
    if kind not in EDITS:
        raise OptionError(f"There is no edit {kind!r:.40}. Edits are undo, redo, reset, {', '.join(EDITS)}.")
    after = tensor.clone()
    EDITS[kind](after, arguments)
    return after


def _cells(tensor: Tensor, arguments: Mapping[str, Any]) -> None:
    """Set single elements, by their place in the flattened tensor."""
    places, values = arguments["places"], arguments["values"]
    if len(places) != len(values) or len(places) > MOST_CELLS:
        raise OptionError(f"An edit sets up to {MOST_CELLS:,} elements, each to a value of its own.")
    if any(not 0 <= int(place) < tensor.numel() for place in places):
        raise OptionError(f"The tensor has elements 0 to {tensor.numel() - 1}.")
    flat = tensor.reshape(-1)
    flat[torch.tensor([int(place) for place in places], dtype=torch.long)] = torch.tensor(
        [float(value) for value in values], dtype=torch.float64
    ).to(tensor.device, tensor.dtype)
    tensor.copy_(flat.reshape(tensor.shape))


def _fill(tensor: Tensor, arguments: Mapping[str, Any]) -> None:
    tensor[region(arguments["region"], tensor.shape)] = float(arguments["value"])


def _noise(tensor: Tensor, arguments: Mapping[str, Any]) -> None:
    """Add noise of a normal distribution, from a generator of its own."""
    generator = torch.Generator().manual_seed(int(arguments.get("seed", 0)))
    part = tensor[region(arguments["region"], tensor.shape)]
    noise = torch.randn(part.shape, generator=generator) * float(arguments["std"])
    tensor[region(arguments["region"], tensor.shape)] = (part + noise.to(tensor.device)).to(tensor.dtype)


def _shift(tensor: Tensor, arguments: Mapping[str, Any]) -> None:
    """Move everything along a dimension; what leaves at one end comes in at the other."""
    dim = int(arguments["dim"])
    if not 0 <= dim < tensor.dim():
        raise OptionError(f"dim={dim} is not a dimension of a tensor of shape {tuple(tensor.shape)}.")
    tensor.copy_(tensor.roll(int(arguments["by"]), dim))


EDITS: Mapping[str, Callable[[Tensor, Mapping[str, Any]], None]] = MappingProxyType(
    {
        "cells": _cells,
        "fill": _fill,
        "noise": _noise,
        "shift": _shift,
    }
)


def target_of(arguments: Mapping[str, Any]) -> tuple[str, Target | None]:
    """The name and the function of a target: the loss (None), or an element of a tensor of the output, by its index."""
    index = arguments.get("index")
    if index is None:
        return "loss", None
    places = tuple(int(place) for place in index)
    path = str(arguments.get("path", "output"))

    def element(output: Any) -> Tensor:
        found = dict(tensors(output, "output"))
        if path not in found:
            raise OptionError(f"The model returns no {path!r:.80}. It returns {', '.join(found)}.")
        try:
            return found[path][places]
        except IndexError as fault:
            raise OptionError(f"{path} has shape {tuple(found[path].shape)}, and no element {places}.") from fault

    return f"{path}[{', '.join(map(str, places))}]", element
