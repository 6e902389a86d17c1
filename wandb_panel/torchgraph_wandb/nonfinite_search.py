"""Finds the steps of a record that have NaN or infinity, a few seconds at a time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.nonfinite import Flags
from torchgraph_explorer.record.origin import first_of
from torchgraph_explorer.schema import Frame, ModuleGraph, Series

SECONDS = 3.0
"""How long a snapshot searches the steps that it does not show; the next snapshot continues."""

FRAMES_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class NonfiniteSearch:
    """How far a record has been searched.

    Attributes:
        found: For each frame searched so far, whether it has NaN or infinity.
        last_step: The step of the last of those frames; -1 if there is none.
    """

    found: Flags
    last_step: int = -1

    @property
    def first(self) -> int | None:
        """The first frame that has NaN or infinity; None if none has so far."""
        return int(self.found.argmax()) if self.found.any() else None


NOT_SEARCHED = NonfiniteSearch(np.zeros(0, dtype=np.bool_))


def continue_search(model: ModelRecord, known: NonfiniteSearch, *, seconds: float = SECONDS) -> NonfiniteSearch:
    """`known`, extended by the frames recorded since, as many as can be searched in `seconds`.

    Starts again from the first frame if `known` belongs to another record.
    """
    steps, found = model.steps, known.found
    if len(found) > len(steps) or (len(found) and int(steps[len(found) - 1]) != known.last_step):
        found = found[:0]
    until = time.monotonic() + seconds
    while len(found) < len(steps) and time.monotonic() < until:
        more = model.nonfinite(len(found), min(len(found) + FRAMES_AT_ONCE, len(steps)))
        found = np.concatenate((found, more))
    return NonfiniteSearch(found, int(steps[len(found) - 1]) if len(found) else -1)


def first_nonfinite_series(model: ModelRecord, frame: Frame, graph: ModuleGraph) -> Series | None:
    """The first series, in the order of execution, that has NaN or infinity at `frame`."""
    return first_of(model.nonfinite_series(frame), graph)


def read_search(file: Path) -> NonfiniteSearch:
    """What an earlier snapshot found; `NOT_SEARCHED` if there was none, or if the file is damaged."""
    try:
        with file.open("rb") as opened, np.load(opened) as saved:
            return NonfiniteSearch(saved["found"].astype(np.bool_), int(saved["last_step"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return NOT_SEARCHED


def write_search(file: Path, search: NonfiniteSearch) -> None:
    """Save `search` for the next snapshot."""
    with file.open("wb") as opened:
        np.savez(opened, found=search.found, last_step=np.int64(search.last_step))
