"""The scalars and notes that the training loops of one model logged, all sessions together."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.dataframes import dataframe
from torchgraph_explorer.record.limits import LOGGED_VALUES, SCALARS, STEP_NOTES
from torchgraph_explorer.record.ranks.groups import Member
from torchgraph_explorer.schema import Logged, StepNote

Rows = npt.NDArray[np.void]

ROW = np.dtype([("step", np.int64), ("time", np.float64), ("value", np.float64), ("name", np.uint32)])
"""A value in memory; `name` is the number of its scalar in the model."""


MOST_WAITING = 4096
"""Records that are not yet put together."""


class _Block(NamedTuple):
    """The rows of one or several records of a session, and the least and the largest step among them."""

    first: int
    last: int
    rows: Rows


@dataclass(frozen=True, slots=True)
class Scalar:
    """The values of one scalar over the steps.

    Attributes:
        name: As it was logged.
        steps: Ascending, each once; `[n]` int64.
        times: When each value was logged, in seconds since the epoch, `[n]` float64.
        values: `[n]` float64; may be NaN or infinite.
        label: The label with which they were logged; None without.
    """

    name: str
    steps: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]
    label: str | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def to_dataframe(self, library: str = "pandas") -> Any:
        """A table with a row for each step: `step`, `time` and `value`, as a `DataFrame` of pandas or polars.

        Args:
            library: `"pandas"` or `"polars"`, which must be installed.

        Raises:
            OptionError: The library is another one, or is not installed.
        """
        return dataframe({"step": self.steps, "time": self.times, "value": self.values}, library)


class LoggedSoFar(NamedTuple):
    """What is known of a model's scalars at one time.

    Attributes:
        epoch: Grows when values at steps before the latest one have changed.
        blocks: How many records it is made of; grows when anything is new.
        every: The scalars of each name and label, in the order of first logging. Without those that a later session
            replaced as a whole.
        notes: In the order of their steps.
    """

    epoch: int
    blocks: int
    every: tuple[Scalar, ...]
    notes: tuple[StepNote, ...]

    @property
    def scalars(self) -> Mapping[str, Scalar]:
        """The scalars without a label, by name."""
        return self.labelled(None)

    def labelled(self, label: str | None) -> Mapping[str, Scalar]:
        """The scalars with this label, by name; for None, those without a label."""
        return {one.name: one for one in self.every if one.label == label}


class TooMuchError(Exception):
    """A model has more scalars than a reader takes. The message says of what."""


class ScalarIndex:
    """Takes blocks of logged values in the order in which they are found, and joins sessions and ranks.

    A session's values count from its first step on: those that an earlier session logged at such steps do not. Of ranks
    that train together, the lowest that has a value at a step counts; and of several values of one rank, the last.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks: dict[str, list[_Block]] = {}
        self._notes: dict[str, list[StepNote]] = {}
        self._names: dict[tuple[str, str | None], int] = {}
        self._waiting: list[tuple[str, Logged]] = []
        self._count = self._filled = 0
        self._parts: dict[int, list[Rows]] = {}
        self._last: tuple[str, int] | None = None
        self._joined_before: float = np.inf
        self._epoch = 0

    def require_room(self, values: int) -> None:
        """Refuse further values beyond the bounds.

        Raises:
            TooMuchError: There are too many.
        """
        if self._count + values > LOGGED_VALUES:
            raise TooMuchError(f"more than {LOGGED_VALUES:,} logged values")

    def add(self, session: str, logged: Logged) -> None:
        """Add a block that `session` wrote.

        Raises:
            TooMuchError: The model has too many scalars or notes; the block is left out.
        """
        new = [one for one in dict.fromkeys(logged.scalars) if one not in self._names]
        if len(self._names) + len(new) > SCALARS:
            raise TooMuchError(f"more than {SCALARS:,} different scalars")
        if sum(map(len, self._notes.values())) + len(logged.notes) > STEP_NOTES:
            raise TooMuchError(f"more than {STEP_NOTES:,} notes")
        with self._lock:
            self._names |= {one: len(self._names) + at for at, one in enumerate(new)}
            self._notes.setdefault(session, []).extend(logged.notes)
            self._count += len(logged.values)
            self._blocks.setdefault(session, [])
            if len(logged.values):
                self._filled += 1
                self._waiting.append((session, logged))
            if len(self._waiting) >= MOST_WAITING:
                self._put_together()

    def read(self, places: Mapping[str, Member]) -> LoggedSoFar:
        """All that is known now. `places` says which launch each session belongs to, and its rank there."""
        with self._lock:
            self._put_together()
            limits = self._limits(places)
            if self._joined_before < np.inf:
                self._join(places, limits)
            every = tuple(_scalar(*one, self._parts[at]) for one, at in self._names.items() if at in self._parts)
            notes = [
                note
                for session, noted in self._notes.items()
                for note in noted
                if note.step < limits[places[session].launch]
            ]
            ordered = tuple(sorted(notes, key=lambda note: (note.step, note.time)))
            return LoggedSoFar(self._epoch, self._filled, every, ordered)

    def _put_together(self) -> None:
        """Add what waits, as one block for each session: a record often has a single value."""
        for session, records in itertools.groupby(self._waiting, key=lambda one: one[0]):
            rows = self._rows([logged for _, logged in records])
            block = _Block(int(rows["step"].min()), int(rows["step"].max()), rows)
            self._blocks[session].append(block)
            self._append(session, block)
        self._waiting = []

    def _rows(self, records: list[Logged]) -> Rows:
        rows = np.empty(sum(len(one.values) for one in records), dtype=ROW)
        for column, name in (("step", "steps"), ("time", "times"), ("value", "values"), ("name", "name")):
            np.concatenate([getattr(one, name) for one in records], out=rows[column])
        numbers = np.array([self._names[key] for one in records for key in one.scalars], dtype=np.uint32)
        first = np.cumsum([0, *(len(one.names) for one in records[:-1])])
        rows["name"] = numbers[rows["name"] + np.repeat(first, [len(one.values) for one in records])]
        return rows

    def _append(self, session: str, block: _Block) -> None:
        """Add a block to what is joined, if it goes on where that ended. Else its steps are joined when it is read."""
        rows, before = block.rows, self._last
        goes_on = before is None or (before[0] == session and block.first >= before[1])
        is_joined = self._joined_before == np.inf
        if is_joined and goes_on and (np.diff(rows["step"]) >= 0).all():
            self._last = session, block.last
            for number in np.unique(rows["name"]).tolist():
                self._parts.setdefault(number, []).append(rows[rows["name"] == number])
        else:
            self._epoch += is_joined
            self._joined_before = min(self._joined_before, block.first)

    def _limits(self, places: Mapping[str, Member]) -> dict[int, float]:
        """The step at which the values of each launch end, because a later launch begins there."""
        first: dict[int, float] = {places[session].launch: np.inf for session in (*self._blocks, *self._notes)}
        for session, blocks in self._blocks.items():
            launch = places[session].launch
            first[launch] = min([first[launch], *(block.first for block in blocks)])
        limits, limit = {}, np.inf
        for launch in sorted(first, reverse=True):
            limits[launch] = limit
            limit = min(limit, first[launch])
        return limits

    def _join(self, places: Mapping[str, Member], limits: Mapping[int, float]) -> None:
        """Join what is not joined: of each scalar and step, the last value of the lowest rank."""
        since = self._joined_before
        joined = ((number, _whole(parts)) for number, parts in self._parts.items())
        kept = {number: rows[: np.searchsorted(rows["step"], since)] for number, rows in joined}
        self._parts = {number: [rows] for number, rows in kept.items() if len(rows)}
        found, ranks = [np.zeros(0, dtype=ROW)], [np.zeros(0, dtype=np.int64)]
        for session, blocks in self._blocks.items():
            place = places[session]
            for block in blocks:
                if block.last < since or block.first >= limits[place.launch]:
                    continue
                rows = block.rows[(block.rows["step"] >= since) & (block.rows["step"] < limits[place.launch])]
                found.append(rows)
                ranks.append(np.full(len(rows), place.rank))
        every = np.concatenate(found)
        order = np.lexsort((-np.concatenate(ranks), every["step"], every["name"]))  # stable: later ones stand later
        every = every[order]
        starts = np.flatnonzero(np.append(True, every["name"][1:] != every["name"][:-1])).tolist() if len(every) else []
        for start, stop in itertools.pairwise((*starts, len(every))):
            self._parts.setdefault(int(every["name"][start]), []).append(every[start:stop])
        latest = max(self._blocks, key=lambda session: places[session])
        self._last = latest, max((block.last for blocks in self._blocks.values() for block in blocks), default=-1)
        self._joined_before = np.inf


def _whole(parts: list[Rows]) -> Rows:
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _scalar(name: str, label: str | None, parts: list[Rows]) -> Scalar:
    """The scalar of these rows, whose steps do not fall. Of several values at a step, the last one counts."""
    rows = _whole(parts)
    parts[:] = [rows]
    is_last = np.append(rows["step"][1:] != rows["step"][:-1], True)
    rows = rows[is_last]
    steps, times, values = (np.ascontiguousarray(rows[column]) for column in ("step", "time", "value"))
    return Scalar(name, steps, times, values, label)
