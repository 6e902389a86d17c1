"""A cell in 16 bits: what the largest of several cells is, and whether any of them is not finite, is their maximum.

- 0: there is no number.
- 1 to 0x7F80: a number from 0 on, as the upper half of a float32, plus 1.
- The highest bit, 0x8000: the module has NaN or infinity there, whatever the number is.

So the maximum of codes never hides a cell that is not finite. `web/src/xray/codes.ts` has the same.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Codes: TypeAlias = npt.NDArray[np.uint16]
Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

BAD = 0x8000
"""The bit of a cell that is not finite."""

_LARGEST = 0x7F7F
"""The upper half of the largest finite float32."""


def encode(values: Floats, is_bad: Flags) -> Codes:
    """The codes of `values`, NaN where there is no number. Negative ones count as 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.maximum(values, 0.0).astype(np.float32).view(np.uint32)
    halves = np.minimum((bits + np.uint32(0x8000)) >> np.uint32(16), _LARGEST)
    codes = np.where(np.isnan(values), 0, halves + 1).astype(np.uint16)
    found: Codes = codes | np.where(is_bad, np.uint16(BAD), np.uint16(0))
    return found


def decode(codes: Codes) -> npt.NDArray[np.float32]:
    """The numbers of `codes`, within 0.4%; NaN where there is none."""
    numbers = (codes & (BAD - 1)).astype(np.uint32)
    values = (np.maximum(numbers, 1) - 1 << np.uint32(16)).astype(np.uint32).view(np.float32)
    found: npt.NDArray[np.float32] = np.where(numbers == 0, np.float32(np.nan), values)
    return found


def is_bad(codes: Codes) -> Flags:
    """Which cells are not finite."""
    found: Flags = (codes & BAD) != 0
    return found
