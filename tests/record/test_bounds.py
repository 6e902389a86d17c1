"""Small files that would be large or slow to read, and large honest ones: docs/format.md, Bounds."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, frame, other_session, quietly, segment, write
from tests.record.fuzzing import within_bounds
from tests.record.long_runs import graph_of
from tests.record.reading import read_everything
from tests.tables import exhaustive
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import MARKER, enveloped
from torchgraph_explorer.record.graphs.encoding import encode_graph
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import Edge, Module, ModuleGraph, Series, TensorInfo

pytestmark = pytest.mark.slow

MOST_FILE = 700_000
"""Bytes of a crafted file."""

LARGE = 80_000_000
"""What the crafted ones would come to, which is beyond the bound of a graph."""


def graph(unit: bytes, *, size: int = LARGE, begin: bytes = b"", number: int = 0) -> bytes:
    """A graph of `begin` and then `unit` again and again."""
    packer = zlib.compressobj(9)
    some = unit * ((1 << 16) // len(unit))
    body = packer.compress(begin) + b"".join(packer.compress(some) for _ in range(size // len(some))) + packer.flush()
    return enveloped(pb.Head(graph=pb.Graph(id=number, check=crc32(body))).SerializeToString(), body)


def graphs(unit: bytes, count: int) -> bytes:
    return b"".join(graph(unit, size=LARGE // count, number=number) for number in range(count))


def tensors(unit: bytes, size: int) -> bytes:
    """Calls with as many tensors as fit."""
    inner = unit * (size // len(unit))
    return graph(b"\x12" + varint(len(inner)) + inner)


def varint(number: int) -> bytes:
    parts = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(part | 0x80 for part in parts[:-1]), parts[-1]])


def fan() -> bytes:
    """A graph of 200 nodes, every one of which goes to every later one beyond the next."""
    count = 200
    edges = tuple(Edge(a, b, False) for a in range(1, count) for b in range(a + 2, count + 1))
    head, body = encode_graph(replace(graph_of(count), edges=edges))
    return enveloped(pb.Head(graph=head).SerializeToString(), body)


def edges() -> bytes:
    """A graph of as many edges as there may be in so many bytes, beside as many nodes."""
    rng = np.random.default_rng(0)
    count = 20_000
    ends = np.sort(rng.integers(1, count, (count, 2)), axis=1).tolist()
    head, body = encode_graph(replace(graph_of(count), edges=tuple(Edge(a, b, False) for a, b in ends)))
    return enveloped(pb.Head(graph=head).SerializeToString(), body)


def frames(layouts: Iterator[pb.Layout]) -> bytes:
    return b"".join(
        enveloped(frame_head(number, zlib.compress(layout.SerializeToString(), 9)), bytes(64))
        for number, layout in enumerate(layouts)
    )


def frame_head(number: int, layout: bytes, **fields: Any) -> bytes:
    return pb.Head(frame=pb.Frame(step=100 + number, layout=layout, **fields)).SerializeToString()


def large_layout() -> bytes:
    """A frame whose layout would have 40 million series."""
    packer, count = zlib.compressobj(9), LARGE // 2
    packed = b"".join(
        packer.compress(piece) for field in (b"\x0a", b"\x12") for piece in (field + varint(count), *blocks(count))
    )
    return enveloped(frame_head(0, packed + packer.flush()), bytes(64))


def blocks(count: int) -> Iterator[bytes]:
    """So many zeros."""
    for at in range(0, count, 1 << 16):
        yield bytes(min(1 << 16, count - at))


def many_layouts(count: int = 60, series: int = 500_000) -> Iterator[pb.Layout]:
    layout = pb.Layout(series=[1] * (series + 1), row=[0] * (series + 1), rows=1)
    for number in range(count):
        layout.series[0] = number
        yield layout


SHOWN: dict[str, Any] = {"role": pb.Series.INPUT, "kind": pb.Series.VALUE}


def series(**fields: Any) -> bytes:
    one = pb.Series(**SHOWN, **fields)
    return enveloped(pb.Head(series=pb.SeriesAdded(series=[one])).SerializeToString())


def session(number: int) -> bytes:
    message = pb.Session(id=str(number), model="net", rank=number % 7, world_size=9)
    return enveloped(pb.Head(segment=pb.Segment(version=1, session=message)).SerializeToString())


def rows() -> bytes:
    """A frame of 8,000 rows, all of which have the same long histogram."""
    packed = bytes([255, 255, 255, 255, 15] * 2039)
    words = np.zeros((8_000, 15), dtype="<u4")
    words[:, 13] = len(packed)
    words[:, 14] = crc32(packed, crc32(words[0, :14].tobytes()))
    known = pb.Layout(series=[0], row=[0], rows=8_000, statistics=["min"] * 12)
    return enveloped(frame_head(0, zlib.compress(known.SerializeToString())), words.tobytes() + packed)


NOISE = b"\x7a" + varint(600_000) + random.Random(0).randbytes(600_000)
"""A field that is not known, of bytes that cannot be compressed: with them, much more may be."""

CRAFTED: dict[str, Callable[[], bytes]] = {
    "a graph of empty modules": lambda: graph(b"\x0a\x00"),
    "a graph of empty edges": lambda: graph(b"\x22\x00"),
    "a graph of a long name": lambda: graph(b"x", begin=b"\x0a" + varint(LARGE + 9) + b"\x0a" + varint(LARGE)),
    "a graph of empty tensors": lambda: tensors(b"\x22\x00", 60_000),
    "a graph of tensors of long shapes": lambda: tensors(b"\x22\xe8\x07\x12\xe5\x07" + b"\x02" * 997, 60_000),
    "a graph of fields that are not known": lambda: graph(b"\xfa\x01\x00"),
    "a graph as large as it may be": lambda: graph(b"\x12\x00", size=80_000_000, begin=NOISE),
    "many graphs of empty calls": lambda: graphs(b"\x12\x00", 1_000),
    "many graphs of empty nodes": lambda: graphs(b"\x1a\x02\x08\x09", 300),
    "a graph of very many edges": edges,
    "a graph in which all goes everywhere": fan,
    "a layout of very many series": large_layout,
    "many layouts of many series": lambda: frames(many_layouts()),
    "many layouts of few series": lambda: frames(many_layouts(4_000, 200)),
    "a layout of many columns": lambda: frames(iter([pb.Layout(series=[0], row=[0], statistics=["min"] * 10**7)])),
    "rows that share a histogram": rows,
    "high series ids": lambda: b"".join(series(id=2**24 - at, module=str(at)) for at in range(8_000)),
    "one high series id again and again": lambda: series(id=2**24) * 10_000,
    "empty series": lambda: enveloped(
        pb.Head(series=pb.SeriesAdded(series=[pb.Series()] * 300_000)).SerializeToString()
    ),
    "many series": lambda: enveloped(
        pb.Head(
            series=pb.SeriesAdded(series=[pb.Series(id=at, call=at, **SHOWN) for at in range(50_000)])
        ).SerializeToString()
    ),
    "many sessions": lambda: b"".join(map(session, range(8_000))),
    "frames of many graphs": lambda: b"".join(enveloped(frame_head(at, b"", graph=at)) for at in range(12_000)),
    "markers": lambda: MARKER * 80_000,
    "empty records": lambda: enveloped(b"") * 25_000,
    "damage everywhere": lambda: (enveloped(b"") + b"damage !") * 20_000,
    "records that are no messages": lambda: enveloped(b"\xff\xff\xff") * 20_000,
    "deep nesting": lambda: enveloped(b"\x0a\x80\x01" * 100_000),
}

EXPORTED = {"a graph as large as it may be", "a graph in which all goes everywhere", "many series"}
"""The largest that are read. The export of others reads them in the same way once more."""


FIRST = {
    "a graph of empty modules",
    "a graph of tensors of long shapes",
    "a graph in which all goes everywhere",
    "a layout of very many series",
    "many layouts of few series",
    "rows that share a histogram",
    "high series ids",
    "many sessions",
    "markers",
    "damage everywhere",
    "deep nesting",
}
"""Those that stand for the others: one of each kind of record, and of bytes that are none."""


@pytest.mark.parametrize("name", [name if name in FIRST else exhaustive(name) for name in CRAFTED])
def test_a_small_file_takes_little_memory_and_time(name: str, tmp_path: Path) -> None:
    content = CRAFTED[name]()
    assert len(content) < MOST_FILE
    write(tmp_path / "bad", GRAPH, SERIES, frame(0), frame(10))
    with segment(tmp_path / "bad").open("ab") as file:
        file.write(content)
    del content
    with within_bounds(name):
        read_everything(tmp_path, "bad", random.Random(0), export=name in EXPORTED)
        model = quietly(tmp_path / "bad").model()
    assert (model.series[:4], model.steps[:2].tolist()) == (SERIES, [0, 10])


def test_many_small_files_take_little_time(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / "bad", session=other_session(str(number), rank=number % 3, world_size=5))
    with within_bounds("many files"):
        read_everything(tmp_path, "bad", random.Random(0), export=False)


def layer(name: str) -> Module:
    facts = (("in_features", "1024"), ("out_features", "1024"), ("bias", "True"))
    params = tuple(TensorInfo(param, (1024, 1024), "float32", True) for param in ("weight", "bias"))
    return Module(name, "Linear", "torch.nn.modules.linear.Linear", facts, params, 1_049_600, 1_049_600, 1_049_600)


def large_graph(modules: int) -> ModuleGraph:
    """As of a Sequential of so many like modules: nothing compresses better."""
    bare = graph_of(modules)
    tensor = TensorInfo("input[0]", (None, 1024), "float32", True)
    return replace(
        bare,
        modules=(bare.modules[0], *(layer(str(at)) for at in range(modules))),
        calls=(
            bare.calls[0],
            *(replace(call, module=call.module[5:], inputs=(tensor,), outputs=(tensor,)) for call in bare.calls[1:]),
        ),
        edges=tuple(Edge(at, at + 1, True) for at in range(1, modules)),
    )


@pytest.mark.parametrize(
    ("modules", "kinds"),
    [
        pytest.param(1, 1, id="the smallest"),
        pytest.param(5_000, 1, id="5,000 modules"),
        exhaustive(pytest.param(10_000, 14, id="10,000 modules")),
    ],
)
def test_large_honest_records_are_read_whole(modules: int, kinds: int, tmp_path: Path) -> None:
    drawn = large_graph(modules)
    several = tuple(
        Series(at * kinds + kind, str(at), kind, "output", "output", "value")
        for at in range(modules)
        for kind in range(kinds)
    )
    one = frame(0, series=(0, 1))
    ids = np.arange(len(several), dtype=np.uint32)
    writer = RecordWriter(tmp_path / "run")
    for record in (other_session("one"), drawn, several, replace(one, series=ids, rows=np.zeros_like(ids))):
        writer.write(record)
    writer.close()
    run = quietly(tmp_path / "run")
    model = run.model()
    assert (model.graphs, model.series, run.warnings) == ((drawn,), several, ())
    assert model.frame(0).series.tolist() == ids.tolist()
    assert len(model.history(len(several) - 1)) == 1
