"""Writes histogram.json, which the Python and the TypeScript tests both read.

Run `python -m tests.contracts.histogram` after a change. The numbers are worked out here the plain and slow way, from
the words of `torchgraph_explorer/histogram.py` and without its code.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")

REJECTED = [0.0, 0.1, 0.5, 1.0]
AXES = [(-1.0, 1.0, 4), (0.0, 100.0, 8), (-1e-3, 2.5, 3)]
"""Where the lowest row begins, where the highest one ends, and how many rows there are."""

SHARES = [0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0]
LARGEST = 3.4028234663852886e38
SMALLEST_NORMAL = 1.1754943508222875e-38

BUCKETS = (-1019, -1016, -509, -508, -507, -100, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 100, 507, 508, 509, 1016, 1019)
VALUES = (
    *(0.0, -0.0, 1.0, -1.0, 1.25, 1.5, 1.75, 1.9999998807907104, 2.0, -2.0, 0.75, 0.1, -0.1, 3.0, 1e-3, 65504.0),
    *(1e-45, -1e-45, 2.938735877055719e-39, 2.938734475757e-39, SMALLEST_NORMAL, -SMALLEST_NORMAL, LARGEST, -LARGEST),
)
HISTOGRAMS: dict[str, list[float]] = {
    "empty": [],
    "one value": [3.0],
    "a constant": [-0.5] * 40,
    "zeros": [0.0] * 7,
    "zeros among others": [0.0] * 5 + [1e-3, -1e-3, 2.0],
    "both signs": [-4.0, -1.0, -0.25, 0.25, 1.0, 4.0],
    "a ramp": [float(number) for number in range(1, 101)],
    "one far out": [1.0] * 999 + [1e30],
    "the largest": [LARGEST, -LARGEST],
    "subnormal": [1e-45, -1e-45, 4e-39, 9e-39],
}


def single(value: float) -> float:
    """`value` as the nearest float32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def bucket(value: float) -> int:
    """The sign, the exponent and two mantissa bits."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    number = (bits & 0x7FFFFFFF) >> 21
    return -number if bits >> 31 else number


def magnitude(number: int) -> float:
    """The float32 with the bit pattern `number << 21`, and the one it would be if exponents went on."""
    if number == 1020:
        return 2.0**128
    return float(struct.unpack("<f", struct.pack("<I", number << 21))[0])


def edges(number: int) -> tuple[float, float]:
    """Where bucket `number` begins and ends."""
    outer = magnitude(abs(number) + 1)
    if number == 0:
        return -outer, outer
    inner = magnitude(abs(number))
    return (inner, outer) if number > 0 else (-outer, -inner)


def quantile(values: list[float], share: float) -> float | None:
    """Walk up the buckets to the one in which `share` of `values` is reached; there, in proportion."""
    if not values:
        return None
    wanted, before = share * len(values), 0
    for number, count in counted(values):
        if before + count >= wanted:
            lower, upper = edges(number)
            reached = lower + (wanted - before) / count * (upper - lower)
            return min(max(reached, min(values)), max(values))
        before += count
    raise AssertionError(f"{share} is more than all")


def counted(values: list[float]) -> list[tuple[int, int]]:
    """The non-empty buckets, ascending, and how many of `values` each holds."""
    return [(number, len(list(group))) for number, group in groupby(sorted(map(bucket, values)))]


def contract() -> dict[str, object]:
    """What histogram.json says."""
    return {
        "edges": [dict(zip(("bucket", "lower", "upper"), (number, *edges(number)), strict=True)) for number in BUCKETS],
        "bucket_of": [{"value": single(value), "bucket": bucket(value)} for value in VALUES],
        "shares": SHARES,
        "quantiles": list(quantile_cases()),
        "sums": [sum_of(first, second) for first, second in pairwise(HISTOGRAMS)],
        "rejected": REJECTED,
        "trimmed": [trimmed_case(name) for name in HISTOGRAMS],
        "rows": [rows_case(name, axis) for name in HISTOGRAMS for axis in AXES],
    }


def quantile_cases() -> Iterator[dict[str, object]]:
    """Histograms and their quantiles at `SHARES`; null for none."""
    for name in HISTOGRAMS:
        values = values_of(name)
        yield {
            "name": name,
            **histogram(values),
            "low": min(values, default=None),
            "high": max(values, default=None),
            "values": [quantile(values, share) for share in SHARES],
        }


def values_of(name: str) -> list[float]:
    """The values that the histogram `name` is of, as float32."""
    return [single(value) for value in HISTOGRAMS[name]]


def histogram(values: list[float]) -> dict[str, list[int]]:
    """The non-empty buckets of `values`, and what each holds."""
    found = counted(values)
    return {"buckets": [number for number, _ in found], "counts": [count for _, count in found]}


def sum_of(first: str, second: str) -> dict[str, object]:
    """Two histograms added up: the histogram of all their values."""
    return {"names": [first, second], **histogram(values_of(first) + values_of(second))}


def spans(values: list[float]) -> Iterator[tuple[float, float, int]]:
    """Between which values each bucket's elements lie, spread evenly, and how many there are. Zeros are all at 0."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    for number, count in counted(values):
        lower, upper = edges(number) if number else (0.0, 0.0)
        yield min(max(lower, low), high) if number else 0.0, min(max(upper, low), high) if number else 0.0, count


