"""Reads the cells of a model: from blocks of its index, or, for frames in no block, from the frames themselves."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.cells.codes import Codes
from torchgraph_explorer.record.cells.encoding import modules_check, place, read_codes, times_check
from torchgraph_explorer.record.cells.index import Block
from torchgraph_explorer.record.cells.statistics import STATISTIC_NAMES, CellTable
from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.model_index import ModelIndex

Ints: TypeAlias = npt.NDArray[np.int64]

FRAMES_AT_ONCE = 64
"""Frames without a block whose cells are computed together."""

MOST_BYTES = 128 << 20
"""Cells computed from frames that a cache keeps in memory."""


class StatisticsSource(Protocol):
    """The model whose cells are read: a `ModelRecord`."""

    @property
    def optimizer(self) -> str | None:
        """The optimizer whose steps its frames are; None for all."""

    @property
    def epoch(self) -> int:
        """Grows when frames that were there before have changed."""

    def statistics(self, frames: Ints) -> npt.NDArray[np.float32]:
        """The statistics of every series at some frames, `[STATISTICS, frames, series]`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which cells are wanted.

    Attributes:
        statistic: One of `STATISTIC_NAMES`.
        first_frame: The first frame.
        stop_frame: The first one after them; None for all.
        unit: Each column stands for so many frames, counted from frame 0.
        seconds: For how long cells are computed that are in no block; those of later frames are missing then.
    """

    statistic: str
    first_frame: int = 0
    stop_frame: int | None = None
    unit: int = 1
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """The cells of a stretch of frames, where each column stands for one frame or for several.

    Attributes:
        modules: Names of the modules, in the order of their first series.
        first: Number of the first frame of each column, `[columns]`.
        last: Number of the last one.
        codes: `[columns, modules]`, see `codes.py`.
        is_complete: False if the time was up before the cells of all frames were computed.
    """

    modules: tuple[str, ...]
    first: Ints
    last: Ints
    codes: Codes
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the cells of each frame are, for one state of the model.

    Attributes:
        key: The state.
        block: Index in `blocks` of each frame; -1 for a frame in no block.
        row: Which of the block's steps it is.
        blocks: Those that hold frames.
        rows: For each of them, the row of each of its modules.
        is_whole: Whether all steps of the block are frames, one after the other.
        table: Computes the cells of other frames.
    """

    key: object
    block: Ints
    row: Ints
    blocks: list[Block]
    rows: list[Ints]
    is_whole: list[bool]
    table: CellTable


