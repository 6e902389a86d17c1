"""Whatever happens to the bytes: the same data, or a skipped record and a warning, or a RecordError."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import (
    GRAPH,
    SERIES,
    SESSION,
    facts,
    flip,
    frame,
    other_session,
    quietly,
    records,
    segment,
    write,
    write_small_run,
)
from tests.record.mutations import taken_apart
from torchgraph_explorer.errors import RecordError, TorchgraphWarning
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped, file_header
from torchgraph_explorer.record.limits import SEGMENT_BYTES
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.steps.body import encode_body
from torchgraph_explorer.run import Model, open_run
from torchgraph_explorer.schema import Series

pytestmark = pytest.mark.slow

STEPS = (0, 10, 20)


@pytest.fixture
def small_run(tmp_path: Path) -> Path:
    write_small_run(tmp_path)
    return tmp_path


def test_a_small_segment_holds_what_frames_depend_on_twice(small_run: Path) -> None:
    data = segment(small_run).read_bytes()
    kinds = [pb.Head.FromString(head).WhichOneof("record") for head in heads(data)]
    assert kinds == [*["segment"] * 2, *["graph"] * 2, *["series"] * 2, *["frame"] * 3, "cells", "finished"]


def heads(data: bytes) -> Iterator[bytes]:
    for at in records(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        yield data[at + 24 : at + 24 + size]


@pytest.mark.parametrize("part", ["head size", "body size", "head check", "header check", "marker", "head"])
@pytest.mark.parametrize("number", range(6), ids=lambda number: f"record {number}")
def test_damage_to_one_copy_costs_nothing_but_a_warning(part: str, number: int, small_run: Path) -> None:
    offset = {"marker": 0, "head size": 8, "body size": 14, "head check": 16, "header check": 20, "head": 30}[part]
    at = records(segment(small_run).read_bytes())[number]
    flip(segment(small_run), at + offset)
    with pytest.warns(TorchgraphWarning, match=f"segment 000000.tgraph: record at byte {at} is damaged"):
        run = open_run(small_run)
    assert_same(run.model())


def assert_same(model: ModelRecord) -> None:
    """`model` is what `write_small_run` wrote."""
    assert (model.session, model.graphs, model.series) == (SESSION, (GRAPH,), SERIES)
    assert [facts(model.frame(at)) for at in range(3)] == [facts(frame(step)) for step in STEPS]
    assert model.finished is not None


@pytest.mark.parametrize("part", [0, 8, 14, 16, 20, 30])
def test_damage_to_a_frames_head_costs_that_frame(part: int, small_run: Path) -> None:
    at = records(segment(small_run).read_bytes())[7]
    flip(segment(small_run), at + part)
    with pytest.warns(TorchgraphWarning, match=f"record at byte {at} is damaged and was skipped"):
        run = open_run(small_run)
    assert run.model().steps.tolist() == [0, 20]
    assert run.model().finished is not None


def test_damage_to_a_row_costs_the_series_of_that_row_in_that_frame(small_run: Path) -> None:
    at = body_of_second_frame(segment(small_run).read_bytes())
    flip(segment(small_run), at + 60 + 4)
    model = open_run(small_run).model()
    with pytest.warns(TorchgraphWarning, match="the frame of step 10 is damaged in part; what is damaged was left out"):
        read = model.frame(1)
    assert read.series.tolist() == [0, 1, 3]
    assert np.isnan(read.statistics[1]).all()
    assert [model.history(number).frames.tolist() for number in range(4)] == [[0, 1, 2], [0, 1, 2], [0, 2], [0, 1, 2]]


def body_of_second_frame(data: bytes) -> int:
    at = records(data)[7]
    (size,) = struct.unpack_from("<I", data, at + 8)
    return at + -(-(24 + size) // 8) * 8


READS = [
    pytest.param(lambda model: model.history(0), id="a history"),
    pytest.param(lambda model: model.rows(range(3)), id="the rows of all series"),
]


@pytest.mark.parametrize("read", READS)
def test_a_frame_whose_rows_cannot_be_found_is_told(read: Callable[[Model], object], small_run: Path) -> None:
    pieces = taken_apart(segment(small_run).read_bytes())
    head = pb.Head.FromString(pieces[7].head)
    head.frame.layout = b"no layout"
    pieces[7].head = head.SerializeToString()
    segment(small_run).write_bytes(file_header() + b"".join(piece.enveloped() for piece in pieces))
    run = quietly(small_run)
    with pytest.warns(TorchgraphWarning, match="000000.tgraph: the frame of step 10 is damaged and was left out"):
        read(run.model())


def test_a_warning_comes_once_and_is_kept(small_run: Path) -> None:
    flip(segment(small_run), body_of_second_frame(segment(small_run).read_bytes()))
    run = open_run(small_run)
    with pytest.warns(TorchgraphWarning, match="step 10 is damaged in part"):
        run.model().frame(1)
    run.model().frame(1)
    run.model().history(0)
    run.refresh()
    assert run.warnings == (
        "segment 000000.tgraph: the frame of step 10 is damaged in part; what is damaged was left out",
    )


def test_a_cut_file_gives_the_records_before_the_cut(small_run: Path) -> None:
    file = segment(small_run)
    data = file.read_bytes()
    begins = records(data)
    for size in range(0, len(data), 5):
        file.write_bytes(data[:size])
        if size < begins[1]:
            with pytest.raises(RecordError, match=r"holds no record yet. Open it again when its training has begun"):
                open_run(small_run)
            continue
        model = open_run(small_run).model()
        assert [facts(model.frame(at)) for at in range(len(model))] == [
            facts(frame(step)) for step, end in zip(STEPS, begins[7:10], strict=True) if end <= size
        ]


def test_a_torn_end_that_stays_is_told(small_run: Path) -> None:
    file = segment(small_run)
    data = file.read_bytes()
    last = records(data)[-1]
    file.write_bytes(data[: last + 30])
    assert open_run(small_run).warnings == ()
    os.utime(file, (0, 0))
    with pytest.warns(TorchgraphWarning, match=f"record at byte {last} is incomplete; its writer was interrupted"):
        assert len(open_run(small_run).model()) == 3


HOLE = SEGMENT_BYTES - (1 << 20)
"""Bytes of zeros that take no room on the disk, and that take half a minute to read."""


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system does not tell holes")
@pytest.mark.parametrize(("kept", "frames"), [(1, 0), (7, 1), (8, 2)])
def test_records_before_and_after_a_hole_are_read_without_the_hole(kept: int, frames: int, small_run: Path) -> None:
    """At first only the hole has come, and then what follows it."""
    file = segment(small_run)
    data = file.read_bytes()
    cut = records(data)[kept]
    file.write_bytes(data[:cut])
    os.truncate(file, HOLE)
    assert len(open_run(small_run).model()) == frames
    with file.open("ab") as stream:
        stream.write(data[cut:])
    with pytest.warns(TorchgraphWarning, match=f"byte {cut}"):
        assert len(open_run(small_run).model()) == 3


def test_one_bad_segment_costs_only_itself(tmp_path: Path) -> None:
    write(tmp_path, SERIES, frame(0))
    write(tmp_path, SERIES, frame(1), session=other_session("later"))
    segment(tmp_path, 0).write_bytes(b"This is not a segment. " * 9)
    with pytest.warns(TorchgraphWarning, match="segment 000000.tgraph: it does not begin as a segment does"):
        run = open_run(tmp_path)
    assert run.model().steps.tolist() == [1]


def test_records_of_nobody_are_told(small_run: Path) -> None:
    file = segment(small_run)
    for at in records(file.read_bytes())[:2]:
        flip(file, at + 30)
    with pytest.raises(RecordError, match=r"holds no record that can be read. The first fault: .* byte 16 is damaged"):
        open_run(small_run)
    write(small_run, SERIES, session=other_session("later"))
    assert "the model of the others is not known" in quietly(small_run).warnings[-1]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"hello", id="a word"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), id="a picture"),
        pytest.param(os.urandom(5_000), id="noise"),
        pytest.param(file_header() + b"x" * 100, id="a segment's header only"),
    ],
)
def test_a_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    file = segment(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(RecordError, match=r"holds no record that can be read. The first fault: segment 000000.tgraph"):
        open_run(tmp_path)


@pytest.mark.parametrize("content", [b"", bytes(50), file_header()], ids=["nothing", "zeros", "header"])
def test_a_file_without_a_record_is_told(content: bytes, tmp_path: Path) -> None:
    file = segment(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(RecordError, match="holds no record yet"):
        open_run(tmp_path)


@pytest.mark.parametrize("place", ["file header", "segment"])
def test_a_newer_version_is_refused_with_advice(place: str, tmp_path: Path) -> None:
    file = segment(tmp_path)
    file.parent.mkdir(parents=True)
    head = pb.Head(segment=pb.Segment(version=2 if place == "file header" else 3))
    file.write_bytes(file_header(3 if place == "file header" else 2) + enveloped(head.SerializeToString()))
    with pytest.raises(
        RecordError,
        match=r"000000.tgraph: record version 3, this release reads 2. Install the torchgraph_explorer that wrote it",
    ):
        open_run(tmp_path)


def test_the_body_of_no_rows_is_empty() -> None:
    empty = frame(0, series=())
    assert encode_body(empty.statistics, empty.histograms, head_check=1) == b""


def test_opening_and_reading_many_frames_is_quick(tmp_path: Path) -> None:
    many = tuple(Series(number, f"layer{number}", 0, "output", "output", "value") for number in range(50))
    write(tmp_path, many, *(frame(step, series=range(50)) for step in range(300)))
    begin = time.process_time()
    model = open_run(tmp_path).model()
    model.history(7)
    assert time.process_time() - begin < 1.0
