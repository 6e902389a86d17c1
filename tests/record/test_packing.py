from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest

from tests.record.examples import histogram_facts, histograms
from torchgraph_explorer.histogram import LAST_BUCKET, Histograms
from torchgraph_explorer.record.format.envelope import DamageError
from torchgraph_explorer.record.format.packing import pack, unpack


def of_rows(*rows: dict[int, int]) -> Histograms:
    """Histograms of rows that say the count of each bucket."""
    offsets = np.cumsum([0, *(len(row) for row in rows)])
    return Histograms(
        offsets.astype(np.uint32),
        np.array([bucket for row in rows for bucket in row], dtype=np.int16),
        np.array([count for row in rows for count in row.values()], dtype=np.uint32),
    )


def offsets(*ends: int) -> npt.NDArray[np.int64]:
    return np.array([0, *ends], dtype=np.int64)


@pytest.mark.parametrize(
    ("row", "packed"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({-LAST_BUCKET: 1}, "01", id="the lowest bucket needs no step"),
        pytest.param({-LAST_BUCKET: 127, 1 - LAST_BUCKET: 128}, "7f 80 01", id="neighbours need none either"),
        pytest.param({1 - LAST_BUCKET: 5, 4 - LAST_BUCKET: 6}, "00 01 05 00 02 06", id="steps over empty buckets"),
        pytest.param({0: 300}, "00 fb 07 ac 02", id="docs/format.md's example"),
        pytest.param({LAST_BUCKET: 2**32 - 1}, "00 f6 0f ff ff ff ff 0f", id="the highest of both"),
    ],
)
def test_a_row_is_packed_as_the_format_says(row: dict[int, int], packed: str) -> None:
    assert pack(of_rows(row))[0] == bytes.fromhex(packed)
    assert histogram_facts(unpack(bytes.fromhex(packed), offsets(len(bytes.fromhex(packed))))) == histogram_facts(
        of_rows(row)
    )


@pytest.mark.parametrize("seed", range(20))
def test_unpacking_gives_what_was_packed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(rng.integers(0, 12)):
        buckets = np.sort(rng.choice(np.arange(-LAST_BUCKET, LAST_BUCKET + 1), rng.integers(0, 200), replace=False))
        counts = (2.0 ** rng.uniform(0, 32, len(buckets))).astype(np.uint32)
        rows.append(dict(zip(buckets.tolist(), counts.tolist(), strict=True)))
    packed, ends = pack(of_rows(*rows))
    assert histogram_facts(unpack(packed, ends)) == histogram_facts(of_rows(*rows))


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param("80", id="a token without an end"),
        pytest.param("00", id="a step without its length"),
        pytest.param("00 00", id="a step over nothing"),
        pytest.param("00 f7 0f 01", id="a bucket above the highest"),
        pytest.param("00 ff ff ff ff 0f 01", id="far above the highest"),
        pytest.param("ff ff ff ff 10", id="a count of more than 32 bits"),
        pytest.param("80 80 80 80 80 01", id="a token of six bytes"),
    ],
)
def test_what_pack_would_not_make_is_damage(packed: str) -> None:
    data = bytes.fromhex(packed)
    with pytest.raises(DamageError):
        unpack(data, offsets(len(data)))


def test_a_row_may_not_lean_on_the_next_one() -> None:
    with pytest.raises(DamageError):
        unpack(bytes.fromhex("00 05 01"), offsets(1, 3))


@pytest.mark.slow
def test_random_bytes_are_histograms_or_damage() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2_000):
        data = rng.integers(0, 256, rng.integers(0, 12)).astype(np.uint8).tobytes()
        try:
            found = unpack(data, offsets(len(data)))
        except DamageError:
            continue
        assert (np.diff(found.buckets) > 0).all()
        assert (found.counts > 0).all()


@pytest.mark.slow
def test_ten_thousand_rows_take_a_fraction_of_a_second() -> None:
    packed, ends = pack(histograms(10_000, np.random.default_rng(0)))
    begin = time.process_time()
    unpack(packed, ends)
    assert time.process_time() - begin < 0.5
