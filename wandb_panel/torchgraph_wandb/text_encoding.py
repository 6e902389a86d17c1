"""Numbers as letters of a fixed width, so that a table cell can hold thousands and a chart can read any one of them.

A chart in W&B has no parser but `substring` and `indexof`, and a list in a cell would be taken apart into rows. So a
number is a few letters of a 64-letter alphabet, and the n-th number stands at n times that width.
"""

from __future__ import annotations

import string
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.int64]

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-_"
"""A letter's place here is its value, 0 to 63. None of them needs to be escaped in JSON."""

FLOAT_LETTERS = 3
"""Letters of one number: 18 bits, which is a float32 without the last 14 bits of its mantissa (0.1 % precise)."""

CODE_LETTERS = 2
"""Letters of a code: 12 bits."""

ZERO, TOP, NOT_FINITE, NOT_RECORDED = 0, 4093, 4094, 4095
"""Codes of exactly 0 and of the largest value, and of what is not finite or not there. The rest lies between."""

SHARE_STEPS = 170
"""Codes of a share in each halving from 1 downwards: 0.4 % precise, down to a sixteen-millionth."""

SIZE_OCTAVES = 128
"""Octaves that the codes of a size span, those of float32 between 2^-64 and 2^64, 2 % precise."""

_LETTERS = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_DROPPED_BITS = 14
_NOT_A_NUMBER = (1 << 18) - 1


def packed_numbers(values: npt.ArrayLike) -> str:
    """`values`, of any shape, one after the other. NaN stays NaN, and infinity infinity."""
    numbers = np.ascontiguousarray(values, dtype=np.float32).ravel()
    bits = numbers.view(np.uint32).astype(np.int64)
    codes = (bits + (1 << (_DROPPED_BITS - 1))) >> _DROPPED_BITS
    codes[np.isinf(numbers)] = bits[np.isinf(numbers)] >> _DROPPED_BITS
    codes[np.isnan(numbers)] = _NOT_A_NUMBER
    return _text(np.stack([codes >> 12, codes >> 6 & 63, codes & 63], axis=1))


def share_codes(shares: npt.ArrayLike) -> Codes:
    """Codes of shares from 0 to 1, of any shape."""
    values = np.asarray(shares, dtype=np.float64)
    logarithms = np.log2(values, out=np.zeros_like(values), where=values > 0)
    codes = np.clip(np.round(TOP + SHARE_STEPS * logarithms), 1, TOP)
    return np.where(values > 0, codes, ZERO).astype(np.int64)


def size_codes(sizes: npt.ArrayLike) -> Codes:
    """Codes of numbers from 0 on, of any shape. Infinity is not finite, and NaN is taken for not recorded."""
    values = np.abs(np.asarray(sizes, dtype=np.float64))
    is_size = np.isfinite(values) & (values > 0)
    logarithms = np.log2(values, out=np.zeros_like(values), where=is_size)
    places = (logarithms + SIZE_OCTAVES / 2) / SIZE_OCTAVES
    codes = np.where(is_size, np.clip(np.round(1 + places * (TOP - 1)), 1, TOP), ZERO)
    return np.select([np.isnan(values), np.isinf(values)], [NOT_RECORDED, NOT_FINITE], codes).astype(np.int64)


def packed_codes(codes: npt.NDArray[np.integer]) -> str:
    """`codes`, of any shape, one after the other."""
    flat = codes.astype(np.int64).ravel()
    return _text(np.stack([flat >> 6, flat & 63], axis=1))


def packed_flags(flags: npt.NDArray[np.integer]) -> str:
    """Numbers from 0 to 63, of any shape, a letter each."""
    return _text(flags.astype(np.int64).ravel())


def _text(values: npt.NDArray[np.int64]) -> str:
    return bytes(_LETTERS[values].ravel()).decode()
