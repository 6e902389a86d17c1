"""Calls `body.c`, where it was built: it makes and checks bodies of frames while other threads run Python."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.histogram import Histograms
from torchgraph_explorer.native import library

BUILT = Path(__file__).parent / "built" / "body.so"

_ROW_BYTES = 20
"""What a row of the table has besides its statistics: fingerprint, place and size of the histogram, and a check."""

_ENTRY_BYTES = 9
"""The longest entry of a histogram: a zero, a number of buckets up to 2,038, and a count of 32 bits."""


def encode_in_c(
    statistics: npt.NDArray[np.float32],
    histograms: Histograms,
    fingerprints: npt.NDArray[np.uint64] | None,
    *,
    head_check: int,
) -> bytes | None:
    """The same as `body.encode_in_python`.

    None where that has to do it: there is no library of this `body.c`, or the arrays of `histograms` contradict each
    other.
    """
    built = _library()
    if built is None:
        return None
    rows, columns = statistics.shape
    offsets, buckets, counts = (
        np.ascontiguousarray(histograms.offsets, np.uint32),
        np.ascontiguousarray(histograms.buckets, np.int16),
        np.ascontiguousarray(histograms.counts, np.uint32),
    )
    if len(offsets) != rows + 1 or offsets[0] or int(offsets[-1]) != len(buckets) or len(buckets) != len(counts):
        return None
    table = np.ascontiguousarray(statistics, np.float32)
    numbers = None if fingerprints is None else np.ascontiguousarray(fingerprints, np.uint64)
    body = np.empty(rows * (table.itemsize * columns + _ROW_BYTES) + _ENTRY_BYTES * len(buckets), np.uint8)
    places = (None if each is None else each.ctypes.data for each in (table, numbers, offsets, buckets, counts, body))
    size: int = built.torchgraph_encode_body(rows, columns, *places, head_check)
    return body[:size].tobytes() if size >= 0 else None


def check_in_c(
    body: bytes, *, rows: int, row_size: int, longest: int, head_check: int | None
) -> npt.NDArray[np.bool_] | None:
    """The same as `body.sound_in_python`; None if there is no library of this `body.c`."""
    built = _library()
    if built is None:
        return None
    sound = np.empty(rows, np.bool_)
    data = np.frombuffer(body, np.uint8)
    binding = (head_check is not None, head_check or 0)
    built.torchgraph_check_rows(rows, row_size, data.ctypes.data, len(body), longest, *binding, sound.ctypes.data)
    return sound


@cache
def _library() -> Any:
    built = library(BUILT)
    if built is None:
        return None
    encode, check = built.torchgraph_encode_body, built.torchgraph_check_rows
    number, place, word = ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint32
    encode.argtypes, encode.restype = (number, number, *[place] * 6, word), number
    check.argtypes, check.restype = (number, number, place, number, number, number, word, place), None
    return built
