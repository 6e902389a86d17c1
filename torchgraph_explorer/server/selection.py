"""A part of an array for the viewer: some indices along each dimension, shrunk to what an answer may hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import OptionError

MOST_ELEMENTS = 1 << 18
"""Elements of an answer at most."""

SLAB = 1 << 21
"""Elements that are reduced at a time, so that an answer takes little memory besides the tensor's."""

SAMPLED = 1 << 18
"""Elements that a quantile is taken from."""

TOP = 256
"""Elements of the largest magnitude that are named where not all can be sent."""

EXACT = 2**53
"""Integers beyond this are rounded when they are sent as float64."""

Array = npt.NDArray[Any]
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What was selected.

    Attributes:
        spans: First index, and the one after the last, along each dimension.
        factors: Along each dimension, how many neighbours each entry stands for.
        arrays: `values` if each entry stands for itself; else `mean`, `low`, `high` of the finite elements it stands
            for, and `bad`, how many others there are. And `top.index` and `top.value`.
    """

    spans: Spans
    factors: tuple[int, ...]
    arrays: dict[str, Array]


def selected(values: Array, spans: Spans, *, shrink: Sequence[int], most: int = MOST_ELEMENTS) -> Selection:
    """The elements in `spans`, in at most `most` entries: neighbours along the dimensions in `shrink` are merged.

    Raises:
        OptionError: The other dimensions alone have more.
    """
    part = np.asarray(values[tuple(slice(start, stop) for start, stop in spans)])
    factors = _factors(part.shape, shrink, most)
    if all(factor == 1 for factor in factors):
        return Selection(spans, factors, {"values": sendable(part)})
    return Selection(spans, factors, {**merged(part, factors), **_top(part)})


def spans_of(text: str, shape: Sequence[int]) -> Spans:
    """What `0,:,2:10` selects of an array: an index, a range, or everything, for each dimension.

    Raises:
        OptionError: It is something else, or beyond the shape.
    """
    parts = text.split(",") if text else [":"] * len(shape)
    if len(parts) != len(shape):
        raise OptionError(f"at={text[:80]!r} selects along {len(parts)} dimensions; the tensor has {len(shape)}.")
    return tuple(_span(part, size) for part, size in zip(parts, shape, strict=True))


def _span(text: str, size: int) -> tuple[int, int]:
    first, is_range, last = text.partition(":")
    try:
        start = int(first) if first or not is_range else 0
        stop = (int(last) if last else size) if is_range else start + 1
    except ValueError:
        start = stop = -1
    if not 0 <= start <= stop <= size:
        raise OptionError(f"{text[:40]!r} is not an index or range of a dimension of size {size}. Write 3, 2:10 or :.")
    return start, stop


def sendable(values: Array) -> Array:
    """The elements in a type that the viewer can read: integers as float64, beyond `EXACT` rounded."""
    if values.dtype in (np.bool_, np.uint8):
        return values.astype(np.uint8)
    if values.dtype in (np.float16, np.float32):
        return values.astype(np.float32)
    return values.astype(np.float64)


def is_rounded(values: Array) -> bool:
    """Whether `sendable` rounds any of them."""
    if values.dtype not in (np.int64, np.uint64) or not values.size:
        return False
    return bool(int(values.max()) > EXACT or int(values.min()) < -EXACT)


def merged(part: Array, factors: Sequence[int]) -> dict[str, Array]:
    """The blocks of `factors` neighbours of an array, as in `Selection.arrays`."""
    axis = int(np.argmax(part.shape))
    found = [_merged(slab, factors) for slab in _slabs(part, axis, factors[axis])]
    return {name: np.concatenate([one[name] for one in found], axis=axis) for name in found[0]}


def summary(values: Array) -> dict[str, float | int | None]:
    """Facts of all elements. Those that no finite element says are None."""
    flat = values.reshape(-1)
    count, finite, nan, positive, total, squares = flat.size, 0, 0, 0, 0.0, 0.0
    low, high = math.inf, -math.inf
    for start in range(0, count, SLAB):
        part = flat[start : start + SLAB].astype(np.float64)
        good = part[np.isfinite(part)]
        nan += int(np.isnan(part).sum())
        positive += int((part == np.inf).sum())
        finite += good.size
        if good.size:
            low, high = min(low, float(good.min())), max(high, float(good.max()))
            total += float(good.sum())
    mean = total / finite if finite else math.nan
    for start in range(0, count, SLAB):
        part = flat[start : start + SLAB].astype(np.float64)
        squares += float(np.square(part[np.isfinite(part)] - mean).sum())
    return {
        "count": count,
        "nan": nan,
        "positive_infinity": positive,
        "negative_infinity": count - finite - nan - positive,
        "low": _number(low),
        "high": _number(high),
        "mean": _number(mean),
        "std": _number(math.sqrt(squares / finite)) if finite else None,
        "typical": _typical(flat),
    }


def _typical(flat: Array) -> float | None:
    """Magnitude that 99 of 100 finite elements do not exceed, from a sample of them."""
    sample = np.abs(flat[:: max(1, -(-flat.size // SAMPLED))].astype(np.float64))
    sample = sample[np.isfinite(sample)]
    return _number(float(np.quantile(sample, 0.99))) if sample.size else None


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _factors(shape: Sequence[int], shrink: Sequence[int], most: int) -> tuple[int, ...]:
    """Powers of two by which each dimension is shrunk, the longest first."""
    factors = [1] * len(shape)
    while math.prod(-(-size // factor) for size, factor in zip(shape, factors, strict=True)) > most:
        lengths = {dim: -(-shape[dim] // factors[dim]) for dim in shrink}
        longest = max(lengths, key=lengths.__getitem__, default=None)
        if longest is None or lengths[longest] <= 1:
            raise OptionError(
                f"{math.prod(shape):,} elements are selected; at most {most:,} can be sent. Select one index, or a "
                f"range, along some dimensions with at=."
            )
        factors[longest] *= 2
    return tuple(factors)


def _slabs(part: Array, axis: int, factor: int) -> Iterator[Array]:
    """Slices along an axis, whole blocks of `factor` each."""
    length = part.shape[axis]
    row = max(part.size // max(length, 1), 1)
    step = max(SLAB // row // factor, 1) * factor
    for start in range(0, max(length, 1), step):
        yield part[(slice(None),) * axis + (slice(start, start + step),)]


def _merged(slab: Array, factors: Sequence[int]) -> dict[str, Array]:
    finite = np.isfinite(slab)
    values = slab.astype(np.float64)
    sums, good = np.where(finite, values, 0.0), finite.astype(np.float64)
    low, high, bad = np.where(finite, values, np.inf), np.where(finite, values, -np.inf), (~finite).astype(np.float64)
    for axis, factor in enumerate(factors):
        if factor == 1:
            continue
        starts = np.arange(0, slab.shape[axis], factor)
        sums, good, bad = (np.add.reduceat(one, starts, axis=axis) for one in (sums, good, bad))
        low, high = np.minimum.reduceat(low, starts, axis=axis), np.maximum.reduceat(high, starts, axis=axis)
    none = good == 0
    mean = np.where(none, np.nan, sums / np.maximum(good, 1))
    return {
        "mean": mean.astype(np.float32),
        "low": np.where(none, np.nan, low).astype(np.float32),
        "high": np.where(none, np.nan, high).astype(np.float32),
        "bad": bad.astype(np.float32),
    }


def _top(part: Array) -> dict[str, Array]:
    """The elements of the largest magnitude: flat indices in `part`, and values. NaN and infinity come first."""
    flat = part.reshape(-1)
    best = np.zeros(0, np.int64)
    for start in range(0, flat.size, SLAB):
        best = np.concatenate([best, start + largest(_magnitudes(flat[start : start + SLAB]), TOP)])
    order = best[largest(_magnitudes(flat[best]), TOP)]
    return {"top.index": order.astype(np.float64), "top.value": sendable(flat[order])}


def largest(sizes: Array, count: int) -> Array:
    """Indices of the `count` largest numbers, the largest first, and the lowest index first among equal ones.

    `argpartition` alone would choose among equal numbers by the instructions that the processor has.
    """
    if count < sizes.size:
        least = np.partition(sizes, sizes.size - count)[sizes.size - count]
        above = np.flatnonzero(sizes > least)
        found = np.concatenate([above, np.flatnonzero(sizes == least)[: count - above.size]])
    else:
        found = np.arange(sizes.size)
    return found[np.lexsort((found, -sizes[found]))]


def _magnitudes(values: Array) -> Array:
    sizes = np.abs(values.astype(np.float64))
    return np.where(np.isnan(sizes), np.inf, sizes)
