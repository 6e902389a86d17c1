"""This process among those that train a model together. Nothing here communicates with the others."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.modules_by_name import modules_by_name
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
    """One parameter on this rank.

    Attributes:
        elements: How many it has on all ranks together; -1 where that is not known.
        part: Which part of them this rank has; None where that is not known.
    """

    elements: int
    part: int | None


Shards: TypeAlias = "Mapping[tuple[str, str], Shard]"
"""Shards, by module and parameter name."""


class Sharding:
    """How the parameters of a model are divided among the ranks. Ranks with the same part have the same elements."""

    def __init__(self, model: nn.Module) -> None:
        """Look at `model`, which is not kept alive, for a first time."""
        self._model = weakref.ref(model)
        self._known: Shards = {}
        with suppress(Exception):  # what is wrong is told at the first step
            self.look()

    def look(self) -> Shards:
        """The shards as they are now, as values that do not change later. To be called in the training's thread."""
        model = self._model()
        if model is not None:
            model = unwrapped(model)
            modules = modules_by_name(model).items()
            sharded = tuple(f"{name}." * bool(name) for name, module in modules if _is_fsdp1(module))
            found = {
                (name, path): Shard(-1, None) if f"{name}.".startswith(sharded) else _shard(parameter)
                for name, module in modules
                for path, parameter in nn.Module.named_parameters(module, recurse=False)
                if has_values(parameter)
            }
            new = {key: one for key, one in found.items() if one.part is not None or key not in self._known}
            self._known = {**self._known, **new}
        return self._known


def _shard(parameter: Any) -> Shard:
    """Where the shard lies among all shards; replicas of a shard lie at the same place."""
    placements = getattr(parameter, "placements", ())
    here = parameter.device_mesh.get_coordinate() if placements else None
    if here is None or any(placement.is_partial() for placement in placements):
        return Shard(parameter.numel(), None)
    part = 0
    for place, size, placement in zip(here, parameter.device_mesh.shape, placements, strict=True):
        part = part if placement.is_replicate() else part * size + place
    return Shard(parameter.numel(), part)


def _is_fsdp1(module: nn.Module) -> bool:
    """FSDP1 gives each rank plain tensors, which do not say that they are parts."""
    return any(each.__name__ == "FullyShardedDataParallel" for each in type(module).__mro__)


def _environment(name: str, default: int) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return default
