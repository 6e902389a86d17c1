"""Histories as arrays of small bytes, which compress to about 80 a series and frame. Nothing is lost.

Each count is predicted from the earlier counts of its bucket, each statistic from the one before; only the differences
are written, which are small. Differences of similar size are stored together, so that the compressor has one code for
each kind of noise. `web/src/api/numbers.ts` decodes them with the same integers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.schema import STATISTICS
from torchgraph_explorer.server.page.histories import Histories, Ints

Arrays = Mapping[str, npt.NDArray[np.generic]]

FRACTION = 8
"""Fractional bits of a prediction."""

SLOWEST = 3
"""A count moves the prediction by an eighth of the difference; the first counts move it by more."""

_AT_ONCE = 1 << 14
"""Columns that are computed together, so that they fit in memory."""

_BITS = np.uint32


def number_arrays(histories: Histories) -> Arrays:
    """All of `histories`, by the names that the page knows; `first.0` is the lowest byte of `first`, and so on."""
    sizes, residuals = _residuals(histories.counts)
    large = {"first": zigzag(_differences(histories.counts[:, :1].reshape(-1).astype(np.int64)))}
    large |= {f"residuals.{size}": residuals[size] for size in sorted(residuals)}
    bits = statistic_residuals(histories.statistics)
    large |= {f"statistics.{name}": bits[..., i] for i, name in enumerate(STATISTICS)}
    return {
        "history": histories.history.astype(np.uint32),
        "present": histories.present.astype(np.uint8),
        "columns": np.bincount(histories.columns[:, 0], minlength=len(histories.present)).astype(np.uint32),
        "buckets": _differences(histories.columns[:, 1]).astype(np.int16),
        "sizes": sizes,
        **{f"{name}.{byte}": plane for name, numbers in large.items() for byte, plane in enumerate(planes(numbers))},
    }


def _residuals(counts: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint8], dict[int, Ints]]:
    """The size class of each column's differences, and the differences of each class, `[columns, frames - 1]`."""
    pieces = [_unexpected(counts[at : at + _AT_ONCE]) for at in range(0, len(counts), _AT_ONCE)]
    found = np.concatenate(pieces) if pieces else np.zeros((0, 0), dtype=np.int64)
    sizes = _size_of(found)
    return sizes, {size: found[sizes == size] for size in np.unique(sizes).tolist()}


def _unexpected(counts: npt.NDArray[np.uint32]) -> Ints:
    """The prediction error of each count but the first, as `zigzag`; `[columns, frames - 1]`."""
    scaled = counts.astype(np.int64) << FRACTION
    expected, found = scaled[:, :1].sum(axis=1), np.empty((len(counts), max(0, counts.shape[1] - 1)), dtype=np.int64)
    for frame in range(1, counts.shape[1]):
        found[:, frame - 1] = counts[:, frame] - (expected >> FRACTION)
        expected += (scaled[:, frame] - expected) >> pace(frame)
    return zigzag(found)


def pace(frame: int) -> int:
    """The share of the difference at `frame` by which the prediction moves, as a power of a half."""
    return min(SLOWEST, max(1, (frame + 1).bit_length() - 1))


def _size_of(residuals: Ints) -> npt.NDArray[np.uint8]:
    """Twice the logarithm of a column's mean difference."""
    means = residuals.mean(axis=1) if residuals.shape[1] else np.zeros(len(residuals))
    return np.round(2 * np.log2(1 + means)).astype(np.uint8)


def statistic_residuals(statistics: npt.NDArray[np.float32]) -> Ints:
    """The difference of each statistic's bits from those at the frame before, as `zigzag`.

    The norm is predicted from mean and standard deviation instead, and differs by rounding only.
    """
    bits = statistics.view(_BITS).astype(np.int64)
    before = np.zeros_like(bits)
    before[:, 1:] = bits[:, :-1]
    before[..., STATISTICS.index("l2_norm")] = expected_norm(statistics)
    return zigzag((bits - before).astype(np.int32).astype(np.int64))


def expected_norm(statistics: npt.NDArray[np.float32]) -> Ints:
    """The bits of the norm that count, mean and standard deviation imply; 0 if that is not finite."""
    value = {name: statistics[..., i].astype(np.float64) for i, name in enumerate(STATISTICS)}
    with np.errstate(invalid="ignore", over="ignore"):
        finite = value["count"] - value["nan"] - value["positive_infinity"] - value["negative_infinity"]
        square = value["mean"] * value["mean"] + value["std"] * value["std"]
        norm = np.sqrt(square * finite).astype(np.float32)
    return np.where(np.isfinite(norm), norm.view(_BITS).astype(np.int64), 0)


def zigzag(numbers: Ints) -> Ints:
    """0, -1, 1, -2, … as 0, 1, 2, 3, …, so that small numbers stay small."""
    return (numbers << 1) ^ (numbers >> 63)


def planes(numbers: Ints) -> list[npt.NDArray[np.uint8]]:
    """The lowest bytes of all numbers, then the next bytes, up to the longest number."""
    count = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    return [((numbers >> (8 * byte)) & 0xFF).astype(np.uint8) for byte in range(count)]


def _differences(numbers: Ints) -> Ints:
    return np.diff(numbers, prepend=0)
