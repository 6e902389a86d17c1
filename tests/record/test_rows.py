"""All rows of a frame at once are what each of them is alone, also where bytes are damaged or missing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.record.examples import frame
from torchgraph_explorer.record.definitions import Definitions
from torchgraph_explorer.record.steps.body import Table, encode_body, read_row, read_rows
from torchgraph_explorer.schema import STATISTICS, Series

ROWS = 5
HEAD = 0xFFFF_FFFE  # from the third row on, the sum with the row's number begins again at 0
STEP = frame(0, series=range(ROWS))
BODY = encode_body(STEP.statistics, STEP.histograms, head_check=HEAD)


def flipped(*places: int) -> bytes:
    data = bytearray(BODY)
    for place in places:
        data[place] ^= 0x10
    return bytes(data)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BODY, id="sound"),
        pytest.param(flipped(3), id="a statistic is damaged"),
        pytest.param(flipped(len(STATISTICS) * 4 + 1), id="a place is damaged"),
        pytest.param(flipped(len(BODY) - 1), id="the last histogram is damaged"),
        pytest.param(BODY[: len(BODY) // 2], id="the file is cut off"),
        pytest.param(b"", id="the file is empty"),
    ],
)
def test_rows_are_read_together_as_alone(body: bytes) -> None:
    table = Table(0, len(BODY), len(STEP.statistics), STATISTICS, HEAD)

    def read(offset: int, size: int) -> bytes:
        return body[offset : offset + size]

    assert read_rows(read, table) == [read_row(read, table, row) for row in range(table.rows)]


@pytest.mark.parametrize(
    ("count", "records"),
    [
        pytest.param(20, 3, id="few, in records of eight"),
        pytest.param(2_056, 257, id="more, in records of eight"),
        pytest.param(20_000, 625, id="thousands, in records of thirty-two"),
    ],
)
def test_thousands_of_series_are_in_fewer_records(count: int, records: int) -> None:
    series = tuple(Series(at, "cell", at, "output", "output", "value") for at in range(count))
    written = Definitions(0).added(series)
    assert written.count(b"\xe5TGREC\r\n") == 2 * records


def test_an_empty_frame_has_no_rows() -> None:
    assert read_rows(lambda _offset, _size: b"", Table(0, 0, 0, STATISTICS)) == []
    assert not np.size(STEP.statistics[:0])
