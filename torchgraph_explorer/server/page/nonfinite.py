"""NaN and infinity on a page: of the whole record, including steps and series that the page leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.nonfinite import Flags
from torchgraph_explorer.schema import STATISTICS
from torchgraph_explorer.server.nonfinite import origin_of, stretches, tensor_json

Json = dict[str, Any]

_NAN = STATISTICS.index("nan")
_INFINITE = [STATISTICS.index(name) for name in ("positive_infinity", "negative_infinity")]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Where a model has NaN or infinity.

    Attributes:
        model: Its name.
        bad: Whether each of its frames has any.
    """

    model: str
    bad: Flags

    @property
    def first(self) -> int | None:
        """The first frame that has any; None if none has."""
        return int(self.bad.argmax()) if self.bad.any() else None


def trouble_of(model: ModelRecord) -> Trouble:
    """Where `model` has NaN or infinity."""
    return Trouble(model.name, model.nonfinite())


def nonfinite_json(
    model: ModelRecord, troubles: Sequence[Trouble], *, frames: Sequence[int], series: Sequence[int]
) -> Json:
    """The answer of `api/nonfinite`, and for each of `frames` the tensors that have it but are not among `series`."""
    mine = next(one for one in troubles if one.model == model.name)
    kept = set(series)
    hidden = [_hidden(model, frame, kept) if mine.bad[frame] else [] for frame in frames]
    named = sorted({one for found in hidden for one in found})
    place = {one: at for at, one in enumerate(named)}
    return {
        "epoch": 0,
        "from": 0,
        "frames": len(mine.bad),
        "bad": stretches(model.steps[: len(mine.bad)], mine.bad),
        "first": None if mine.first is None else origin_of(model, mine.first),
        "others": [one.model for one in troubles if one is not mine and one.first is not None],
        "is_complete": True,
        "are_others_complete": True,
        "hidden": {
            "tensors": [_tensor_json(model, one) for one in named],
            "at": [_spans([place[one] for one in found]) for found in hidden],
        },
    }


class _Hidden(NamedTuple):
    """A series that the page leaves out, and what it has at a frame."""

    series: int
    has_nan: bool
    has_infinite: bool


def _hidden(model: ModelRecord, number: int, kept: set[int]) -> list[_Hidden]:
    """The series outside `kept` that have NaN or infinity at frame `number`."""
    try:
        frame = model.frame(number)
    except RecordError:
        return []
    row_of = dict(zip(frame.series.tolist(), frame.rows.tolist(), strict=True))
    rows = [(one.id, frame.statistics[row_of[one.id]]) for one in model.nonfinite_series(frame) if one.id not in kept]
    return sorted(_Hidden(one, bool(row[_NAN] > 0), bool((row[_INFINITE] > 0).any())) for one, row in rows)


def _tensor_json(model: ModelRecord, one: _Hidden) -> Json:
    return {**tensor_json(model.series[one.series]), "has_nan": one.has_nan, "has_infinite": one.has_infinite}


def _spans(numbers: list[int]) -> list[list[int]]:
    """Ascending numbers as spans `[start, stop)` of consecutive numbers."""
    if not numbers:
        return []
    found = np.array(numbers)
    starts = np.flatnonzero(np.diff(found, prepend=found[0] - 2) != 1)
    ends = np.append(starts[1:], len(found))
    return [list(span) for span in zip(found[starts].tolist(), (found[ends - 1] + 1).tolist(), strict=True)]
