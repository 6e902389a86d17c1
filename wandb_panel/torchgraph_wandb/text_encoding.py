"""Numbers as text of a fixed width, so that a table cell holds thousands and a chart can read any one of them.

A chart in W&B can parse text only with `substring` and `indexof`, and W&B splits a list in a cell into rows. So a
number is a few characters of a 64-character alphabet, and the n-th number stands at n times that width.
"""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.int64]

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-_"
"""The index of a character is its value, 0 to 63. None of them needs to be escaped in JSON."""

LIST_SEPARATOR = "|"

FLOAT_WIDTH = 3
"""Characters of a float: 18 bits, a float32 without the last 14 bits of its mantissa (precise to 0.1 %)."""

CODE_WIDTH = 2
"""Characters of a code: 12 bits."""

ZERO, TOP, NOT_FINITE, NOT_RECORDED = 0, 4093, 4094, 4095
"""The codes of exactly 0, of the largest value, of a value that is not finite and of a missing one."""

SHARE_STEPS = 170
"""Codes of a share for each halving from 1 downwards: precise to 0.4 %, down to one sixteen-millionth."""

SIZE_OCTAVES = 128
"""Octaves that the codes of a size span: from 2^-64 to 2^64, precise to 2 %."""

_CHARACTERS = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_DROPPED_BITS = 14
_NOT_A_NUMBER = (1 << 18) - 1


def listed(items: Iterable[str]) -> str:
    """A list as one field; a separator within an item becomes a slash."""
    return LIST_SEPARATOR.join(item.replace(LIST_SEPARATOR, "/") for item in items)


def encode_floats(values: npt.ArrayLike) -> str:
    """`values`, of any shape, one after the other. NaN and infinity are kept."""
    numbers = np.ascontiguousarray(values, dtype=np.float32).ravel()
    bits = numbers.view(np.uint32).astype(np.int64)
    codes = (bits + (1 << (_DROPPED_BITS - 1))) >> _DROPPED_BITS
    codes[np.isinf(numbers)] = bits[np.isinf(numbers)] >> _DROPPED_BITS
    codes[np.isnan(numbers)] = _NOT_A_NUMBER
    return _text(np.stack([codes >> 12, codes >> 6 & 63, codes & 63], axis=1))


def share_codes(shares: npt.ArrayLike) -> Codes:
    """The codes of shares from 0 to 1, of any shape."""
    values = np.asarray(shares, dtype=np.float64)
    logarithms = np.log2(values, out=np.zeros_like(values), where=values > 0)
    codes = np.clip(np.round(TOP + SHARE_STEPS * logarithms), 1, TOP)
    return np.where(values > 0, codes, ZERO).astype(np.int64)


def size_codes(sizes: npt.ArrayLike) -> Codes:
    """The codes of the magnitudes of `sizes`, of any shape. Infinity is `NOT_FINITE`, and NaN is `NOT_RECORDED`."""
    values = np.abs(np.asarray(sizes, dtype=np.float64))
    is_size = np.isfinite(values) & (values > 0)
    logarithms = np.log2(values, out=np.zeros_like(values), where=is_size)
    places = (logarithms + SIZE_OCTAVES / 2) / SIZE_OCTAVES
    codes = np.where(is_size, np.clip(np.round(1 + places * (TOP - 1)), 1, TOP), ZERO)
    return np.select([np.isnan(values), np.isinf(values)], [NOT_RECORDED, NOT_FINITE], codes).astype(np.int64)


def encode_codes(codes: npt.NDArray[np.integer]) -> str:
    """`codes`, of any shape, one after the other."""
    flat = codes.astype(np.int64).ravel()
    return _text(np.stack([flat >> 6, flat & 63], axis=1))


def encode_flags(flags: npt.NDArray[np.integer]) -> str:
    """Numbers from 0 to 63, of any shape, as one character each."""
    return _text(flags.astype(np.int64).ravel())


def _text(values: npt.NDArray[np.int64]) -> str:
    return bytes(_CHARACTERS[values].ravel()).decode()
