"""Writes buckets.json, which the Python and the TypeScript tests both read.

Run `python -m tests.contracts.buckets` after a change. The numbers are worked out here the plain and slow way, from the
words of `torchgraph_explorer/histogram.py` and without its code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")

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
    """What buckets.json says."""
    return {
        "edges": [dict(zip(("bucket", "lower", "upper"), (number, *edges(number)), strict=True)) for number in BUCKETS],
        "bucket_of": [{"value": single(value), "bucket": bucket(value)} for value in VALUES],
        "shares": SHARES,
        "quantiles": list(quantile_cases()),
    }


def quantile_cases() -> Iterator[dict[str, object]]:
    """Histograms and their quantiles at `SHARES`; null for none."""
    for name, given in HISTOGRAMS.items():
        values = [single(value) for value in given]
        yield {
            "name": name,
            "buckets": [number for number, _ in counted(values)],
            "counts": [count for _, count in counted(values)],
            "low": min(values, default=None),
            "high": max(values, default=None),
            "values": [quantile(values, share) for share in SHARES],
        }


def text() -> str:
    """The content of buckets.json."""
    return json.dumps(contract(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
