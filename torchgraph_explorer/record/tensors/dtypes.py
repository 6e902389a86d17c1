"""Element types of torch as arrays of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_NUMPY = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "uint16": "<u2",
    "int16": "<i2",
    "uint32": "<u4",
    "int32": "<i4",
    "uint64": "<u8",
    "int64": "<i8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}
"""Those that numpy has."""

_FLOATS_OF_8 = {
    "float8_e4m3fn": (3, 7),
    "float8_e4m3fnuz": (3, 8),
    "float8_e5m2": (2, 15),
    "float8_e5m2fnuz": (2, 16),
}
"""Bits of the mantissa, and bias of the exponent."""

SIZES = {
    **{name: np.dtype(code).itemsize for name, code in _NUMPY.items()},
    "bfloat16": 2,
    "float8_e8m0fnu": 1,
    **dict.fromkeys(_FLOATS_OF_8, 1),
}
"""Bytes of an element, by the type's name as torch prints it, without `torch.`."""


def as_array(data: bytes, dtype: str) -> npt.NDArray[Any]:
    """The elements in `data`, `[n]`. Types that numpy does not have become float32, which holds all their values."""
    if dtype == "bool":
        bits: npt.NDArray[np.bool_] = np.frombuffer(data, np.uint8) != 0
        return bits
    if dtype in _NUMPY:
        return np.frombuffer(data, _NUMPY[dtype]).copy()
    if dtype == "bfloat16":
        widened: npt.NDArray[Any] = np.frombuffer(data, "<u2").astype("<u4") << 16
        return widened.view("<f4")
    values: npt.NDArray[np.float32] = _table(dtype)[np.frombuffer(data, np.uint8)]
    return values


def _table(dtype: str) -> npt.NDArray[np.float32]:
    """The value of each byte."""
    codes = np.arange(256)
    if dtype == "float8_e8m0fnu":
        return np.where(codes == 255, np.nan, np.exp2(codes - 127.0)).astype(np.float32)
    mantissa_bits, bias = _FLOATS_OF_8[dtype]
    magnitude, sign = codes & 0x7F, np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = magnitude >> mantissa_bits, (magnitude & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * np.exp2(exponent - float(bias)))
    values = sign * values
    if dtype.endswith("fnuz"):
        values[0x80] = np.nan
    elif dtype == "float8_e4m3fn":
        values[magnitude == 0x7F] = np.nan
    else:
        values = np.where(exponent == 31, np.where(mantissa > 0, np.nan, sign * np.inf), values)
    return values.astype(np.float32)