def trimmed_case(name: str) -> dict[str, object]:
    """What is left of a histogram without each share of `REJECTED`: its lowest and highest value; null for none."""
    values = values_of(name)
    return {"name": name, "ends": [trimmed(values, share) if values else None for share in REJECTED]}


def trimmed(values: list[float], share: float) -> list[float]:
    """The ends of the elements without the `share` of them that are farthest from the median.

    That is what `reject_outlier_proportion` leaves out.
    """
    low, high = min(values), max(values)
    median = quantile(values, 0.5)
    assert median is not None
    near, far = 0.0, max(high - median, median - low)
    if beyond(values, median, 0.0) <= share * len(values):
        far = 0.0
    while near < (middle := (near + far) / 2) < far:
        near, far = (middle, far) if beyond(values, median, middle) > share * len(values) else (near, middle)
    return [max(low, median - far), min(high, median + far)]


def beyond(values: list[float], centre: float, distance: float) -> float:
    """How many elements are farther from `centre` than `distance`."""
    return sum(
        count * (1 - within(lower, upper, centre - distance, centre + distance))
        for lower, upper, count in spans(values)
    )


def within(lower: float, upper: float, start: float, stop: float) -> float:
    """The share of what is spread evenly from `lower` to `upper` that lies from `start` to `stop`."""
    if lower == upper:
        return float(start <= lower <= stop)
    return max(0.0, (min(upper, stop) - max(lower, start)) / (upper - lower))


def rows_case(name: str, axis: tuple[float, float, int]) -> dict[str, object]:
    """A histogram spread over equal rows of an axis, lowest first; and what lies below and above the axis.

    A row does not hold its upper end, but for the last one.
    """
    low, high, number = axis
    ends = [low + (high - low) * row / number for row in range(number)] + [high]
    rows = dict.fromkeys(range(-1, number + 1), 0.0)
    for lower, upper, count in spans(values_of(name)):
        if lower == upper:
            rows[row_of(lower, axis)] += count
            continue
        for row, (start, stop) in enumerate(pairwise([-math.inf, *ends, math.inf]), start=-1):
            rows[row] += count * within(lower, upper, start, stop)
    below, *counts, above = rows.values()
    return {"name": name, "axis": list(axis), "counts": counts, "below": below, "above": above}


def row_of(value: float, axis: tuple[float, float, int]) -> int:
    """The row of one value; -1 below the axis, and the number of rows above it."""
    low, high, number = axis
    if value < low or value > high:
        return -1 if value < low else number
    return min(number - 1, math.floor((value - low) / (high - low) * number))


def text() -> str:
    """The content of histogram.json."""
    return json.dumps(contract(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
