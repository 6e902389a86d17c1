"""`api/history`: every frame, or bins of several where there are more than can be shown. See http_api.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.merging import Bins, part, single, unit_for
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.records import STATISTICS
from torchgraph_explorer.server.pack import pack
from torchgraph_explorer.server.runs import OpenRun

Arrays = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, slots=True)
class WantedHistory:
    """What a client of `api/history` asks for.

    Attributes:
        series: Ids of the series.
        first_frame: Where to go on from.
        stop_frame: The frame before which to stop; None for all there are.
        most: Frames or bins that it can show; None for every frame.
        unit: Steps of the bins that it holds; 0 without any.
    """

    series: Sequence[int]
    first_frame: int
    stop_frame: int | None = None
    most: int | None = None
    unit: int = 0


def history_answer(opened: OpenRun, model: ModelRecord, wanted: WantedHistory) -> bytes:
    """`api/history`.

    Another thread may read on meanwhile, so the epoch is asked for first, and frames that have come since the steps
    were are left for next time.
    """
    epoch = opened.epoch(model)
    steps = model.steps[: wanted.stop_frame]
    unit = 1 if wanted.most is None else unit_for(steps, wanted.most)
    first = _first_frame(steps, wanted, unit)
    arrays: Arrays = {}
    for one in wanted.series:
        if wanted.most is None:
            found = single(model.history(one, first, len(steps)))
        else:
            found = opened.thinning.bins(model, one, epoch=epoch, steps=steps, unit=unit)
            found = part(found, int(np.searchsorted(found.first, first)))
        arrays |= {f"{one}.{name}": array for name, array in _arrays(found, unit).items()}
    meta = {
        "epoch": epoch,
        "frames": len(steps),
        "series": list(wanted.series),
        "statistics": list(STATISTICS),
        "unit": unit,
        "from": first,
    }
    return pack(meta, arrays)


def _first_frame(steps: npt.NDArray[np.int64], wanted: WantedHistory, unit: int) -> int:
    """From which frame on the answer holds what there is: that of the bin where the client's frames end."""
    first = min(wanted.first_frame, len(steps))
    if wanted.most is None or unit == wanted.unit == 1:
        return first
    if unit != wanted.unit:
        return 0
    return first if first == len(steps) else int(np.searchsorted(steps, steps[first] // unit * unit))


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
    """As float32; infinity where that has no room, as a record may hold any numbers."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)
