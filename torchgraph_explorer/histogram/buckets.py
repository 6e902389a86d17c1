"""The fixed buckets in which every histogram of every tensor is counted.

A bucket is the sign, the exponent and the two leading mantissa bits of a float32: four buckets an octave. The buckets
are numbered in the order of the values they hold, from -1019 to 1019. Bucket `b > 0` holds `[edge(b), edge(b + 1))`,
where `edge(b)` is the float32 whose bit pattern is `b << 21`; bucket `-b` is its mirror image; bucket 0 holds what is
smaller than 2**-128 in magnitude, zero included. NaN and infinity are in no bucket. The edges are the same for every
tensor and step, so histograms add up exactly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SHIFT = 21
LAST_BUCKET = 1019
"""The bucket of the largest finite float32; `-LAST_BUCKET` is the smallest one."""


def bucket_of(values: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    """The bucket of each of `values`, which are finite float32 of any shape."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    magnitude = ((bits & np.uint32(0x7FFFFFFF)) >> np.uint32(SHIFT)).astype(np.int16)
    return np.where(bits >> np.uint32(31), -magnitude, magnitude).astype(np.int16)


def lower_edge(buckets: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The smallest value of each bucket (for bucket 0, minus its reach)."""
    return -upper_edge(-np.asarray(buckets, dtype=np.int64))


def upper_edge(buckets: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Where each bucket ends, towards larger values. The last bucket ends at 2**128."""
    buckets = np.asarray(buckets, dtype=np.int64)
    outer = np.where(buckets >= 0, buckets + 1, -buckets)
    edge = _magnitude(outer)
    return np.where(buckets >= 0, edge, -edge)


def _magnitude(number: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The float whose exponent and leading mantissa bits are `number`, also just past the largest float32."""
    exponent, quarter = number >> 2, number & 3
    normal = np.ldexp(1.0 + quarter / 4.0, (exponent - 127).astype(np.int32))
    subnormal = np.ldexp(quarter / 4.0, -126)
    edges: npt.NDArray[np.float64] = np.where(exponent > 0, normal, subnormal)
    return edges
