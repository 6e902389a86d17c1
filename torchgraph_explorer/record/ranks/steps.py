"""Merges the frames that several ranks wrote of one model, by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.ranks.groups import Member

Frames: TypeAlias = "npt.NDArray[np.void]"
"""Entries of the type `steps.index.FRAME`."""

Ints = npt.NDArray[np.int64]


class RankFrames:
    """The frames of each step that the ranks of the last launch wrote.

    Attributes:
        shares: The frames of the ranks: those of a merged frame are `shares[first : first + ranks]`, by rank. Only
            grows, so that merged frames stay valid.
    """

    def __init__(self, frames: Frames) -> None:
        """Begin with `frames`, which were written without ranks."""
        self.shares = frames[:0]
        self._current = frames

    def merge(self, frames: Frames, new: Frames, members: Sequence[Member]) -> Frames:
        """Add `new` to the merged `frames`: one frame a step, with the values of its lowest rank.

        `members` are the writers, by number of layout. Steps before the first new one are not merged again.
        """
        begin = new["step"].min()
        before, after = _split(self._current, begin)
        after = _of_the_last_launch(np.concatenate((after, new)), members)
        self._current = np.concatenate((before, after))
        kept, old = _split(frames, begin)
        return np.concatenate((kept, self._by_step(after, old)))

    def _by_step(self, shares: Frames, old: Frames) -> Frames:
        """The merged frames of `shares`; a frame of `old` where its shares are the same."""
        _, first, count = np.unique(shares["step"], return_index=True, return_counts=True)
        merged = shares[first]
        _fill_in_facts(merged, shares, count)
        merged["first"], merged["ranks"] = first + len(self.shares), count
        together = np.concatenate((self.shares, shares))
        for number, at in zip(*_matching(merged["step"], old["step"]), strict=True):
            if _places(together, merged[number]) == _places(together, old[at]):
                merged[number] = old[at]
        self.shares = together
        return merged


def expanded(frames: Frames, shares: Frames) -> tuple[Ints, Frames]:
    """The index of the merged frame of each rank's frame in `frames`, and the ranks' frames."""
    count = frames["ranks"].astype(np.int64)
    numbers = np.repeat(np.arange(len(frames)), count)
    if not (frames["first"] >= 0).any():
        return numbers, frames
    within = np.arange(len(numbers)) - np.repeat(np.cumsum(count) - count, count)
    found = frames[numbers]  # already right for frames that were written without ranks
    is_shared = found["first"] >= 0
    found[is_shared] = shares[(found["first"] + within)[is_shared]]
    return numbers, found


def _fill_in_facts(merged: Frames, shares: Frames, count: Ints) -> None:
    """Give merged frames whose lowest rank has no facts those of the lowest rank that has them.

    `count` is how many of `shares` each was merged from.
    """
    numbers = np.repeat(np.arange(len(merged)), count)
    known = np.flatnonzero(shares["kind"] >= 0)
    told, at = np.unique(numbers[known], return_index=True)
    for name in ("kind", "passes", "recorded_passes"):
        merged[name][told] = shares[name][known[at]]


def _of_the_last_launch(frames: Frames, members: Sequence[Member]) -> Frames:
    """The last written frame of each step and rank, without those of earlier launches of the same step."""
    launch, rank = np.array(members, dtype=np.int64).reshape(-1, 2)[frames["layout"]].T
    order = np.lexsort((frames["body"], frames["number"], rank, launch, frames["step"]))
    frames, launch, rank = frames[order], launch[order], rank[order]
    step = frames["step"]
    is_last = np.append((np.diff(step) != 0) | (np.diff(launch) != 0) | (np.diff(rank) != 0), True)
    ends = np.append(np.flatnonzero(np.diff(step)), len(step) - 1)
    latest = np.repeat(launch[ends], np.diff(ends, prepend=-1))
    kept: Frames = frames[is_last & (launch == latest)]
    return kept


def _split(frames: Frames, step: int) -> tuple[Frames, Frames]:
    at = np.searchsorted(frames["step"], step)
    return frames[:at], frames[at:]


def _matching(steps: Ints, old: Ints) -> tuple[Ints, Ints]:
    """The indices in both of the steps that both have."""
    _, numbers, at = np.intersect1d(steps, old, assume_unique=True, return_indices=True)
    return numbers, at


def _places(shares: Frames, frame: np.void) -> list[tuple[int, int]]:
    """The places of all frames that were merged into `frame`."""
    if frame["first"] < 0:
        return [(int(frame["segment"]), int(frame["body"]))]
    some = shares[frame["first"] : frame["first"] + frame["ranks"]]
    return list(zip(some["segment"].tolist(), some["body"].tolist(), strict=True))


def by_segment(frames: Frames) -> list[int]:
    """The places of `frames`, with those in one file after each other, so that each file is opened once."""
    order: list[int] = np.argsort(frames["segment"], kind="stable").tolist()
    return order
