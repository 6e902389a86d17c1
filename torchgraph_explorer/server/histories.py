"""`api/history`: every frame, or bins of several frames if there are more than can be shown. See http_api.md.

An answer takes limited time and memory, whatever is asked for: it covers as many frames as that allows, and says how
many.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.merging import Bins, joined, part, single, unit_for
from torchgraph_explorer.schema import STATISTICS
from torchgraph_explorer.server.open_runs import OpenRun
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.thinning import MOST_BINS, Thinning, copied, size_of, sizes_of

Arrays = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class WantedHistory:
    """What a client of `api/history` asks for.

    Attributes:
        series: Ids of the series, each once.
        first_frame: The first frame that the client lacks.
        stop_frame: The frame before which to stop; None for all.
        most: Frames or bins that it can show; None for every frame.
        unit: Steps of the bins that the client has; 0 without any.
    """

    series: Sequence[int]
    first_frame: int
    stop_frame: int | None = None
    most: int | None = None
    unit: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of one answer.

    Attributes:
        seconds: Time after which no more is read.
        size: Bytes of bins in memory after which no more is read. The answer has about half as many bytes.
        rows: Rows, one of each series and frame, that are read between two checks; this many are always read.
    """

    seconds: float = 1.0
    size: int = 2**25
    rows: int = 4096


BOUNDS = Bounds()


class Source(Protocol):
    """Gives the bins of series, from a first frame on."""

    def frames(self, series: int) -> int:
        """The frame up to which the bins of a series are known."""

    def extend(self, series: int, stop: int) -> int:
        """Read up to the frame `stop`; how many bytes the bins take."""

    def bins(self, series: int, stop: int) -> Bins:
        """The bins that begin before the frame `stop`."""


@dataclass(frozen=True, slots=True)
class EveryFrame:
    """Frames one by one, from `first` on, as they are read."""

    model: ModelRecord
    first: int
    _read: dict[int, list[Bins]] = field(default_factory=dict)
    _frames: dict[int, int] = field(default_factory=dict)

    def frames(self, series: int) -> int:
        """See `Source`."""
        return self._frames.get(series, self.first)

    def extend(self, series: int, stop: int) -> int:
        """See `Source`."""
        found = self._read.setdefault(series, [])
        found.append(single(self.model.history(series, self.frames(series), stop)))
        self._frames[series] = stop
        return sum(size_of(one) for one in found)

    def bins(self, series: int, stop: int) -> Bins:
        """See `Source`."""
        read = self._read.get(series) or [single(self.model.history(series, 0, 0))]
        found = joined(read)
        return part(found, 0, int(np.searchsorted(found.first, stop)))


def history_answer(opened: OpenRun, model: ModelRecord, wanted: WantedHistory, *, bounds: Bounds = BOUNDS) -> bytes:
    """`api/history`.

    The epoch is read before the rest, since another thread may refresh the run meanwhile; frames that come after
    `steps` is read are left to the next request.
    """
    epoch = opened.epoch(model)
    steps, known = model.steps, len(model.series)
    for one in wanted.series:
        if one >= known:
            model.history(one, 0, 0)  # raises the error that names the valid ids
    stop = len(steps) if wanted.stop_frame is None else min(wanted.stop_frame, len(steps))
    unit = 1 if wanted.most is None else unit_for(steps[:stop], min(wanted.most, MOST_BINS))
    first = _first_frame(steps[:stop], wanted, unit)
    source: Source = EveryFrame(model, first)
    if wanted.most is not None:
        source = Thinning(model, epoch, steps, unit, first, opened.bins)
    reached = _read(source, wanted.series, first=first, stop=stop, bounds=bounds)
    found, reached = _within(source, wanted.series, stop=reached, size=bounds.size)
    arrays: Arrays = {}
    for one in wanted.series:
        arrays |= {f"{one}.{name}": array for name, array in _arrays(found.pop(one), unit).items()}
    meta = {
        "epoch": epoch,
        "frames": reached,
        "series": list(wanted.series),
        "statistics": list(STATISTICS),
        "unit": unit,
        "from": first,
    }
    return pack(meta, arrays)


def _first_frame(steps: npt.NDArray[np.int64], wanted: WantedHistory, unit: int) -> int:
    """The first frame of the answer: the beginning of the bin in which the client's frames end."""
    first = min(wanted.first_frame, len(steps))
    if wanted.most is None or unit == wanted.unit == 1:
        return first
    if unit != wanted.unit:
        return 0
    return first if first == len(steps) else int(np.searchsorted(steps, steps[first] // unit * unit))


def _read(source: Source, series: Sequence[int], *, first: int, stop: int, bounds: Bounds) -> int:
    """Read every series as far as the bounds allow; the frame up to which all are read."""
    deadline = time.monotonic() + bounds.seconds
    reached = min((source.frames(one) for one in series), default=stop)
    at_once = max(1, bounds.rows // max(1, len(series)))
    while reached < stop:
        reached = min(reached + at_once, stop)
        size = sum(source.extend(one, reached) for one in series)
        if time.monotonic() > deadline or size > bounds.size:
            break
    return min(max(reached, first), stop)


def _within(source: Source, series: Sequence[int], *, stop: int, size: int) -> tuple[dict[int, Bins], int]:
    """The bins of each series up to `stop`, or up to an earlier frame, so that together they take about `size` bytes.

    Each series gets an equal share of that, and at least one bin.
    """
    found: dict[int, Bins] = {}
    for one in series:
        bins = source.bins(one, stop)
        fit = max(1, int(np.searchsorted(sizes_of(bins), size // len(series), side="right")))
        if fit < len(bins):
            stop = int(bins.first[fit])
            bins = copied(part(bins, 0, fit))
        found[one] = bins
    return {one: part(bins, 0, int(np.searchsorted(bins.first, stop))) for one, bins in found.items()}, stop


def _arrays(bins: Bins, unit: int) -> Arrays:
    histograms = bins.histograms()
    of_frames: Arrays = {
        "frame": bins.first.astype(np.uint32),
        "statistics": _rounded(bins.statistics),
        "offsets": histograms.offsets,
        "buckets": histograms.buckets,
        "counts": histograms.counts,
    }
    if unit == 1:
        return of_frames
    return of_frames | {
        "last": bins.last.astype(np.uint32),
        "merged": bins.frames.astype(np.uint32),
        "bad": bins.bad.astype(np.uint32),
        "lowest": _rounded(bins.lowest),
        "highest": _rounded(bins.highest),
    }


def _rounded(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The numbers as float32; infinity for those beyond its range, which a record may have."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)
