"""Writes pack.bin and pack.json, which the Python and the TypeScript tests both read.

Run `python -m tests.contracts.pack` after a change. The bytes are put together here from the words of http_api.md
("Binary answers") and without our code; pack.json says what is in them, with null for NaN.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

FILE = Path(__file__).with_suffix(".bin")
CONTENT = FILE.with_suffix(".json")

LETTERS = {"float32": "f", "uint32": "I", "int16": "h"}

META: dict[str, object] = {"epoch": 4294967296, "frames": 3, "statistics": ["count", "Größe"]}
ARRAYS: dict[str, tuple[str, list[int], list[float]]] = {
    "7.frame": ("uint32", [3], [0, 1, 4294967295]),
    "7.statistics": ("float32", [3, 2], [1.0, -0.5, math.nan, math.inf, -math.inf, 3.4028234663852886e38]),
    "7.buckets": ("int16", [5], [-1019, -1, 0, 1, 1019]),
    "7.counts": ("uint32", [5], [1, 2, 3, 4, 5]),
    "8.frame": ("uint32", [0], []),
    "8.statistics": ("float32", [0, 2], []),
    "8.buckets": ("int16", [0], []),
    "scalar": ("float32", [], [0.25]),
}


def padded(block: bytes) -> bytes:
    """`block` and zero bytes, up to a multiple of 8."""
    while len(block) % 8:
        block += b"\0"
    return block


def binary() -> bytes:
    """The content of pack.bin."""
    head: list[dict[str, object]] = []
    body = b""
    for name, (dtype, shape, values) in ARRAYS.items():
        head.append({"name": name, "dtype": dtype, "shape": shape, "offset": len(body)})
        body += padded(struct.pack(f"<{len(values)}{LETTERS[dtype]}", *values))
    text = json.dumps({"meta": META, "arrays": head}).encode()
    return padded(struct.pack("<I", len(text)) + text) + body


def content() -> str:
    """The content of pack.json."""
    arrays = {
        name: {"dtype": dtype, "shape": shape, "values": [said(value) for value in values]}
        for name, (dtype, shape, values) in ARRAYS.items()
    }
    return json.dumps({"meta": META, "arrays": arrays}, indent=1, allow_nan=False) + "\n"


def said(value: float) -> float | str | None:
    """JSON has no NaN, and no infinity, which is spelled as both languages read it."""
    if math.isnan(value):
        return None
    return str(value).replace("inf", "Infinity") if math.isinf(value) else value


if __name__ == "__main__":
    FILE.write_bytes(binary())
    CONTENT.write_text(content(), encoding="utf-8")
