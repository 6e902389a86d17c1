"""Takes an exported page apart, slowly and by its own words, without our code."""

from __future__ import annotations

import gzip
import html
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.server.asking import unpack
from torchgraph_explorer.schema import STATISTICS

LETTERS = [chr(code) for code in range(33, 127) if chr(code) not in '&<"']
VALUES = np.zeros(128, np.int64)
VALUES[[ord(letter) for letter in LETTERS]] = range(len(LETTERS))


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says: its HTML, the words of its data, and the arrays."""

    text: str
    meta: dict[str, Any]
    arrays: dict[str, Any]

    @property
    def model(self) -> dict[str, Any]:
        """The first model."""
        only: dict[str, Any] = self.meta["models"][0]
        return only

    @property
    def steps(self) -> list[int]:
        """Of the first model."""
        steps: list[int] = self.model["updates"]["frames"]["step"]
        return steps

    @property
    def keys(self) -> list[tuple[Any, ...]]:
        """What identifies each series of the first model, in the page's order."""
        names = ("module", "call", "role", "path", "kind")
        return [tuple(one[name] for name in names) for one in self.model["updates"]["series"]["items"]]

    def rows(self, model: int = 0) -> dict[tuple[int, int], tuple[bytes, dict[int, int]]]:
        """By series and frame: the bytes of the statistics, and how many elements are in each bucket."""
        own = {name.partition(".")[2]: array for name, array in self.arrays.items() if name.startswith(f"{model}.")}
        histories = [_history(own, number) for number in range(len(own["present"]))]
        return {
            (series, frame): row
            for series, history in enumerate(own["history"].tolist())
            for frame, row in histories[history].items()
        }


def read_page(data: bytes) -> Page:
    """The page of `data`."""
    text = data.decode()
    meta, arrays = unpack(part(text, "data"))
    return Page(text, meta, arrays)


def part(text: str, name: str) -> bytes:
    """What one of the page's texts stands for: `style`, `viewer` or `data`."""
    found = re.search(f'<script type="text/plain" id="torchgraph-{name}">([^<]*)</script>', text)
    assert found is not None
    return unpacked(html.unescape(found[1]))


def unpacked(letters: str) -> bytes:
    """13 bits in two letters: the length of the stream, and the stream."""
    values = VALUES[np.frombuffer(letters.encode("ascii"), np.uint8)].reshape(-1, 2)
    numbers = values[:, 0] * 91 + values[:, 1]
    bits = numbers[:, None] >> np.arange(12, -1, -1) & 1
    data = np.packbits(bits.reshape(-1)[: bits.size // 8 * 8].astype(np.uint8)).tobytes()
    length = int.from_bytes(data[:4], "little")
    assert length + 4 <= len(data) <= length + 6
    return gzip.decompress(data[4 : 4 + length])


def _history(arrays: dict[str, Any], number: int) -> dict[int, tuple[bytes, dict[int, int]]]:
    start = int(arrays["columns"][:number].sum())
    columns = range(start, start + int(arrays["columns"][number]))
    frames = arrays["present"].shape[1]
    counts = {int(arrays["buckets"][: one + 1].sum(dtype=int)): _counts(arrays, one, frames) for one in columns}
    statistics = _statistics(arrays, number, frames)
    return {
        frame: (statistics[frame].tobytes(), {bucket: each[frame] for bucket, each in counts.items() if each[frame]})
        for frame in range(frames)
        if arrays["present"][number, frame]
    }


def _counts(arrays: dict[str, Any], column: int, frames: int) -> list[int]:
    found = [sum(_signed(arrays, "first", one) for one in range(column + 1))]
    expected, size = found[0] * 256, arrays["sizes"][column]
    place = int((arrays["sizes"][:column] == size).sum())
    for frame in range(1, frames):
        found.append(expected // 256 + _signed(arrays, f"residuals.{size}", (place, frame - 1)))
        share = max(2, min(8, 2 ** int(math.log2(frame + 1))))
        expected += (found[-1] * 256 - expected) // share
    return found


def _statistics(arrays: dict[str, Any], number: int, frames: int) -> Any:
    found = np.zeros((frames, len(STATISTICS)), dtype=np.float32)
    bits = found.view(np.int32)
    for frame in range(frames):
        for column, name in enumerate(STATISTICS):
            before = _norm(dict(zip(STATISTICS, found[frame].tolist(), strict=True)))
            if name != "l2_norm":
                before = int(bits[frame - 1, column]) if frame else 0
            change = before + _signed(arrays, f"statistics.{name}", (number, frame))
            bits[frame, column] = (change + 2**31) % 2**32 - 2**31
    return found


def _norm(row: dict[str, float]) -> int:
    elements = row["count"] - row["nan"] - row["positive_infinity"] - row["negative_infinity"]
    square = (row["mean"] ** 2 + row["std"] ** 2) * elements
    with np.errstate(over="ignore"):
        norm = np.float32(math.sqrt(square) if square >= 0 else math.nan)
    return int(norm.view(np.int32)) if np.isfinite(norm) else 0


def _signed(arrays: dict[str, Any], name: str, at: Any) -> int:
    number, byte = 0, 0
    while f"{name}.{byte}" in arrays:
        number += int(arrays[f"{name}.{byte}"][at]) << (8 * byte)
        byte += 1
    return -(number + 1) // 2 if number % 2 else number // 2
