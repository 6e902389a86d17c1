"""Bytes that are sound in themselves, and have come to lie elsewhere: they are never taken for what belongs there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, frame, quietly, records, segment, write
from torchgraph_explorer.record.format.envelope import read_record_header
from torchgraph_explorer.schema import STATISTICS

ROW_BYTES = 4 * (len(STATISTICS) + 3)

Change = Callable[[bytearray, int, int], None]


def exchange(data: bytearray, one: int, other: int, size: int) -> None:
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def exchange_bodies(data: bytearray, one: int, other: int) -> None:
    exchange(data, one, other, body_size(data))


def copy_a_body(data: bytearray, one: int, other: int) -> None:
    data[one : one + body_size(data)] = data[other : other + body_size(data)]


def exchange_rows_of_frames(data: bytearray, one: int, other: int) -> None:
    exchange(data, one + ROW_BYTES, other + ROW_BYTES, ROW_BYTES)


def exchange_rows_within_a_frame(data: bytearray, one: int, _other: int) -> None:
    exchange(data, one, one + ROW_BYTES, ROW_BYTES)


def copy_a_row_within_a_frame(data: bytearray, one: int, _other: int) -> None:
    data[one : one + ROW_BYTES] = data[one + ROW_BYTES : one + 2 * ROW_BYTES]


def bodies(data: bytes | bytearray) -> list[int]:
    """Where the bodies of the frames begin, which come last."""
    found = []
    for at in records(bytes(data))[-2:]:
        header = read_record_header(bytes(data), at)
        assert header is not None
        found.append(at + header.body_offset)
    return found


def body_size(data: bytes | bytearray) -> int:
    header = read_record_header(bytes(data), records(bytes(data))[-1])
    assert header is not None
    return header.body_size


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two frames with the same histograms, so that their bodies have the same size, and other statistics."""
    second = frame(1)
    write(tmp_path, GRAPH, SERIES, replace(frame(0), histograms=second.histograms), second)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "damaged"),
    [
        pytest.param(exchange_bodies, [3, 3], id="the bodies of two frames"),
        pytest.param(copy_a_body, [3, 0], id="the body of another frame"),
        pytest.param(exchange_rows_of_frames, [1, 1], id="the same row of two frames"),
        pytest.param(exchange_rows_within_a_frame, [2, 0], id="two rows of a frame"),
        pytest.param(copy_a_row_within_a_frame, [1, 0], id="a row over another one"),
    ],
)
@pytest.mark.filterwarnings("ignore::torchgraph_explorer.errors.TorchgraphWarning")
def test_what_has_changed_places_is_left_out(change: Change, damaged: list[int], run: Path) -> None:
    expected = quietly(run).model().rows(range(2)).statistics
    data = bytearray(segment(run).read_bytes())
    change(data, *bodies(data))
    segment(run).write_bytes(data)
    found = quietly(run)
    model = found.model()
    rows = model.rows(range(2)).statistics
    lost = np.array(np.isnan(rows).all(axis=0))
    assert np.array_equal(rows[:, ~lost], expected[:, ~lost])
    assert lost[:, 1:].sum(axis=1).tolist() == damaged, "the first two series share a row"
    for number in range(len(model.series)):
        assert model.history(number).frames.tolist() == np.flatnonzero(~lost[:, number]).tolist()
    for step, without in enumerate(lost):
        assert model.frame(step).series.tolist() == np.flatnonzero(~without).tolist()
    assert [str(step) in " ".join(found.warnings) for step in (0, 1)] == [count > 0 for count in damaged]
