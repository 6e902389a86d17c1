"""Reading frames' bodies: one frame with all its series, or one series of many frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.record.folder import reading
from torchgraph_explorer.record.frame_body import Row, Table, decode_rows, read_row, read_rows
from torchgraph_explorer.record.frame_index import Frames
from torchgraph_explorer.record.framing import DamageError
from torchgraph_explorer.record.history import History
from torchgraph_explorer.record.model_index import UNKNOWN, ModelIndex
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.records import Frame


class Place(NamedTuple):
    """Where one series' row of one frame is.

    Attributes:
        number: Index of the frame.
        segment: Which file.
        table: Where in it.
        row: Which row of the table.
    """

    number: int
    segment: int
    table: Table
    row: int


def read_frame(model: ModelIndex, number: int, notices: Notices) -> Frame:
    """Frame `number`. Damaged rows have NaN and no elements, and belong to no series.

    Raises:
        RecordError: It is damaged as a whole, or the file is gone.
    """
    facts = model.frames.frames[number]
    path, layout = model.frames.segment(facts["segment"]), model.frames.layout(facts["layout"])
    if layout is None:
        raise _damaged_as_a_whole(path.name, facts)
    table = Table(int(facts["body"]), int(facts["body_size"]), layout.row_count, layout.statistics)
    try:
        with reading(path) as read:
            rows = read_rows(read, table)
        statistics, histograms = decode_rows(rows)
    except DamageError as error:
        raise _damaged_as_a_whole(path.name, facts) from error
    if None in rows:
        notices.add(_damaged_in_part(path.name, int(facts["step"])))
    series = model.session_of(facts["layout"]).reader_ids(layout.series)
    is_sound = np.array([row is not None for row in rows], dtype=np.bool_)
    kept = (series != UNKNOWN) & is_sound[layout.rows]
    graph = int(model.graphs.ids(facts["graph"]))
    return Frame(
        step=int(facts["step"]),
        time=float(facts["time"]),
        clock=None if np.isnan(facts["clock"]) else float(facts["clock"]),
        graph=graph if graph >= 0 else None,
        series=series[kept],
        rows=layout.rows[kept],
        statistics=statistics,
        histograms=histograms,
        gradient_scale=None if np.isnan(facts["gradient_scale"]) else float(facts["gradient_scale"]),
    )


def read_history(model: ModelIndex, series: int, *, first_frame: int, notices: Notices) -> History:
    """One series from frame `first_frame` on, without the frames that lack it or in which it is damaged.

    Raises:
        RecordError: A file is gone, or damaged in spite of its checks.
    """
    frames = model.frames.frames
    found: list[tuple[int, Row]] = []
    for segment, places in groupby(
        _places(model, frames, series, first_frame=first_frame), key=lambda place: place.segment
    ):
        path = model.frames.segment(segment)
        with reading(path) as read:
            for place in places:
                row = read_row(read, place.table, place.row)
                if row is None:
                    notices.add(_damaged_in_part(path.name, int(frames["step"][place.number])))
                else:
                    found.append((place.number, row))
    numbers = np.array([number for number, _ in found], dtype=np.int64)
    try:
        statistics, histograms = decode_rows([row for _, row in found])
    except DamageError as error:
        raise RecordError(f"Series {series} of model {model.name!r} is damaged. {_ADVICE}") from error
    return History(
        series=model.series[series],
        frames=numbers.astype(np.uint32),
        steps=frames["step"][numbers],
        times=frames["time"][numbers],
        statistics=statistics,
        histograms=histograms,
    )


def _places(model: ModelIndex, frames: Frames, series: int, *, first_frame: int) -> Iterator[Place]:
    """Where the rows of `series` are, frame by frame."""
    frames = frames[first_frame:]
    rows = {layout: _row_and_columns(model, layout, series) for layout in set(frames["layout"].tolist())}
    fields = ("layout", "segment", "body", "body_size")
    columns = (frames[name].tolist() for name in fields)
    for number, (layout, segment, body, size) in enumerate(zip(*columns, strict=True), first_frame):
        if (known := rows[layout]) is not None:
            row, row_count, statistics = known
            yield Place(number, segment, Table(body, size, row_count, statistics), row)


def _row_and_columns(model: ModelIndex, layout: int, series: int) -> tuple[int, int, tuple[str, ...]] | None:
    """In frames of this layout: the row of `series`, how many rows there are, and the columns; None without it."""
    known = model.frames.layout(layout)
    if known is None:
        return None
    at = np.flatnonzero(model.session_of(layout).reader_ids(known.series) == series)
    return (int(known.rows[at[0]]), known.row_count, known.statistics) if len(at) else None


def _damaged_in_part(segment: str, step: int) -> str:
    return f"segment {segment}: the frame of step {step} is damaged in part; what is damaged was left out"


def _damaged_as_a_whole(segment: str, facts: np.void) -> RecordError:
    return RecordError(f"segment {segment}: the frame of step {facts['step']} is damaged. {_ADVICE}")


_ADVICE = "Other frames and series can be read; restore the file from a copy to get this one back."
