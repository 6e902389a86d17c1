"""What this process is among those that train a model together. Nothing here talks to the others."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from torchgraph_explorer.capture.module_info import has_values
from torchgraph_explorer.capture.unwrap import unwrapped
from torchgraph_explorer.schema import Series


@dataclass(frozen=True, slots=True)
class Rank:
    """One of several processes that train together.

    Attributes:
        number: From 0.
        world_size: How many there are.
        is_leader: The first on its machine, which serves, speaks and names the run.
    """

    number: int
    world_size: int
    is_leader: bool


def this_rank() -> Rank | None:
    """What this process is, by its process group, or by what torchrun has told it; None when it is alone."""
    group = torch.distributed
    if group.is_available() and group.is_initialized():
        number, world_size = group.get_rank(), group.get_world_size()
    else:
        number, world_size = _told("RANK", -1), _told("WORLD_SIZE", 1)
    if world_size < 2 or number < 0:
        return None
    return Rank(number, world_size, is_leader=_told("LOCAL_RANK", number) == 0)


@dataclass(frozen=True, slots=True)
class _Shard:
    """What is known of a parameter: its elements on all ranks, and which part of them this one has, if it says so."""

    elements: int
    part: int | None


class Parts:
    """Which part of each parameter's values and gradients this process has. Ranks with the same part have the same.

    A sharded parameter may be there as a whole for a while. So what was measured is judged by its number of elements.
    """

    def __init__(self, model: nn.Module) -> None:
        """Look at `model`, which is not kept alive, for a first time."""
        self._model = weakref.ref(model)
        self._known: dict[tuple[str, str], _Shard] = {}
        with suppress(Exception):  # what is wrong is told at the first step
            self.look()

    def look(self) -> None:
        """See how the parameters are sharded. To be called in the thread of the training."""
        model = self._model()
        if model is not None:
            model = unwrapped(model)
            sharded = tuple(f"{name}." * bool(name) for name, module in model.named_modules() if _is_fsdp1(module))
            found = {
                (name, path): _Shard(-1, None) if f"{name}.".startswith(sharded) else _shard(parameter)
                for name, module in model.named_modules()
                for path, parameter in module.named_parameters(recurse=False)
                if has_values(parameter)
            }
            self._known |= {key: one for key, one in found.items() if one.part is not None or key not in self._known}

    def part_of(self, series: Series, count: int) -> int | None:
        """Which part of the tensor `count` elements of `series` are; None for one that no other rank has."""
        known = self._known.get((series.module, series.path))
        if series.role != "param" or known is None:
            return None
        if series.kind == "update_ratio":  # one number, for however many elements
            return 0 if known.part is None and known.elements >= 0 else known.part
        return 0 if count == np.float32(known.elements) else known.part


def _shard(parameter: Any) -> _Shard:
    """Where the shard lies among all shards; replicas of a shard lie at the same place."""
    placements = getattr(parameter, "placements", ())
    here = parameter.device_mesh.get_coordinate() if placements else None
    if here is None or any(placement.is_partial() for placement in placements):
        return _Shard(parameter.numel(), None)
    part = 0
    for place, size, placement in zip(here, parameter.device_mesh.shape, placements, strict=True):
        part = part if placement.is_replicate() else part * size + place
    return _Shard(parameter.numel(), part)


def _is_fsdp1(module: nn.Module) -> bool:
    """The older sharding gives each rank plain tensors, which do not say that they are parts."""
    return any(each.__name__ == "FullyShardedDataParallel" for each in type(module).__mro__)


def _told(name: str, otherwise: int) -> int:
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return otherwise