class CellCache:
    """Cells that were computed, of all readers that share it; the least recently used go first. For many threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Keep up to `most_bytes`, and the latest in any case."""
        self._most, self._bytes = most_bytes, 0
        self._cells: OrderedDict[tuple[object, bytes], Codes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The size of all kept codes in bytes."""
        return self._bytes

    def get(self, owner: object, key: bytes) -> Codes | None:
        """What was kept for an owner under a key."""
        with self._lock:
            found = self._cells.get((owner, key))
            if found is not None:
                self._cells.move_to_end((owner, key))
            return found

    def put(self, owner: object, key: bytes, codes: Codes) -> None:
        """Keep `codes` under a key of an owner, in place of those that were used least recently."""
        with self._lock:
            before = self._cells.pop((owner, key), None)
            self._bytes += codes.nbytes - (0 if before is None else before.nbytes)
            self._cells[owner, key] = codes
            while self._bytes > self._most and len(self._cells) > 1:
                self._bytes -= self._cells.popitem(last=False)[1].nbytes

    def drop(self, owner: object) -> None:
        """Forget everything of an owner."""
        with self._lock:
            for key in [one for one in self._cells if one[0] is owner]:
                self._bytes -= self._cells.pop(key).nbytes


class CellReader:
    """The cells of one model. What it computes is kept in a cache; many threads may use it."""

    def __init__(self, cache: CellCache | None = None) -> None:
        """Keep what is computed in `cache`, which other readers may share; by default in one of its own."""
        self._lock = threading.Lock()
        self._plan: _Plan | None = None
        self._computed = CellCache() if cache is None else cache
        self._owner = object()  # not the reader itself: cells that are left over are not to keep a closed run alive

    def read(self, model: StatisticsSource, index: ModelIndex, wanted: Wanted) -> Columns:
        """What is wanted of `model`, whose index this is.

        Raises:
            RecordError: The run is gone.
        """
        until = None if wanted.seconds is None else time.monotonic() + wanted.seconds
        with self._lock:
            plan = self._plan = self._current(model, index)
            count, unit = len(plan.block), wanted.unit
            stop = count if wanted.stop_frame is None else min(max(wanted.stop_frame, 0), count)
            frames = np.arange(max(wanted.first_frame, 0), stop)
            columns = frames // unit - (frames[0] // unit if len(frames) else 0)
            starts = np.flatnonzero(np.diff(columns, prepend=-1))
            codes = np.zeros((len(starts), len(plan.table.modules)), dtype=np.uint16)
            asked = _Asked(wanted.statistic, frames, columns, codes)
            is_complete = self._compute(model, plan, asked, without=_read_blocks(plan, asked), until=until)
            stops = np.append(starts[1:], len(frames))[: len(starts)] - 1
            return Columns(plan.table.modules, frames[starts], frames[stops], codes, is_complete)

    def _current(self, model: StatisticsSource, index: ModelIndex) -> _Plan:
        blocks, frames, series = list(index.cells.blocks), index.frames.frames, index.series
        key = (model.epoch, len(frames), len(blocks), len(series), model.optimizer)
        if self._plan is not None and self._plan.key == key:
            return self._plan
        if self._plan is None or self._plan.key[:1] != key[:1] or self._plan.key[3:] != key[3:]:  # type: ignore[index]
            self._computed.drop(self._owner)
        return _plan(key, index, blocks=blocks, table=CellTable(series))

    def _compute(
        self, model: StatisticsSource, plan: _Plan, asked: _Asked, *, without: Ints, until: float | None
    ) -> bool:
        """Fill in the frames `without` a block; False if the time was up before that was done."""
        statistic = STATISTIC_NAMES.index(asked.statistic)
        chunks = np.unique(without // FRAMES_AT_ONCE).tolist()
        for number in chunks:
            if until is not None and number != chunks[0] and time.monotonic() > until:
                return False
            stretch = np.arange(number * FRAMES_AT_ONCE, min((number + 1) * FRAMES_AT_ONCE, len(plan.block)))
            numbers = stretch[(plan.block[stretch] < 0) | np.isin(stretch, without)]
            cells = self._chunk(model, plan, numbers)[statistic]
            is_asked = np.isin(numbers, without)
            columns = asked.columns[numbers[is_asked] - asked.frames[0]]
            np.maximum.at(asked.codes, columns, cells[is_asked])
        return True

    def _chunk(self, model: StatisticsSource, plan: _Plan, numbers: Ints) -> Codes:
        """The cells of the frames `numbers`, of all statistics."""
        key = numbers.tobytes()
        found = self._computed.get(self._owner, key)
        if found is None:
            found = plan.table.cells(model.statistics(numbers))
            self._computed.put(self._owner, key, found)
        return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """The numbers of frames, without gaps; the column of each; and the codes to fill."""

    statistic: str
    frames: Ints
    columns: Ints
    codes: Codes


def _plan(key: object, index: ModelIndex, *, blocks: list[Block], table: CellTable) -> _Plan:
    frames = index.frames.frames
    steps = frames["step"]
    block, row = np.full(len(frames), -1, dtype=np.int64), np.zeros(len(frames), dtype=np.int64)
    row_of = {name: number for number, name in enumerate(table.modules)}
    modules: dict[str, list[str]] = {}
    for number, one in enumerate(blocks):
        at = np.minimum(np.searchsorted(steps, one.steps), max(len(frames) - 1, 0))
        is_there = (steps[at] == one.steps) if len(frames) else np.zeros(0, dtype=np.bool_)
        if one.session not in modules:
            modules[one.session] = _modules_of(index, one.session)
        if not _is_sound(index, one, at[is_there], modules=modules[one.session]):
            continue
        block[at[is_there]], row[at[is_there]] = number, np.flatnonzero(is_there)
    used = np.unique(block[block >= 0])
    renumbered = np.full(len(blocks) + 1, -1, dtype=np.int64)
    renumbered[used] = np.arange(len(used))
    kept = [blocks[number] for number in used.tolist()]
    rows = [np.array([row_of[name] for name in modules[one.session][: one.head.modules]], np.int64) for one in kept]
    block = renumbered[block]
    return _Plan(key, block, row, kept, rows, _are_whole(block, kept), table)


def _are_whole(block: Ints, blocks: list[Block]) -> list[bool]:
    at = np.flatnonzero(block >= 0)
    count = np.bincount(block[at], minlength=len(blocks))
    first, last = np.full(len(blocks), len(block)), np.full(len(blocks), -1)
    np.minimum.at(first, block[at], at)
    np.maximum.at(last, block[at], at)
    steps = np.array([len(one.steps) for one in blocks], dtype=np.int64)
    whole: list[bool] = ((count == steps) & (last - first + 1 == count)).tolist()
    return whole


def _is_sound(index: ModelIndex, one: Block, at: Ints, *, modules: list[str]) -> bool:
    """Whether the frames `at` are those that the block is of, and its modules are the first ones of `modules`."""
    frames = index.frames.frames
    if not len(at) or (frames["ranks"][at] > 1).any():
        return False
    is_every = len(at) == len(one.steps)
    if is_every and times_check(frames["time"][at]) != one.head.times_check:
        return False
    if not is_every and not all(index.frames.session(layout) == one.session for layout in set(frames["layout"][at])):
        return False
    return modules_check(modules[: one.head.modules]) == one.head.modules_check


def _modules_of(index: ModelIndex, session: str) -> list[str]:
    """The modules of a session's series, in the order of their first series."""
    series = index.series
    return list(dict.fromkeys(series[one].module for one in index.sessions[session].all_reader_ids()))


def _read_blocks(plan: _Plan, asked: _Asked) -> Ints:
    """Fill in what blocks have; the frames that are in none, or in one that is damaged."""
    of_frame = plan.block[asked.frames]
    without = [asked.frames[of_frame < 0]]
    numbers = np.unique(of_frame[of_frame >= 0]).tolist()
    for number in numbers:
        one = plan.blocks[number]
        at = np.flatnonzero(of_frame == number)
        columns = asked.columns[at]
        merged = plan.is_whole[number] and len(at) == len(one.steps) and columns[0] == columns[-1]
        with reading(one.path) as read:
            codes = _codes(read, one, asked.statistic, merged=merged)
        if codes is None:
            without.append(asked.frames[at])
            continue
        rows = plan.rows[number]
        if merged:
            _put(asked.codes, columns[:1], rows, found=codes)
        else:
            _put(asked.codes, columns, rows, found=codes[plan.row[asked.frames[at]]])
    return np.concatenate(without)


def _put(codes: Codes, columns: Ints, rows: Ints, *, found: Codes) -> None:
    """Take `found`, `[frames, modules of the block]`, into the columns of its frames, which ascend."""
    starts = np.flatnonzero(np.diff(columns, prepend=-1))
    largest = np.maximum.reduceat(found, starts, axis=0)
    for at, column in enumerate(columns[starts].tolist()):
        codes[column, rows] = np.maximum(codes[column, rows], largest[at])


def _codes(read: ReadAt, one: Block, statistic: str, *, merged: bool) -> Codes | None:
    found = place(one.head, statistic, merged=merged)
    return None if found is None else read_codes(read, found, body=one.body, modules=one.head.modules)
