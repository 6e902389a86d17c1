"""The body of a frame as C makes and checks it, against the same in Python."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import rebound
from torchgraph_explorer.histogram import LAST_BUCKET, Histograms
from torchgraph_explorer.record.limits import PACKED_BYTES
from torchgraph_explorer.record.steps import native_body
from torchgraph_explorer.record.steps.body import Table, encode_body, encode_in_python, sound_in_python
from torchgraph_explorer.record.steps.native_body import check_in_c, encode_in_c
from torchgraph_explorer.schema import STATISTICS

HEAD = 0xFFFF_FFF8
"""The crc32 of a head, so large that its sum with the number of a row exceeds 32 bits."""

in_c = partial(encode_in_c, head_check=HEAD)
in_python = partial(encode_in_python, head_check=HEAD)


@pytest.fixture(autouse=True)
def _is_built() -> None:
    if native_body._library() is None:
        pytest.skip("body.c is not built for this system")


def of_rows(rng: np.random.Generator, rows: int, most: int) -> Histograms:
    """Rows of at most `most` entries with counts of any size."""
    sizes = rng.integers(0, most, rows, endpoint=True)
    every = np.arange(-LAST_BUCKET, LAST_BUCKET + 1, dtype=np.int16)
    buckets = [np.sort(rng.choice(every, size, replace=False)) for size in sizes]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)
    counts = (2.0 ** rng.uniform(0, 32, offsets[-1])).astype(np.uint32)
    return Histograms(offsets, np.concatenate([*buckets, every[:0]]), counts)


def of_any_bits(rng: np.random.Generator, rows: int) -> npt.NDArray[np.float32]:
    return rng.integers(0, 2**32, (rows, len(STATISTICS)), dtype=np.uint32).view(np.float32)


@pytest.mark.parametrize("has_fingerprints", [True, False], ids=["with fingerprints", "without"])
@pytest.mark.parametrize(
    ("rows", "most"),
    [
        pytest.param(0, 0, id="no rows"),
        pytest.param(1, 0, id="a row without elements"),
        pytest.param(1, 1, id="one bucket"),
        pytest.param(3, 2 * LAST_BUCKET + 1, id="nearly all buckets"),
        pytest.param(500, 60, id="many rows"),
    ],
)
def test_both_make_the_same_bytes(rows: int, most: int, has_fingerprints: bool) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        statistics, histograms = of_any_bits(rng, rows), of_rows(rng, rows, most)
        fingerprints = rng.integers(0, 2**64, rows, dtype=np.uint64) if has_fingerprints else None
        made = in_c(statistics, histograms, fingerprints)
        assert made == in_python(statistics, histograms, fingerprints)


@pytest.mark.parametrize(
    "buckets",
    [
        pytest.param([-LAST_BUCKET, 1 - LAST_BUCKET], id="the lowest ones"),
        pytest.param([LAST_BUCKET - 1, LAST_BUCKET], id="the highest ones"),
        pytest.param([-LAST_BUCKET, LAST_BUCKET], id="as far apart as they can be"),
    ],
)
@pytest.mark.parametrize("count", [1, 127, 128, 2**14, 2**21, 2**28, 2**32 - 1])
def test_a_count_of_any_length_has_room(buckets: list[int], count: int) -> None:
    histograms = Histograms(
        np.array([0, 2], np.uint32), np.array(buckets, np.int16), np.array([count, count], np.uint32)
    )
    statistics = np.zeros((1, len(STATISTICS)), np.float32)
    assert in_c(statistics, histograms, None) == in_python(statistics, histograms, None)


def test_arrays_that_are_not_contiguous_are_encoded_as_their_copies() -> None:
    rng = np.random.default_rng(0)
    histograms = of_rows(rng, 40, 30)
    rows = of_any_bits(rng, 80)
    apart = Histograms(histograms.offsets, np.repeat(histograms.buckets, 2)[::2], np.repeat(histograms.counts, 3)[::3])
    assert in_c(rows[::2], apart, None) == in_python(rows[::2].copy(), histograms, None)


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param([0, 3, 2, 4], id="that descend"),
        pytest.param([0, 1, 2, 5], id="beyond the entries"),
        pytest.param([0, 2, 4], id="of fewer rows"),
        pytest.param([1, 2, 3, 4], id="that begin later"),
    ],
)
def test_c_leaves_to_python_offsets(offsets: list[int]) -> None:
    histograms = Histograms(np.array(offsets, np.uint32), np.arange(4, dtype=np.int16), np.ones(4, np.uint32))
    assert in_c(np.zeros((3, len(STATISTICS)), np.float32), histograms, None) is None


@pytest.mark.parametrize(
    ("written", "read"),
    [(HEAD, HEAD), (None, None), (HEAD, HEAD + 1), (9, None), (None, 9)],
    ids=["bound", "not bound", "bound to another", "bound unexpectedly", "not bound as expected"],
)
@pytest.mark.parametrize("rows", [0, 1, 60])
def test_both_find_the_same_rows_sound(rows: int, written: int | None, read: int | None) -> None:
    rng = np.random.default_rng(rows)
    whole = in_python(of_any_bits(rng, rows), of_rows(rng, rows, 30))
    whole = rebound(whole, rows, len(STATISTICS) + 3, was=HEAD, now=written)
    for bits in (0, 1, 8, 60):
        body = bytearray(whole)
        for at in rng.integers(0, len(body), bits if body else 0):
            body[at] ^= 1 << int(rng.integers(8))
        table = Table(0, len(body), rows, STATISTICS, read)
        expected = sound_in_python(bytes(body), table)
        found = check_in_c(bytes(body), rows=rows, row_size=table.row_size, longest=PACKED_BYTES, head_check=read)
        assert found is not None
        assert found.tolist() == expected.tolist()
        assert bits or expected.tolist() == [written == read] * rows


@pytest.mark.parametrize(
    ("start", "size"),
    [(0, 2**32 - 1), (2**32 - 1, 0), (2**32 - 1, 2**32 - 1), (0, PACKED_BYTES + 1), (1, 8)],
    ids=["too large", "behind the end", "both", "longer than any", "a byte too far"],
)
def test_c_reads_no_histogram_beyond_the_body(start: int, size: int) -> None:
    words = np.array([start, size, 0], np.uint32).tobytes() + bytes(8)
    found = check_in_c(words, rows=1, row_size=12, longest=PACKED_BYTES, head_check=None)
    assert found is not None
    assert not found.any()


@pytest.fixture
def _is_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(native_body, "BUILT", tmp_path / "built" / "body.so")
        native_body._library.cache_clear()
        yield
    native_body._library.cache_clear()


@pytest.mark.usefixtures("_is_not_built")
def test_where_it_is_not_built_python_encodes() -> None:
    rng = np.random.default_rng(1)
    statistics, histograms = of_any_bits(rng, 20), of_rows(rng, 20, 30)
    assert in_c(statistics, histograms, None) is None
    assert encode_body(statistics, histograms, head_check=HEAD) == in_python(statistics, histograms)
