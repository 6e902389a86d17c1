"""Segments as nobody writes them: taken apart, changed at random, and put together again with the right checks."""

from __future__ import annotations

import math
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.record.examples import rebound, records
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import MARKER, enveloped, file_header

WHOLE = (
    0,
    1,
    2,
    7,
    63,
    64,
    127,
    128,
    2**16,
    2**24,
    2**24 + 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**53,
    2**62,
    2**63 - 1,
    2**64 - 1,
)
SIGNED = (*WHOLE, *(-number for number in WHOLE))
REAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 1e300, -1e300, 5e-324, 1e11, 2.0**62, 1.0)
TEXT = (
    "",
    ".",
    "..",
    "/",
    "a/../b",
    "\0",
    "a\nb",
    "\x1b[2J\x1b]0;x\x07",
    "<script>alert(1)</script>",
    "\"&'",
    "\u202e\u2066",
    "\ud7ff\U0010ffff",
    "é" * 3,
    "x" * 5_000,
    "0." * 500,
    "%s{}$",
    "net",
    "fc",
    "weight",
)
UNKNOWN = (
    b"\xfa\x01\x03abc",
    b"\xf8\x01\x05",
    b"\xf3\x01" * 3 + b"\xf4\x01" * 3,
    b"\x0a" * 40,
    b"\xff\xff\xff",
    bytes(9),
)
"""Fields that are not in the schema, deep nesting, and what is no field at all."""

INTEGERS = {
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31),
    FieldDescriptor.TYPE_UINT64: (0, 2**64),
    FieldDescriptor.TYPE_UINT32: (0, 2**32),
    FieldDescriptor.TYPE_FIXED32: (0, 2**32),
    FieldDescriptor.TYPE_ENUM: (-(2**31), 2**31),
    FieldDescriptor.TYPE_BOOL: (0, 2),
}


