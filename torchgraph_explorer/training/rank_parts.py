"""Which part of a tensor a rank has recorded: how series of several ranks are put together (see `Series.part`)."""

from __future__ import annotations

import numpy as np

from torchgraph_explorer.capture.distributed import Shards
from torchgraph_explorer.schema import Series


def part_of(series: Series, count: int, shards: Shards) -> int | None:
    """The part of its tensor that `count` elements of `series` are; None for one that no other rank has.

    A sharded parameter may be gathered for a while. So what was measured is judged by its number of elements.
    """
    shard = shards.get((series.module, series.path))
    if series.role != "param" or shard is None:
        return None
    if series.kind == "update_ratio":  # one number, for however many elements
        return 0 if shard.part is None and shard.elements >= 0 else shard.part
    return 0 if count == np.float32(shard.elements) else shard.part
