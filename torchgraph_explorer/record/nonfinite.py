"""Finds NaN and infinity that should not be there: in which series of a step, and at which frames of a model.

Not every infinity is a fault. Attention masks contain −∞ on purpose, and so does what is masked before a softmax. So −∞
without NaN or +∞ beside it does not count

- in a tensor of only zeros and −∞ that no gradient reaches, which is an additive mask,
- in an input of a call without any in its outputs: the call uses it as a mask.

What comes back along an edge does not count by itself: the tensors at its ends have it, too.

`web/src/graph/nonfinite.ts` has the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.record.folder import ReadAt, reading
from torchgraph_explorer.record.model_index import UNKNOWN, ModelIndex
from torchgraph_explorer.record.ranks.steps import by_segment
from torchgraph_explorer.record.steps.body import WORD, read_row
from torchgraph_explorer.record.steps.layout import FrameLayout
from torchgraph_explorer.schema import STATISTICS, Series

Flags: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]

_COUNTED = ("nan", "positive_infinity", "negative_infinity", "zeros", "sampled")
_NON_FINITE = 3  # the first ones of them
_COLUMNS = [STATISTICS.index(name) for name in _COUNTED]
_GRADIENTS = ("grad", "grad_norm")

_TRIES = 64
"""Rows of a frame that are read to find one that is not damaged."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What the rule needs of a model's series, by their ids.

    Attributes:
        call: A number that the series of one call share; -1 for a parameter, which no single call has.
        is_input: A value of an input.
        is_output: A value of an output.
        is_bare: A value that no gradient was seen of.
        is_edge: What comes back along an edge.
    """

    call: Ints
    is_input: Flags
    is_output: Flags
    is_bare: Flags
    is_edge: Flags


def traits(series: Sequence[Series]) -> Traits:
    """The traits of `series`, whose ids are their indices."""
    calls: dict[tuple[str, int | None], int] = {}
    graded = {(one.module, one.call, one.role, one.path) for one in series if one.kind in _GRADIENTS}

    def number(one: Series) -> int:
        return -1 if one.call is None else calls.setdefault((one.module, one.call), len(calls))

    def flags(of: Sequence[bool]) -> Flags:
        return np.array(of, dtype=np.bool_)

    return Traits(
        call=np.array([number(one) for one in series], dtype=np.int64),
        is_input=flags([one.kind == "value" and one.role == "input" for one in series]),
        is_output=flags([one.kind == "value" and one.role == "output" for one in series]),
        is_bare=flags(
            [one.kind == "value" and (one.module, one.call, one.role, one.path) not in graded for one in series]
        ),
        is_edge=flags([one.role == "edge" for one in series]),
    )


def are_nonfinite(series: npt.NDArray[np.integer], statistics: Floats, of: Traits) -> Flags:
    """Which of `series` of one frame, with these `[n, STATISTICS]`, have NaN or infinity that should not be there."""
    return _are_nonfinite(series.astype(np.int64), statistics[:, _COLUMNS], of)


def _are_nonfinite(series: Ints, counts: Floats, of: Traits) -> Flags:
    """`counts` are the columns `_COUNTED`."""
    nan, positive, negative, zeros, sampled = counts.T
    is_worse = (nan > 0) | (positive > 0)
    is_low = ~is_worse & (negative > 0)
    is_low &= ~(of.is_bare[series] & (sampled > 0) & (zeros == sampled))
    found = (is_worse | is_low) & ~of.is_edge[series]
    calls = of.call[series]
    is_taken = is_low & of.is_input[series] & ~np.isin(calls, calls[found & of.is_output[series]])
    unwanted: Flags = found & ~is_taken
    return unwanted


@dataclass(frozen=True, slots=True)
class _CountColumns:
    """Where the counts are in frames of one layout.

    Attributes:
        layout: As written.
        columns: Where in the table's words the counts are.
        series: The reader's ids, without unknown ones.
        rows: The row of each.
    """

    layout: FrameLayout
    columns: list[int]
    series: Ints
    rows: Ints


def nonfinite_frames(model: ModelIndex, first: int, stop: int, *, of: Traits) -> Flags:
    """Which of the frames from `first` up to `stop` hold NaN or infinity that should not be there.

    Reads only the counts, about 60 bytes a row. Damaged rows do not count.

    Raises:
        RecordError: A file is gone.
    """
    frames = model.frames.frames[first:stop]
    found = np.zeros(len(frames), dtype=np.bool_)
    numbers, shares = model.frames.by_rank(frames)
    known = {layout: _count_columns(model, layout, len(of.call)) for layout in set(shares["layout"].tolist())}
    for segment, places in groupby(by_segment(shares), key=lambda place: int(shares["segment"][place])):
        with reading(model.frames.segment(segment)) as read:
            for place in places:
                number, layout = int(numbers[place]), known[int(shares["layout"][place])]
                if layout is not None and not found[number]:
                    found[number] = _is_nonfinite(read, shares[place], layout, of=of)
    return found


def _count_columns(model: ModelIndex, number: int, series_count: int) -> _CountColumns | None:
    layout = model.frames.layout(number)
    if layout is None or not set(_COUNTED) <= set(layout.statistics):
        return None
    series = model.session_of(number).reader_ids(layout.series).astype(np.int64)
    is_known = (series != UNKNOWN) & (series < series_count)
    columns = [layout.statistics.index(name) for name in _COUNTED]
    return _CountColumns(layout, columns, series[is_known], layout.rows[is_known].astype(np.int64))


def _is_nonfinite(read: ReadAt, facts: np.void, known: _CountColumns, *, of: Traits) -> bool:
    layout = known.layout
    table = layout.table(facts)
    size = table.rows * table.row_size
    words = read(table.offset, size) if size <= table.size else b""
    if not size or len(words) < size:
        return False
    counts = np.frombuffer(words, dtype="<f4").reshape(table.rows, table.row_size // WORD)[:, known.columns]
    if not (counts[:, :_NON_FINITE] > 0).any():  # as almost always
        return False
    suspects = np.unique(known.rows[_are_nonfinite(known.series, counts[known.rows], of)])
    return any(read_row(read, table, row) is not None for row in suspects[:_TRIES].tolist())