@dataclass(slots=True)
class ListedSegment:
    """A record: its head as bytes, and its body. `raw` stands in place of both.

    The checks of a body's rows do not depend on the head here. They do when it is `enveloped`.
    """

    head: bytes
    body: bytes = b""
    raw: bytes | None = None

    def enveloped(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return enveloped(self.head, _rebound(self.head, self.body, was=None, now=crc32(self.head)))


def taken_apart(data: bytes) -> list[ListedSegment]:
    """The records of a sound segment."""
    return [
        ListedSegment(head, _rebound(head, body, was=crc32(head), now=None)) for head, body in heads_and_bodies(data)
    ]


def heads_and_bodies(data: bytes) -> list[tuple[bytes, bytes]]:
    """The records of a sound segment as they are."""
    found = []
    for at in records(data):
        head, body = struct.unpack_from("<II", data, at + 8)
        start = at + -(-(24 + head) // 8) * 8
        found.append((data[at + 24 : at + 24 + head], data[start : start + body]))
    return found


def _rebound(head: bytes, body: bytes, *, was: int | None, now: int | None) -> bytes:
    """`examples.rebound` for the rows that the head tells of, as far as there are so many."""
    message = _parsed(pb.Head, head)
    if message.HasField("frame"):
        layout = _parsed(pb.Layout, _inflated(message.frame.layout))
        rows, words = layout.rows, len(layout.statistics) + 3
    elif message.HasField("tensors"):
        rows, words = 2 * len(_parsed(pb.TensorLayout, _inflated(message.tensors.layout)).tensors), 3
    else:
        return body
    return rebound(body, min(rows, len(body) // (4 * words)), words, was=was, now=now)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A sound segment, changed in one to four places."""
    pieces = taken_apart(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        rng.choices(CHANGES, WEIGHTS)[0](pieces, rng)
    whole = file_header(rng.choice((1,) * 30 + (0, 2, 2**32 - 1))) + b"".join(piece.enveloped() for piece in pieces)
    return _flipped(whole, rng) if rng.random() < 0.1 else whole


def _flipped(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped here and there without a right check; or cut off, or lengthened."""
    changed = bytearray(data)
    for at in range(rng.randrange(2_000), len(changed), rng.choice((50, 500, 5_000))):
        changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed[: rng.choice((None, None, rng.randrange(len(changed) + 1)))]) + rng.choice((b"", bytes(500)))


def change_a_head(pieces: list[ListedSegment], rng: random.Random) -> None:
    piece = _any(pieces, rng)
    head = _parsed(pb.Head, piece.head)
    for _ in range(rng.choice((1, 1, 3))):
        change(head, rng)
    piece.head = _serialized(head, rng)


def change_a_layout(pieces: list[ListedSegment], rng: random.Random) -> None:
    piece, head = _of_kind(pieces, "frame", rng)
    layout = _parsed(pb.Layout, _inflated(head.frame.layout))
    change(layout, rng)
    head.frame.layout = zlib.compress(_serialized(layout, rng))
    piece.head = head.SerializeToString()


def change_a_graph(pieces: list[ListedSegment], rng: random.Random) -> None:
    piece, head = _of_kind(pieces, "graph", rng)
    graph = _parsed(pb.GraphBody, _inflated(piece.body))
    for _ in range(rng.choice((1, 1, 5))):
        change(graph, rng)
    piece.body = zlib.compress(_serialized(graph, rng))
    head.graph.check = crc32(piece.body)
    piece.head = head.SerializeToString()


def change_rows(pieces: list[ListedSegment], rng: random.Random) -> None:
    """Change words of a frame's table, or its histograms, and then make the rows' checks right."""
    piece, head = _of_kind(pieces, "frame", rng)
    layout = _parsed(pb.Layout, _inflated(head.frame.layout))
    size = 4 * (len(layout.statistics) + 3)
    body = bytearray(piece.body)
    for _ in range(rng.choice((1, 3, 10)) if body else 0):
        at = rng.randrange(len(body)) // 4 * 4
        body[at : at + 4] = rng.choice(
            (struct.pack("<f", _float32(rng)), struct.pack("<I", rng.choice(WHOLE) % 2**32), rng.randbytes(4))
        )
    table = min(layout.rows, len(body) // size, 10_000) * size
    for at in range(0, table, size):
        start, length = struct.unpack_from("<II", body, at + size - 12)
        packed = bytes(body[table + start : table + start + length])
        struct.pack_into("<I", body, at + size - 4, crc32(packed, crc32(bytes(body[at : at + size - 4]))))
    piece.body = bytes(body)


def change_scalars(pieces: list[ListedSegment], rng: random.Random) -> None:
    """Change numbers of a block of scalars, or how many there are, and then make its check right."""
    piece, head = _of_kind(pieces, "logged", rng)
    body = bytearray(piece.body)
    for _ in range(rng.choice((1, 3, 10)) if len(body) >= 8 else 0):
        at = rng.randrange(len(body) - 7)
        body[at : at + 8] = rng.choice(
            (struct.pack("<d", rng.choice(REAL)), struct.pack("<Q", rng.choice(WHOLE)), rng.randbytes(8))
        )
    piece.body = bytes(body)
    head.logged.check = crc32(piece.body)
    if rng.random() < 0.3:
        change(head.logged, rng)
    piece.head = _serialized(head, rng)


def plant_a_bomb(pieces: list[ListedSegment], rng: random.Random) -> None:
    """Add a record that is small, and would be large."""
    size = rng.choice((1 << 16, 1 << 20, 1 << 22))
    count = rng.choice((1, 1, 20))
    for number in range(count):
        pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(BOMBS)(size // count, number, rng))


def _graph_bomb(size: int, number: int, rng: random.Random) -> ListedSegment:
    unit = rng.choice(
        (
            b"\x0a\x00",
            b"\x12\x00",
            b"\x1a\x00",
            b"\x22\x00",
            b"\x12\x02\x22\x00",
            b"\x0a\x02\x22\x00",
            b"\x22\x04\x08\x01\x10\x02",
            b"\0",
        )
    )
    long = rng.choice((_sized(b"\x0a" + _sized(b"x" * size)), _sized(b"\x22\x00" * (size // 2))))
    content = unit * (size // len(unit)) if rng.random() < 0.7 else b"\x0a" + long
    body = zlib.compress(content, 9)
    head = pb.Head(graph=pb.Graph(id=number, check=crc32(body)))
    return ListedSegment(head.SerializeToString(), body)


def _layout_bomb(size: int, number: int, rng: random.Random) -> ListedSegment:
    count = size // 2
    layout = rng.choice(
        (
            pb.Layout(series=[1] * count, row=[0] * count, rows=1, statistics=["min"]),
            pb.Layout(series=[0] * count, row=[0] * count, rows=1),
            pb.Layout(series=[1] * count, row=[1] * count, rows=2**32 - 1),
            pb.Layout(statistics=[""] * count, rows=2**31),
            pb.Layout(series=[0], row=[0], rows=2**32 - 1, statistics=["min"] * 200),
        )
    )
    frame = pb.Frame(step=1_000 + number, layout=zlib.compress(layout.SerializeToString(), 9))
    return ListedSegment(pb.Head(frame=frame).SerializeToString(), bytes(rng.choice((0, 16, 1_000))))


def _series_bomb(size: int, number: int, rng: random.Random) -> ListedSegment:
    if rng.random() < 0.5:
        return ListedSegment(b"\x1a" + _sized(b"\x0a\x00" * min(size // 2, 1 << 15)))
    one = pb.Series(id=2**24 - number, module="x", role=pb.Series.INPUT, kind=pb.Series.VALUE)
    return ListedSegment(pb.Head(series=pb.SeriesAdded(series=[one])).SerializeToString())


def _row_bomb(_size: int, number: int, rng: random.Random) -> ListedSegment:
    """Many rows that all have the same, longest histogram."""
    packed = bytes([*([255, 255, 255, 255, 15] * 2039)])[: rng.choice((10_195, 1_000_000))] * rng.choice((1, 1, 2))
    rows = 64
    words = struct.pack("<II", 0, len(packed))
    table = (words + struct.pack("<I", crc32(packed, crc32(words)))) * rows
    layout = pb.Layout(series=[1] * 4, row=[0, 1, 1, 1], rows=rows)
    frame = pb.Frame(step=2_000 + number, layout=zlib.compress(layout.SerializeToString()))
    return ListedSegment(pb.Head(frame=frame).SerializeToString(), table + packed)


def _session_bomb(_size: int, number: int, rng: random.Random) -> ListedSegment:
    session = pb.Session(
        id=f"{number}", model=rng.choice(("net", f"{number}")), rank=rng.choice(WHOLE) % 2**32, world_size=2**32 - 1
    )
    return ListedSegment(pb.Head(segment=pb.Segment(version=1, session=session)).SerializeToString())


BOMBS = (_graph_bomb, _layout_bomb, _series_bomb, _row_bomb, _session_bomb)


def move_records(pieces: list[ListedSegment], rng: random.Random) -> None:
    """Leave some out, repeat some, or let them change places."""
    at, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    match rng.randrange(4):
        case 0:
            del pieces[at : at + rng.choice((1, 2, 5))]
            pieces.append(ListedSegment(b""))
        case 1:
            pieces[at:at] = [ListedSegment(pieces[other].head, pieces[other].body)] * rng.choice((1, 3, 100))
        case 2:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case _:
            pieces[at].body, pieces[other].body = pieces[other].body, pieces[at].body


def change_a_header(pieces: list[ListedSegment], rng: random.Random) -> None:
    """A right header with sizes that are not."""
    sizes = [rng.choice((0, 1, 8, 24, 1_000, 2**25, 2**25 + 1, 2**31, 2**32 - 8, 2**32 - 1)) for _ in range(2)]
    start = MARKER + struct.pack("<III", *sizes, rng.choice((0, crc32(b""))))
    piece = _any(pieces, rng)
    piece.raw = start + struct.pack("<I", crc32(start)) + rng.choice((b"", piece.head + piece.body, bytes(64)))


def change_a_body(pieces: list[ListedSegment], rng: random.Random) -> None:
    piece = _any(pieces, rng)
    piece.body = rng.choice((b"", piece.body[: rng.randrange(len(piece.body) + 1)], piece.body * 3, rng.randbytes(300)))
    head = _parsed(pb.Head, piece.head)
    if head.HasField("graph"):
        head.graph.check = crc32(piece.body)
        piece.head = head.SerializeToString()


def add_a_frame(pieces: list[ListedSegment], rng: random.Random) -> None:
    """A frame again, at another step, of another graph, at another time."""
    piece, head = _of_kind(pieces, "frame", rng)
    head.frame.step = rng.choice(WHOLE)
    head.frame.graph = rng.choice(WHOLE) % 2**32
    head.frame.time = rng.choice(REAL)
    head.frame.clock = rng.choice(REAL)
    head.frame.gradient_scale = rng.choice(REAL)
    pieces.insert(rng.randrange(len(pieces) + 1), ListedSegment(head.SerializeToString(), piece.body))


CHANGES: Sequence[Callable[[list[ListedSegment], random.Random], None]] = (
    change_a_head,
    change_a_layout,
    change_a_graph,
    change_rows,
    plant_a_bomb,
    move_records,
    change_a_header,
    change_a_body,
    add_a_frame,
    change_scalars,
)
WEIGHTS = (6, 4, 6, 4, 3, 3, 1, 2, 3, 4)


def change(message: Message, rng: random.Random) -> None:
    """Change one field, somewhere in `message`."""
    inner: list[tuple[FieldDescriptor, Any]] = [
        (field, value) for field, value in message.ListFields() if field.type == FieldDescriptor.TYPE_MESSAGE
    ]
    if not inner or rng.random() < 0.2:
        fields: list[Any] = list(message.DESCRIPTOR.fields)
        _change_field(message, rng.choice(fields), rng)
        return
    field, value = rng.choice(inner)
    if _is_map(field):
        _change_map(value, field, rng)
    elif not field.is_repeated:
        change(value, rng)
    elif rng.random() < 0.7:
        change(rng.choice(value), rng)
    else:
        _change_list(value, rng)


def _change_field(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    value = getattr(message, field.name)
    if _is_map(field):
        _change_map(value, field, rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE and field.is_repeated:
        change(value.add(), rng)
    elif field.type == FieldDescriptor.TYPE_MESSAGE and rng.random() < 0.5:
        value.SetInParent()
    elif field.is_repeated:
        _change_list(value, rng, lambda: _scalar(field, rng))
    elif field.type == FieldDescriptor.TYPE_MESSAGE or rng.random() < 0.15:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _scalar(field, rng))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _change_map(values: Any, field: FieldDescriptor, rng: random.Random) -> None:
    """Add an entry, or replace one. Keys are texts in all our maps."""
    entry: Any = field.message_type
    values[rng.choice([*TEXT, *values])] = _scalar(entry.fields_by_name["value"], rng)


def _change_list(values: Any, rng: random.Random, new: Callable[[], Any] | None = None) -> None:
    if new is not None and (not values or rng.random() < 0.5):
        values.extend([new()] * rng.choice((1, 1, 3, 2_000)))
        return
    at, other = rng.randrange(len(values)), rng.randrange(len(values))
    kept = list(values)
    match rng.randrange(4):
        case 0:
            del kept[at : at + rng.choice((1, 1, 3))]
        case 1:
            kept[at:at] = [kept[other]] * rng.choice((1, 2, 500))
        case 2:
            kept[at], kept[other] = kept[other], kept[at]
        case _:
            kept.reverse()
    copies = [type(one).FromString(one.SerializeToString()) if isinstance(one, Message) else one for one in kept]
    del values[:]
    values.extend(copies)


def _scalar(field: FieldDescriptor, rng: random.Random) -> Any:
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return rng.choice(REAL)
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(TEXT)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice((b"", b"x", zlib.compress(b""), rng.randbytes(50)))
    low, stop = INTEGERS[field.type]
    near = rng.randrange(-3, 12)
    number = rng.choice((rng.choice(SIGNED), near, near))
    return min(max(number, low), stop - 1)


def _float32(rng: random.Random) -> float:
    value = rng.choice((*REAL, 3e38, -3e38, 1e-40, -5.0))
    return value if not math.isfinite(value) else max(min(value, 3.4e38), -3.4e38)


def _any(pieces: list[ListedSegment], rng: random.Random) -> ListedSegment:
    return rng.choice(pieces)


def _of_kind(pieces: list[ListedSegment], kind: str, rng: random.Random) -> tuple[ListedSegment, Any]:
    """A record of this kind, and its head; if there is none any more, one that is in no segment."""
    heads = [(piece, _parsed(pb.Head, piece.head)) for piece in pieces]
    found = [(piece, head) for piece, head in heads if head.WhichOneof("record") == kind]
    if found:
        return rng.choice(found)
    head = pb.Head()
    getattr(head, kind).SetInParent()
    return ListedSegment(b""), head


def _parsed(kind: Any, data: bytes) -> Any:
    """`data` as a message; an empty one if it is none."""
    try:
        return kind.FromString(data)
    except Exception:
        return kind()


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, 1 << 20)
    except zlib.error:
        return b""


def _serialized(message: Message, rng: random.Random) -> bytes:
    content = message.SerializeToString()
    return content + rng.choice(UNKNOWN) if rng.random() < 0.05 else content


def _sized(content: bytes) -> bytes:
    """`content` after its length, as in a field."""
    size, begin = len(content), bytearray()
    while size >= 0x80:
        begin.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*begin, size]) + content
