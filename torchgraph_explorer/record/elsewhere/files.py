"""Reads scalars from TensorBoard's event files and from W&B's run files, without their libraries.

The files are untrusted and may still be written: a reader takes whole records alone, and goes on where it ended.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError

from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.limits import LAST_STEP

MOST_RECORD = 1 << 20
"""Bytes of a record that is read; a longer one holds pictures or histograms."""

MOST_VALUES = 1 << 20
"""Values that are read from one file."""

MOST_RECORDS = 1 << 22
"""Records that are gone through in one file: most of a long training's hold no scalar."""

MOST_NAME = 1_000
"""Characters of a name."""

_EVENT_HEADER, _EVENT_FOOTER = struct.Struct("<QI"), 4
_WANDB_HEADER, _BLOCK, _PIECE = b":W&B\xe1\xbe\x00", 1 << 15, struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_FLOATS = {1: "<f", 2: "<d"}


class Value(NamedTuple):
    """A scalar's value at a step, as its library counts them, and a time in seconds since the epoch."""

    name: str
    step: int
    time: float
    value: float


class EventFile:
    """An event file of TensorBoard."""

    def __init__(self, path: Path) -> None:
        self._path, self._position, self._read, self._records = path, 0, 0, 0

    def new(self) -> Iterator[Value]:
        """The scalars that came since this was last asked.

        Raises:
            OSError: The file cannot be read.
        """
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            while self._read < MOST_VALUES and (data := self._next(file, size)) is not None:
                for value in _of_event(data):
                    self._read += 1
                    yield value

    def _next(self, file: BufferedReader, size: int) -> bytes | None:
        """The next record of a file of `size` bytes, empty if it is long; None if there is no whole one."""
        file.seek(self._position)
        header = file.read(_EVENT_HEADER.size)
        if len(header) < _EVENT_HEADER.size:
            return None
        length = _EVENT_HEADER.unpack(header)[0]
        end = self._position + _EVENT_HEADER.size + length + _EVENT_FOOTER
        if length == 0 or end > size or self._records >= MOST_RECORDS:  # zeros, of which a file may have terabytes
            return None
        self._position = end
        self._records += 1
        return file.read(length) if length <= MOST_RECORD else b""


class WandbFile:
    """The file of a W&B run: records in pieces, in blocks of 32 KiB, as LevelDB's log has them."""

    def __init__(self, path: Path) -> None:
        self._path, self._position, self._read, self._records = path, len(_WANDB_HEADER), 0, 0
        self._pieces: list[bytes] = []

    def new(self) -> Iterator[Value]:
        """The new values; see `EventFile`.

        Raises:
            OSError: The file cannot be read.
        """
        with self._path.open("rb") as file:
            if file.read(len(_WANDB_HEADER)) != _WANDB_HEADER:
                return
            while self._read < MOST_VALUES and (piece := self._next(file)) is not None:
                for value in _of_history(self._joined(*piece)):
                    self._read += 1
                    yield value

    def _next(self, file: BufferedReader) -> tuple[int, bytes] | None:
        """The kind and the bytes of the next piece; None if there is no whole one."""
        left = _BLOCK - self._position % _BLOCK
        if left < _PIECE.size:
            self._position += left
        file.seek(self._position)
        header = file.read(_PIECE.size)
        if len(header) < _PIECE.size:
            return None
        _, length, kind = _PIECE.unpack(header)
        data = file.read(length)
        if len(data) < length or not _FULL <= kind <= _LAST or self._records >= MOST_RECORDS:
            return None
        self._records += 1
        self._position += _PIECE.size + length
        return kind, data

    def _joined(self, kind: int, data: bytes) -> bytes:
        """The record that ends with this piece; empty if none does, or it is long."""
        if kind in {_FULL, _FIRST}:
            self._pieces = []
        if sum(map(len, self._pieces)) <= MOST_RECORD:
            self._pieces.append(data)
        if kind in {_FIRST, _MIDDLE}:
            return b""
        whole, self._pieces = b"".join(self._pieces), []
        return whole if len(whole) <= MOST_RECORD else b""


def _of_event(data: bytes) -> Iterator[Value]:
    try:
        event = pb.TensorBoardEvent.FromString(data)
    except DecodeError:
        return
    for one in event.summary.value:
        value = one.simple_value if one.HasField("simple_value") else _number(one.tensor)
        if value is not None and len(one.tag) <= MOST_NAME and math.isfinite(event.wall_time):
            yield Value(one.tag, event.step, event.wall_time, float(value))


def _number(tensor: pb.TensorBoardEvent.Tensor) -> float | None:
    """The number in a tensor; None if it holds none, or several."""
    numbers = [*tensor.floats, *tensor.doubles]
    if len(numbers) == 1:
        return numbers[0]
    form = _FLOATS.get(tensor.dtype)
    if form is None or len(tensor.content) != struct.calcsize(form):
        return None
    return float(struct.unpack(form, tensor.content)[0])


def _of_history(data: bytes) -> Iterator[Value]:
    try:
        items = pb.WandbRecord.FromString(data).history.item
    except DecodeError:
        return
    found = {_name(one): value for one in items if (value := _value(one)) is not None}
    time, step = found.get("_timestamp"), found.get("_step", 0.0)
    if time is None or not math.isfinite(time) or not 0 <= step <= LAST_STEP:
        return
    for name, value in found.items():
        if name and not name.startswith("_") and len(name) <= MOST_NAME:
            yield Value(name, int(step), time, value)


def _name(item: pb.WandbRecord.Item) -> str:
    return item.key or ".".join(item.nested_key)


def _value(item: pb.WandbRecord.Item) -> float | None:
    if item.HasField("number"):
        return item.number
    if item.HasField("integer"):
        return float(item.integer)
    try:
        value = json.loads(item.value_json) if len(item.value_json) <= MOST_NAME else None
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError, RecursionError):
        return None
