"""Reads the bodies of frames: one frame with all its series, or one series of many frames."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import RecordError
from torchgraph_explorer.histogram import Histograms, concatenate
from torchgraph_explorer.record.folder import reading
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.model_index import UNKNOWN, ModelIndex, SeriesIds
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.ranks.rows import first_of_each_part, merge_fingerprints, merge_parts
from torchgraph_explorer.record.ranks.steps import Frames
from torchgraph_explorer.record.steps.body import Row, Table, decode_rows, known_check, read_row, read_rows
from torchgraph_explorer.record.steps.history import History
from torchgraph_explorer.schema import Frame


class RowLocation(NamedTuple):
    """Where one series' row of one frame is.

    Attributes:
        number: Index of the frame among all frames that the ranks wrote.
        segment: Number of the file.
        table: Place of the frame's rows in it.
        row: Number of the row.
        part: Which part of the tensor the row is; -1 for a part that no other rank has.
    """

    number: int
    segment: int
    table: Table
    row: int
    part: int


class Numbers(NamedTuple):
    """What one rank, or all ranks together, recorded at a step.

    Attributes:
        series: Reader's ids, `[n]`.
        parts: Which part of its tensor each is; -1 for a part that no other rank has, `[n]`.
        rows: Row of each series in the two fields below, `[n]`.
        statistics: `[rows, len(STATISTICS)]`.
        histograms: One per row.
        fingerprints: One per row, 0 for rows without.
    """

    series: SeriesIds
    parts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    statistics: npt.NDArray[np.float32]
    histograms: Histograms
    fingerprints: npt.NDArray[np.uint64]


def read_frame(model: ModelIndex, number: int, notices: Notices) -> Frame:
    """Frame `number`. Damaged rows have NaN and no elements, and belong to no series.

    Raises:
        RecordError: The whole frame is damaged, or the file is gone.
    """
    facts = model.frames.frames[number]
    _, shares = model.frames.by_rank(facts.reshape(1))
    found = _together(_read_ranks(model, shares, notices))
    graph = int(model.graphs.ids(facts["graph"]))
    return Frame(
        step=int(facts["step"]),
        time=float(facts["time"]),
        clock=None if np.isnan(facts["clock"]) else float(facts["clock"]),
        graph=graph if graph >= 0 else None,
        series=found.series,
        rows=found.rows.astype(np.uint32),
        statistics=found.statistics,
        histograms=found.histograms,
        gradient_scale=None if np.isnan(facts["gradient_scale"]) else float(facts["gradient_scale"]),
        facts=model.frames.kinds.facts(facts),
        label=model.frames.label(int(facts["label"])),
        training=model.frames.training.facts(int(facts["training"])),
        fingerprints=found.fingerprints if found.fingerprints.any() else None,
    )


def _read_ranks(model: ModelIndex, shares: Frames, notices: Notices) -> list[Numbers]:
    """What each rank recorded, without ranks whose frame is damaged.

    Raises:
        RecordError: The frames of all ranks are damaged.
    """
    found: list[Numbers] = []
    for at, facts in enumerate(shares):
        try:
            found.append(_read_rows(model, facts, notices))
        except RecordError as refusal:
            if at + 1 == len(shares) and not found:
                raise
            notices.add(str(refusal))
    return found


def _read_rows(model: ModelIndex, facts: np.void, notices: Notices) -> Numbers:
    path, layout = model.frames.segment(facts["segment"]), model.frames.layout(facts["layout"])
    if layout is None:
        raise _damaged_as_a_whole(path.name, facts)
    table = layout.table(facts)
    try:
        with reading(path) as read:
            rows = read_rows(read, table)
    except DamageError as error:
        raise _damaged_as_a_whole(path.name, facts) from error
    sound, statistics, histograms, fingerprints = decode_rows(rows)
    if not all(sound):
        notices.add(damaged_in_part(path.name, int(facts["step"])))
    session = model.session_of(facts["layout"])
    series = session.reader_ids(layout.series)
    kept = (series != UNKNOWN) & np.array(sound, dtype=np.bool_)[layout.rows]
    parts = session.parts_of(layout.series)[kept]
    return Numbers(series[kept], parts, layout.rows[kept].astype(np.int64), statistics, histograms, fingerprints)


def _together(ranks: list[Numbers]) -> Numbers:
    """What all `ranks` recorded together; each part of each series counts once."""
    if len(ranks) == 1:
        return ranks[0]
    series, parts = (np.concatenate([getattr(one, name) for one in ranks]) for name in ("series", "parts"))
    rank = np.repeat(np.arange(len(ranks)), [len(one.series) for one in ranks])
    first_row = np.cumsum([0, *(len(one.statistics) for one in ranks[:-1])])
    rows = np.concatenate([one.rows for one in ranks]) + first_row[rank]
    order = np.lexsort((rank, series))
    once = order[first_of_each_part(series[order], parts[order])]
    starts = np.flatnonzero(np.diff(series[once].astype(np.int64), prepend=-1))
    joined = concatenate([one.histograms for one in ranks])
    statistics, fingerprints = (
        np.concatenate([getattr(one, name) for one in ranks])[rows[once]] for name in ("statistics", "fingerprints")
    )
    statistics, histograms = merge_parts(statistics, joined.of(rows[once]), starts)
    return Numbers(
        series[once][starts],
        parts[once][starts],
        np.arange(len(starts)),
        statistics,
        histograms,
        merge_fingerprints(fingerprints, starts),
    )


def read_history(model: ModelIndex, series: int, *, frames: tuple[int, int | None], notices: Notices) -> History:
    """One series over the frames from `frames[0]` up to `frames[1]`, without those that lack it or have it damaged.

    Raises:
        RecordError: A file is gone.
    """
    first_frame, stop_frame = frames
    facts = model.frames.frames[:stop_frame]
    frame_of, shares = model.frames.by_rank(facts[first_frame:])
    note_unknown_layouts(model, shares, notices)
    found: list[tuple[RowLocation, Row | None]] = []
    for segment, places in groupby(_places(model, shares, series), key=lambda place: place.segment):
        path = model.frames.segment(segment)
        with reading(path) as read:
            for place in places:
                found.append((place, read_row(read, place.table, place.row)))
    found.sort(key=lambda one: one[0].number)
    sound, statistics, histograms, _ = decode_rows([row for _, row in found])
    if not all(sound):
        for (place, _), is_sound in zip(found, sound, strict=True):
            if not is_sound:
                segment, step = model.frames.segment(place.segment), int(shares["step"][place.number])
                notices.add(damaged_in_part(segment.name, step))
        kept = np.flatnonzero(sound)
        found = [found[at] for at in kept]
        statistics, histograms = statistics[kept], histograms.of(kept)
    numbers = first_frame + frame_of[[place.number for place, _ in found]]
    if (np.diff(numbers) == 0).any():  # several ranks wrote of a step
        once = first_of_each_part(numbers, np.array([place.part for place, _ in found]))
        starts = np.flatnonzero(np.diff(numbers[once], prepend=-1))
        numbers = numbers[once][starts]
        statistics, histograms = merge_parts(statistics[once], histograms.of(once), starts)
    return History(
        series=model.series[series],
        frames=numbers.astype(np.uint32),
        steps=facts["step"][numbers],
        times=facts["time"][numbers],
        statistics=statistics,
        histograms=histograms,
    )


def _places(model: ModelIndex, shares: Frames, series: int) -> Iterator[RowLocation]:
    """Where the rows of `series` are, segment by segment."""
    rows = {layout: _row_and_columns(model, layout, series) for layout in set(shares["layout"].tolist())}
    order = np.argsort(shares["segment"], kind="stable")
    fields = ("layout", "segment", "body", "body_size", "head_check")
    columns = (shares[name][order].tolist() for name in fields)
    for number, layout, segment, body, size, check in zip(order.tolist(), *columns, strict=True):
        if (known := rows[layout]) is not None:
            row, part, row_count, statistics = known
            table = Table(body, size, row_count, statistics, known_check(check))
            yield RowLocation(number, segment, table, row, part)


def _row_and_columns(model: ModelIndex, layout: int, series: int) -> tuple[int, int, int, tuple[str, ...]] | None:
    """In frames of this layout: the row of `series`, its part, how many rows there are, and the columns; or None."""
    known = model.frames.layout(layout)
    if known is None:
        return None
    session = model.session_of(layout)
    at = np.flatnonzero(session.reader_ids(known.series) == series)[:1]
    if not len(at):
        return None
    part = int(session.parts_of(known.series[at])[0])
    return int(known.rows[at[0]]), part, known.row_count, known.statistics


def note_unknown_layouts(model: ModelIndex, shares: Frames, notices: Notices) -> None:
    """Note the frames among `shares` of which it cannot be read where their rows are."""
    unknown = [layout for layout in set(shares["layout"].tolist()) if model.frames.layout(layout) is None]
    for facts in shares[np.isin(shares["layout"], unknown)] if unknown else ():
        segment = model.frames.segment(facts["segment"])
        notices.add(f"segment {segment.name}: the frame of step {facts['step']} is damaged and was left out")


def damaged_in_part(segment: str, step: int) -> str:
    """What is told of a frame of which some rows are damaged."""
    return f"segment {segment}: the frame of step {step} is damaged in part; what is damaged was left out"


def _damaged_as_a_whole(segment: str, facts: np.void) -> RecordError:
    return RecordError(f"segment {segment}: the frame of step {facts['step']} is damaged. {_ADVICE}")


_ADVICE = "Other frames and series can be read; restore the file from a copy to get this one back."
