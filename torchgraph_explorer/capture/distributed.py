"""This process among those that train a model together. Nothing here communicates with the others."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.unwrap import unwrapped


@dataclass(frozen=True, slots=True)
class Rank:
    """One of several processes that train together.

    Attributes:
        number: From 0.
        world_size: How many there are.
        is_leader: The first on its machine, which starts the viewer, prints messages and names the run.
    """

    number: int
    world_size: int
    is_leader: bool


def this_rank() -> Rank | None:
    """The rank of this process, from its process group or torchrun's environment variables; None without others."""
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        number, world_size = group.get_rank(), group.get_world_size()
    else:
        number, world_size = _environment("RANK", -1), _environment("WORLD_SIZE", 1)
    if world_size < 2 or number < 0:
        return None
    return Rank(number, world_size, is_leader=_environment("LOCAL_RANK", number) == 0)


@dataclass(frozen=True, slots=True)
class Shard:
    """How a parameter is spread over the ranks.

    Attributes:
        elements: How many it has on all ranks together; -1 if that is not known.
        part: Which part of them this rank has; None if the parameter does not say.
    """

    elements: int
    part: int | None


def shards(model: nn.Module) -> dict[tuple[str, str], Shard]:
    """The shard of each parameter of `model`, by module name and parameter name."""
    model = unwrapped(model)
    fsdp1 = tuple(f"{name}." * bool(name) for name, module in model.named_modules() if _is_fsdp1(module))
    return {
        (name, path): Shard(-1, None) if f"{name}.".startswith(fsdp1) else _shard(parameter)
        for name, module in model.named_modules()
        for path, parameter in module.named_parameters(recurse=False)
        if has_values(parameter)
    }


def _shard(parameter: Any) -> Shard:
    """The part is the shard's position among all shards; replicas of a shard have the same position."""
    placements = getattr(parameter, "placements", ())
    coordinates = parameter.device_mesh.get_coordinate() if placements else None
    if coordinates is None or any(placement.is_partial() for placement in placements):
        return Shard(parameter.numel(), None)
    part = 0
    for coordinate, size, placement in zip(coordinates, parameter.device_mesh.shape, placements, strict=True):
        part = part if placement.is_replicate() else part * size + coordinate
    return Shard(parameter.numel(), part)


def _is_fsdp1(module: nn.Module) -> bool:
    """FSDP1 gives each rank plain tensors, which do not say that they are parts."""
    return any(each.__name__ == "FullyShardedDataParallel" for each in type(module).__mro__)


def _environment(name: str, default: int) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return default
