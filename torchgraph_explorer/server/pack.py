"""Packs arrays into one answer, as http_api.md says under "Binary answers"."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

ALIGNMENT = 8
DTYPES = ("float32", "float64", "uint32", "int16", "uint8")
"""Types that the viewer can view without a copy."""


def pack(meta: Mapping[str, object], arrays: Mapping[str, npt.NDArray[np.generic]]) -> bytes:
    """`meta` and `arrays` in one piece of bytes."""
    return b"".join(pieces(meta, arrays))


def pieces(meta: Mapping[str, object], arrays: Mapping[str, npt.NDArray[np.generic]]) -> list[bytes]:
    """The parts that `pack` joins: the head, and each array."""
    described, blocks, offset = [], [], 0
    for name, array in arrays.items():
        assert array.dtype.name in DTYPES, array.dtype
        block = _padded(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        described.append({"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "offset": offset})
        blocks.append(block)
        offset += len(block)
    head = json.dumps({"meta": meta, "arrays": described}, allow_nan=False).encode()
    return [_padded(len(head).to_bytes(4, "little") + head), *blocks]


def _padded(block: bytes) -> bytes:
    return block + bytes(-len(block) % ALIGNMENT)
