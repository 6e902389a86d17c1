from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.contracts import histogram as contract
from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.histogram import (
    LAST_BUCKET,
    Histograms,
    add,
    bucket_of,
    concatenate,
    counts_below,
    drawn_range,
    lower_edge,
    quantiles,
    scaled_to_fit,
    upper_edge,
)

EVERY_BUCKET = np.arange(-LAST_BUCKET, LAST_BUCKET + 1)
SHARES = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])


def counted(*rows: npt.ArrayLike) -> Histograms:
    """The histograms of some rows of values."""
    found = [np.unique(bucket_of(np.asarray(row, dtype=np.float32)), return_counts=True) for row in rows]
    offsets = np.cumsum([0, *(len(buckets) for buckets, _ in found)])
    return Histograms(
        offsets.astype(np.uint32),
        np.concatenate([buckets for buckets, _ in found]).astype(np.int16),
        np.concatenate([counts for _, counts in found]).astype(np.uint32),
    )


def random_values(seed: int) -> npt.NDArray[np.float32]:
    """Of all magnitudes and both signs, some of them zero."""
    rng = np.random.default_rng(seed)
    spread = rng.standard_normal(500) * 10.0 ** rng.uniform(-40, 35, size=500)
    return np.where(rng.random(500) < 0.1, 0.0, spread).astype(np.float32)


@pytest.fixture(scope="module")
def agreed() -> dict[str, Any]:
    """The numbers that the viewer is tested against, too."""
    agreed: dict[str, Any] = json.loads(contract.FILE.read_text(encoding="utf-8"))
    return agreed


@pytest.mark.slow
def test_the_contract_is_what_its_script_writes() -> None:
    assert contract.FILE.read_text(encoding="utf-8") == contract.text()


def test_edges_are_those_of_the_contract(agreed: dict[str, Any]) -> None:
    buckets = [case["bucket"] for case in agreed["edges"]]
    assert lower_edge(buckets).tolist() == [case["lower"] for case in agreed["edges"]]
    assert upper_edge(buckets).tolist() == [case["upper"] for case in agreed["edges"]]


def test_values_fall_into_the_buckets_of_the_contract(agreed: dict[str, Any]) -> None:
    values = np.array([case["value"] for case in agreed["bucket_of"]], dtype=np.float32)
    assert bucket_of(values).tolist() == [case["bucket"] for case in agreed["bucket_of"]]


@pytest.mark.parametrize("name", contract.HISTOGRAMS)
def test_quantiles_are_those_of_the_contract(name: str, agreed: dict[str, Any]) -> None:
    case = next(case for case in agreed["quantiles"] if case["name"] == name)
    histogram = Histograms(
        np.array([0, len(case["counts"])], dtype=np.uint32),
        np.array(case["buckets"], dtype=np.int16),
        np.array(case["counts"], dtype=np.uint32),
    )
    low, high = (np.nan if case[end] is None else case[end] for end in ("low", "high"))
    expected = [np.nan if value is None else value for value in case["values"]]
    np.testing.assert_array_equal(quantiles(histogram, agreed["shares"], low=low, high=high)[0], expected)


def test_buckets_lie_side_by_side() -> None:
    np.testing.assert_array_equal(upper_edge(EVERY_BUCKET)[:-1], lower_edge(EVERY_BUCKET)[1:])


def test_a_bucket_mirrors_the_one_of_opposite_sign() -> None:
    np.testing.assert_array_equal(lower_edge(EVERY_BUCKET), -upper_edge(-EVERY_BUCKET))


def test_a_bucket_begins_at_its_edge_and_ends_before_the_next_ones() -> None:
    positive = EVERY_BUCKET[EVERY_BUCKET > 0]
    begins = lower_edge(positive).astype(np.float32)
    np.testing.assert_array_equal(bucket_of(begins), positive)
    np.testing.assert_array_equal(bucket_of(np.nextafter(begins, np.float32(0))), positive - 1)


