"""Numbers as letters of a fixed width, so that a table cell can hold thousands and a chart can read any one of them.

A chart in W&B has no parser but `substring` and `indexof`, and a list in a cell would be taken apart into rows. So a
number is a few letters of a 64-letter alphabet, and the n-th number stands at n times that width.
"""

from __future__ import annotations

import string

import numpy as np
import numpy.typing as npt

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase + "-_"
"""A letter's place here is its value, 0 to 63. None of them needs to be escaped in JSON."""

FLOAT_LETTERS = 3
"""Letters of one number: 18 bits, which is a float32 without the last 14 bits of its mantissa (0.1 % precise)."""

LEVELS = 8
"""Strengths of a cell of a heat strip; two of them share a letter."""

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


def packed_levels(levels: npt.NDArray[np.integer]) -> str:
    """A heat strip: `levels` `[rows, steps]` from 0 to 7, an even number of rows; step by step, two rows a letter."""
    columns = levels.T.astype(np.int64)
    return _text(columns[:, 0::2] * LEVELS + columns[:, 1::2])


def _text(values: npt.NDArray[np.int64]) -> str:
    return bytes(_LETTERS[values].ravel()).decode()
