"""The merged histories of series: each frame is read and merged once, and then kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.merging import Bins, joined, merge, part, single
from torchgraph_explorer.schema import STATISTICS

KEPT_BYTES = 2**28
"""Bytes of bins that are kept, of all runs. A series of a long run has 2 to 6 MB: 4,096 bins of 0.5 to 1.5 kB."""

MOST_BINS = 4096
"""Bins of a series, as many as the widest page shows. This many are kept even if a client asks for coarser ones.

With fewer, a wide and a narrow page that are both open would have all frames read again in turns.
"""

OVERHEAD = 4096
"""Bytes that a series takes besides its bins."""

PART = 64
"""Bins in one piece; when frames are added, only the last piece is copied."""

PER_BIN, PER_ENTRY = 8 * (3 * len(STATISTICS) + 5), 2 + 8
"""Bytes of a bin, and of an entry of its histogram."""

Steps = npt.NDArray[np.int64]


@dataclass(slots=True)
class CachedBins:
    """The bins of one series; the lock is held while they are read or added to.

    Attributes:
        unit: Steps of a bin; 0 while there is none.
        start: The first frame that was read; a bin begins there.
        frames: The frame up to which frames were read.
        parts: The bins, in pieces.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    unit: int = 0
    start: int = 0
    frames: int = 0
    parts: list[Bins] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The size of the bins in bytes."""
        return OVERHEAD + sum(size_of(one) for one in self.parts)


class BinCache:
    """The merged bins of many runs' series, up to a number of bytes; the least recently used go first."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most, self._total = most_bytes, 0
        self._cached: OrderedDict[object, tuple[CachedBins, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._cached)

    @property
    def size(self) -> int:
        """Bytes of all that is kept."""
        return self._total

    def get(self, key: object) -> CachedBins:
        """What is kept under `key`; a new, empty entry if there is nothing."""
        with self._lock:
            cached, _ = self._cached.setdefault(key, (CachedBins(), 0))
            self._cached.move_to_end(key)
            return cached

    def resize(self, key: object, cached: CachedBins) -> None:
        """Count `cached`, which `get` gave, with the size that it has now."""
        size = cached.size
        with self._lock:
            if self._cached.get(key, (None, 0))[0] is not cached:
                return
            self._total += size - self._cached[key][1]
            self._cached[key] = cached, size
            while self._total > self._most and len(self._cached) > 1:
                _, (_, gone) = self._cached.popitem(last=False)
                self._total -= gone


@dataclass(frozen=True, slots=True)
class Thinning:
    """Merged histories of one model in bins of `unit` steps. Many threads may use it.

    Attributes:
        model: The model.
        epoch: Its epoch as clients know it, read before `steps`.
        steps: The steps of all its frames.
        unit: Steps of a bin, a power of two.
        first: The first frame that is wanted; a bin begins there.
        cache: Keeps the bins, as fine as they were asked for.
    """

    model: ModelRecord
    epoch: int
    steps: Steps
    unit: int
    first: int
    cache: BinCache

    def frames(self, series: int) -> int:
        """The frame up to which the bins of a series are known; `first` if none are."""
        with self._cached(series) as cached:
            return cached.frames

    def extend(self, series: int, stop: int) -> int:
        """Read a series up to the frame `stop`; how many bytes its bins take from `first` on."""
        with self._cached(series) as cached:
            self._read(cached, series, stop)
            return sum(map(size_of, self._parts(cached)))

    def bins(self, series: int, stop: int) -> Bins:
        """The bins of a series that begin before the frame `stop`. The last may include later frames."""
        with self._cached(series) as cached:
            self._read(cached, series, stop)
            found = joined(self._parts(cached))
            found = part(found, int(np.searchsorted(found.first, self.first)))
            found = merge(found, self.steps, self.unit)
            return part(found, 0, int(np.searchsorted(found.first, stop)))

    def _parts(self, cached: CachedBins) -> list[Bins]:
        """The pieces with bins from `first` on; at least the last piece."""
        return [one for one in cached.parts if len(one) and one.first[-1] >= self.first] or cached.parts[-1:]

    @contextmanager
    def _cached(self, series: int) -> Iterator[CachedBins]:
        """The entry of a series; emptied if its bins cannot be used.

        That is so if they are too coarse, begin too late, end before `first`, or are of frames that are gone.
        """
        key = (self.model.name, self.model.optimizer, self.epoch, series)
        cached = self.cache.get(key)
        with cached.lock:
            is_fine_enough = 0 < cached.unit <= self.unit
            if not (is_fine_enough and cached.start <= self.first <= cached.frames <= len(self.steps)):
                cached.parts = [single(self.model.history(series, 0, 0))]
                cached.unit, cached.start, cached.frames = self.unit, self.first, self.first
            yield cached
            self.cache.resize(key, cached)

    def _read(self, cached: CachedBins, series: int, stop: int) -> None:
        if cached.frames >= stop:
            return
        new = single(self.model.history(series, cached.frames, stop))
        # The first new frames may belong to the last bin.
        cached.parts[-1:] = _pieces(merge(joined([cached.parts[-1], new]), self.steps, cached.unit))
        cached.frames = stop
        if cached.unit < self.unit and sum(map(len, cached.parts)) > MOST_BINS:
            cached.parts, cached.unit = _pieces(merge(joined(cached.parts), self.steps, self.unit)), self.unit


def size_of(bins: Bins) -> int:
    """Approximate bytes of bins."""
    return int(sizes_of(bins)[-1]) if len(bins) else 0


def sizes_of(bins: Bins) -> npt.NDArray[np.int64]:
    """Approximate bytes of the bins up to and including each."""
    return np.arange(1, len(bins) + 1) * PER_BIN + bins.offsets[1:] * PER_ENTRY


def copied(bins: Bins) -> Bins:
    """A copy, so that the bins do not keep the memory alive that they were cut from."""
    return joined([bins])


def _pieces(bins: Bins) -> list[Bins]:
    return [copied(part(bins, at, at + PART)) for at in range(0, len(bins), PART)] or [bins]