@pytest.mark.parametrize("seed", range(5))
def test_every_value_lies_in_its_bucket(seed: int) -> None:
    values = random_values(seed)
    buckets = bucket_of(values)
    assert ((lower_edge(buckets) <= values) & (values <= upper_edge(buckets))).all()


@pytest.mark.parametrize("seed", range(5))
def test_buckets_are_in_the_order_of_the_values(seed: int) -> None:
    values = np.sort(random_values(seed))
    assert (np.diff(bucket_of(values)) >= 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_quantile_is_in_the_bucket_of_numpys(seed: int) -> None:
    values = random_values(seed)
    found = quantiles(counted(values), SHARES, low=values.min(), high=values.max())[0]
    oracle = np.quantile(values, SHARES, method="inverted_cdf")
    assert ((lower_edge(bucket_of(oracle)) <= found) & (found <= upper_edge(bucket_of(oracle)))).all()


def test_rows_are_worked_out_together_as_each_alone() -> None:
    rows: list[npt.ArrayLike] = [random_values(0), [], [1.0, 1.0], random_values(1), []]
    histograms = counted(*rows)
    together = quantiles(histograms, SHARES, low=-np.inf, high=np.inf)
    alone = [quantiles(histograms.row(row), SHARES, low=-np.inf, high=np.inf)[0] for row in range(len(rows))]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("share", [5, -0.1, np.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(OptionError, match=r"a share is a number from 0 to 1; 0.05 is 5 %"):
        quantiles(counted(np.ones(3)), [0.5, share], low=1, high=1)


def test_rows_without_any_elements_have_no_quantiles() -> None:
    histograms = counted(np.zeros(0), np.zeros(0))
    assert np.isnan(quantiles(histograms, SHARES, low=np.nan, high=np.nan)).all()


def test_no_rows_have_no_quantiles() -> None:
    nothing = Histograms(np.zeros(1, np.uint32), np.zeros(0, np.int16), np.zeros(0, np.uint32))
    assert quantiles(nothing, SHARES, low=[], high=[]).shape == (0, len(SHARES))


def test_very_large_counts_before_a_row_do_not_move_its_quantiles() -> None:
    large = np.full(4_000, 2**32 - 1, dtype=np.uint32)
    counts = np.concatenate((large, np.array([7, 93], dtype=np.uint32)))
    buckets = np.concatenate((np.zeros(4_000, np.int16), np.array([4, 100], np.int16)))
    histograms = Histograms(np.array([*range(4_001), 4_002], np.uint32), buckets, counts)
    last = quantiles(histograms.row(4_000), SHARES, low=-np.inf, high=np.inf)
    np.testing.assert_array_equal(quantiles(histograms, SHARES, low=-np.inf, high=np.inf)[4_000:], last)


def contents(histograms: Histograms) -> list[dict[int, int]]:
    """The counts of each row, by bucket."""
    rows = [histograms.row(row) for row in range(len(histograms))]
    return [dict(zip(row.buckets.tolist(), row.counts.tolist(), strict=True)) for row in rows]


ROWS: list[npt.ArrayLike] = [random_values(0), [], [1.0, 1.0], random_values(1), [], [0.0]]


def test_rows_of_several_histograms_stand_one_after_the_other() -> None:
    assert contents(concatenate([counted(*ROWS[:2]), counted(*ROWS[2:])])) == contents(counted(*ROWS))


@pytest.mark.parametrize("sizes", [[6], [1, 1, 1, 1, 1, 1], [2, 1, 3], [5, 1]], ids=str)
def test_the_sum_of_rows_is_the_histogram_of_all_their_values(sizes: list[int]) -> None:
    ends = np.cumsum(sizes)
    together = [np.concatenate(ROWS[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    found = add(counted(*ROWS), np.array(sizes), weights=np.ones(len(ROWS)))
    assert contents(found) == contents(counted(*together))


def test_a_row_may_count_more_than_another_and_no_bucket_gets_lost() -> None:
    found = add(counted([1.0, 1.0, 2.0], [2.0]), np.array([2]), weights=np.array([0.25, 3.0]))
    assert contents(found) == [{bucket(1.0): 1, bucket(2.0): 3}]


def bucket(value: float) -> int:
    return int(bucket_of(np.array([value], dtype=np.float32))[0])


def test_rows_with_too_large_a_count_are_scaled_down() -> None:
    counts = np.array([3, 2**33, 1, 7], dtype=np.int64)
    found = scaled_to_fit(np.array([0, 0, 2, 4]), np.array([1, 2, 1, 2], dtype=np.int16), counts)
    assert contents(found) == [{}, {1: 1, 2: 2**31}, {1: 1, 2: 7}]


def test_elements_below_a_value_are_counted_in_proportion_to_their_bucket() -> None:
    histograms = counted([1.0, 1.2, -3.0, 0.0], [], [5.0, 5.0])
    edges = np.array([[-4.0, 0.0, 1e-30, 1.125, 8.0], [np.nan, 4.0, 5.0, 6.0, 7.0]])
    low, high = [-3.0, np.nan, 5.0], [1.25, np.nan, 5.0]
    found = counts_below(histograms, np.array([0, 2]), edges, low=low, high=high)
    np.testing.assert_allclose(found, [[0, 1, 2, 3, 4], [0, 0, 0, 2, 2]])


def trimmed(values: npt.NDArray[np.float32], reject: float) -> tuple[float, float]:
    """As `drawn_range`, the slow way: the least distance from the median at which few enough elements are farther."""
    histogram = counted(values)
    low, high = float(values.min()), float(values.max())
    centre = float(quantiles(histogram, 0.5, low=low, high=high)[0, 0])
    spans = [
        (0.0, 0.0, count)
        if number == 0
        else (*np.clip((*lower_edge([number]), *upper_edge([number])), low, high), count)
        for number, count in contents(histogram)[0].items()
    ]

    def beyond(reach: float) -> float:
        """Of each span the share that is outside; all of a point that is."""
        inside = 0.0
        for start, stop, count in spans:
            overlap = max(0.0, min(stop, centre + reach) - max(start, centre - reach))
            inside += count * (overlap / (stop - start) if stop > start else abs(start - centre) <= reach)
        return len(values) - inside

    nearest, farthest = 0.0, max(high - centre, centre - low)
    for _ in range(300):
        middle = (nearest + farthest) / 2
        is_enough = beyond(middle) <= reject * len(values)
        nearest, farthest = (nearest, middle) if is_enough else (middle, farthest)
    return max(low, centre - farthest), min(high, centre + farthest)


DRAWN = {
    "normal": np.random.default_rng(0).standard_normal(500),
    "of a ReLU": np.maximum(np.random.default_rng(1).standard_normal(500), 0.0),
    "one far out": np.array([*np.linspace(1, 2, 99), 1e30]),
    "zeros alone": np.zeros(7),
    "a constant": np.full(9, 3.0),
    "two points": np.array([-1.0, 1.0]),
    "mostly zero": np.array([0.0] * 60 + [1.0] * 40),
    "whole numbers": np.arange(100.0),
}


@pytest.mark.parametrize("reject", [0.01, 0.1, 0.5, 0.9])
def test_what_is_drawn_leaves_out_what_is_farthest_from_the_median(reject: float) -> None:
    rows = [values.astype(np.float32) for values in DRAWN.values()]
    low, high = [values.min() for values in rows], [values.max() for values in rows]
    found = drawn_range(counted(*rows), reject, low=low, high=high)
    np.testing.assert_allclose(found, [trimmed(values, reject) for values in rows], rtol=1e-6, atol=1e-9)


def test_everything_is_drawn_where_nothing_is_left_out_and_nothing_of_an_empty_row() -> None:
    found = drawn_range(counted([1.0, 2.0], []), 0.0, low=[1.0, np.nan], high=[2.0, np.nan])
    np.testing.assert_array_equal(found, [[1.0, 2.0], [np.nan, np.nan]])
    assert drawn_range(counted([]), 0.1, low=[np.nan], high=[np.nan]).shape == (1, 2)
