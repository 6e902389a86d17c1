"""A byte is flipped every few kilobytes, as a disk or a transfer does it: only what was hit is lost."""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.record.examples import GRAPH, SESSION, frame, quietly, segment, write
from tests.record.long_runs import graph_of
from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import MARKER
from torchgraph_explorer.record.graphs.encoding import encode_graph
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.schema import STATISTICS, Series

pytestmark = pytest.mark.slow

MANY = 300
SERIES = tuple(
    Series(at, f"stages.{at // 7}.blocks.{at}.attention", 0, "output", "output", "value") for at in range(MANY)
)
STEPS = 20
ROW = 4 * (len(STATISTICS) + 3)


class Stretch(NamedTuple):
    """Bytes that one row of one frame cannot do without."""

    step: int
    row: int
    parts: tuple[tuple[int, int], ...]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write(tmp_path, GRAPH, SERIES, *(frame(step, series=range(MANY)) for step in range(STEPS)))
    return tmp_path


def records(data: bytes) -> list[int]:
    """Where the records of a sound segment begin."""
    return [match.start() for match in re.finditer(re.escape(MARKER), data)]


def rows(data: bytes) -> Iterator[Stretch]:
    """What each row of each frame depends on: the frame's header and head, the row, and its histogram."""
    for at in records(data):
        head_size, body_size = struct.unpack_from("<II", data, at + 8)
        head = pb.Head.FromString(data[at + 24 : at + 24 + head_size])
        if head.WhichOneof("record") != "frame":
            continue
        body, count = at + -(-(24 + head_size) // 8) * 8, MANY - 1
        for row in range(count):
            words = body + ROW * row
            start, size = struct.unpack_from("<II", data, words + ROW - 12)
            packed = body + ROW * count + start
            assert packed + size <= body + body_size
            parts = ((at, at + 24 + head_size), (words, words + ROW), (packed, packed + size))
            yield Stretch(head.frame.step, row, parts)


@pytest.mark.parametrize("seed", range(4))
def test_damage_every_five_kilobytes_costs_what_it_hits(seed: int, run: Path) -> None:
    file, rng = segment(run), np.random.default_rng(seed)
    data = bytearray(file.read_bytes())
    hits = np.arange(0, len(data) - 5_000, 5_000) + rng.integers(0, 5_000)
    sound = {
        (one.step, one.row)
        for one in rows(bytes(data))
        if not any(((hits >= a) & (hits < b)).any() for a, b in one.parts)
    }
    for hit in hits:
        data[hit] ^= 1 << rng.integers(8)
    file.write_bytes(data)
    assert 0 < len(sound) < STEPS * (MANY - 1)
    assert found(run) == sound


def found(run: Path) -> set[tuple[int, int]]:
    """Step and row of everything that the histories have; the first two series share a row."""
    model = quietly(run).model()
    assert model.graphs == (GRAPH,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        return {
            (step, max(int(one.module.split(".")[3]) - 1, 0))
            for one in model.series
            for step in model.history(one).steps.tolist()
        }


def test_a_graph_that_is_damaged_in_every_copy_is_made_whole(tmp_path: Path) -> None:
    large = graph_of(4_000)
    write(tmp_path, large, SERIES, *(frame(step, series=range(MANY)) for step in range(2 * STEPS)))
    file, rng = segment(tmp_path), np.random.default_rng(0)
    data = bytearray(file.read_bytes())
    for hit in np.arange(0, len(data) - 5_000, 5_000) + rng.integers(0, 5_000):
        data[hit] ^= 255
    file.write_bytes(data)
    assert len(encode_graph(large)[1]) > 10_000
    assert quietly(tmp_path).model().graphs == (large,)


def test_what_frames_depend_on_is_written_again_now_and_then(run: Path) -> None:
    data = segment(run).read_bytes()
    kinds = [kind for kind, _ in heads(data)]
    first = kinds.index("frame")
    again, at_first = kinds[first:].count("series"), kinds[:first].count("series")
    assert (again // (at_first // 2), again % (at_first // 2)) == (kinds[first:].count("graph"), 0)
    assert kinds[first:].count("graph") >= 2
    assert sum(size for kind, size in heads(data) if kind != "frame") < 0.1 * len(data)
    assert quietly(run).warnings == ()


def test_a_run_whose_first_definitions_are_all_lost_is_read_by_later_ones(run: Path) -> None:
    file = segment(run)
    data = bytearray(file.read_bytes())
    places = records(bytes(data))
    kinds = [kind for kind, _ in heads(bytes(data))]
    for at, kind in zip(places[: kinds.index("frame")], kinds, strict=False):
        if kind in ("graph", "series"):
            data[at : at + 8] = bytes(8)
    file.write_bytes(data)
    model = quietly(run).model()
    assert (set(model.series), len(model), model.graphs) == (set(SERIES), STEPS, (GRAPH,))


def heads(data: bytes) -> Iterator[tuple[str, int]]:
    """The kind and size of each record."""
    places = records(data)
    for at, end in zip(places, [*places[1:], len(data)], strict=True):
        (size,) = struct.unpack_from("<I", data, at + 8)
        yield str(pb.Head.FromString(data[at + 24 : at + 24 + size]).WhichOneof("record")), end - at


def test_definitions_that_could_not_be_written_come_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(SESSION)
    with monkeypatch.context() as patch:
        patch.setattr("torchgraph_explorer.record.segments.LocalSegments.put", refuse)
        with pytest.warns(TorchgraphWarning, match="No space"):
            writer.write(SERIES)
    for step in range(STEPS):
        writer.write(frame(step, series=range(MANY)))
    writer.close()
    assert MARKER in segment(tmp_path).read_bytes()
    assert len(quietly(tmp_path).model().history(5)) == STEPS


def refuse(*_: object) -> None:
    raise OSError(28, "No space left on device")
