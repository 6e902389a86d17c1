"""Which part of each parameter this rank records, of those that the ranks hold together."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from torch import nn

from torchgraph_explorer.capture.distributed import Shard, shards
from torchgraph_explorer.schema import Series


class RankParts:
    """Numbers the parts of each parameter's values and gradients. Ranks with the same part hold the same elements.

    A sharded parameter may be there as a whole for a while. So what was measured is judged by its number of elements.
    """

    def __init__(self, model: nn.Module) -> None:
        """Look at `model`, which is not kept alive, for a first time."""
        self._model = weakref.ref(model)
        self._shards: Mapping[tuple[str, str], Shard] = {}
        with suppress(Exception):  # the same fault is reported at the first step
            self.look()

    def look(self) -> None:
        """Find out how the parameters are sharded now. To be called in the training's thread."""
        model = self._model()
        if model is not None:
            known = self._shards
            found = {key: one for key, one in shards(model).items() if one.part is not None or key not in known}
            self._shards = {**known, **found}  # another dict, since the writer's thread reads it

    def part_of(self, series: Series, count: int) -> int | None:
        """Which part of the tensor `count` elements of `series` are; None for one that no other rank has.

        To be called in the writer's thread.
        """
        known = self._shards.get((series.module, series.path))
        if series.role != "param" or known is None:
            return None
        if series.kind == "update_ratio":  # one number, for however many elements
            return 0 if known.part is None and known.elements >= 0 else known.part
        return 0 if count == np.float32(known.elements) else known.part
