"""The merged histories of a run's series: worked out once, and then only what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.merging import Bins, joined, merge, part, single
from torchgraph_explorer.record.model_record import ModelRecord

KEPT = 256
"""Series of a run whose bins are kept; of a long run each takes 2 to 6 MB: 4,096 bins of 0.5 to 1.5 kB."""

MOST_BINS = 4096
"""Bins that are kept of a series though coarser ones are asked for: as many as the widest page shows.

With fewer, a wide page and a narrow one would take turns at having all frames read again.
"""

FRAMES_AT_ONCE = 4096
"""Frames that are read and merged in one go, to bound the memory that takes."""

Steps = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Held:
    """One series' bins; the lock is held while they are added to.

    Attributes:
        unit: Steps of a bin; 0 while there is none.
        bins: The bins.
        frames: Frames that have been looked at.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    unit: int = 0
    bins: Bins | None = None
    frames: int = 0


class Thinning:
    """Merged histories of one run. For many threads."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, int, int], _Held] = OrderedDict()
        self._lock = threading.Lock()

    def bins(self, model: ModelRecord, series: int, *, epoch: int, steps: Steps, unit: int) -> Bins:
        """One series over the frames at `steps` in bins of `unit` steps, a power of two.

        `epoch` is the model's, asked for before `steps`. Bins are kept as fine as they were asked for.
        """
        held = self._slot((model.name, epoch, series))
        with held.lock:
            if held.bins is None or not 0 < held.unit <= unit or held.frames > len(steps):
                held.bins, held.frames = single(model.history(series, 0, 0)), 0
                held.unit = unit
            for first in range(held.frames, len(steps), FRAMES_AT_ONCE):
                stop = min(first + FRAMES_AT_ONCE, len(steps))
                new = single(model.history(series, first, stop))
                held.bins = _extended(held.bins, new, steps=steps, unit=held.unit)
                held.frames = stop
            merged = merge(held.bins, steps, unit)
            if len(held.bins) > MOST_BINS:
                held.bins, held.unit = merged, unit
            return merged

    def _slot(self, key: tuple[str, int, int]) -> _Held:
        with self._lock:
            held = self._held.setdefault(key, _Held())
            self._held.move_to_end(key)
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
            return held


def _extended(bins: Bins, new: Bins, *, steps: Steps, unit: int) -> Bins:
    """`bins` and then `new`, of which the first may belong into the last bin."""
    last = max(len(bins) - 1, 0)
    return joined([part(bins, 0, last), merge(joined([part(bins, last), new]), steps, unit)])
