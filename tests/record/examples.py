"""Small records to write and read back, the helpers to compare them, and a folder to keep them in."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from torchgraph_explorer.errors import TorchgraphWarning
from torchgraph_explorer.finding import Band, Finding, Found, RuleFindings
from torchgraph_explorer.histogram import Histograms, bucket_of
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import MARKER, enveloped
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Run, open_run
from torchgraph_explorer.schema import (
    STATISTICS,
    Call,
    Edge,
    Finished,
    Frame,
    Logged,
    Module,
    ModuleGraph,
    Node,
    Record,
    Series,
    Session,
    StepNote,
    TensorInfo,
)

SESSION = Session(
    id="5f1a",
    model="net",
    class_name="ResNet",
    created=1_000.5,
    host="laptop",
    pid=77,
    versions={"torch": "2.13.0", "python": "3.11.7"},
    log=("io", "params"),
    log_freq="50",
    sample_n=None,
    bins=64,
    reject_outlier_proportion=0.1,
    clock="epoch",
)

WEIGHT = TensorInfo("weight", (3, 4), "float32", True)
IMAGE = TensorInfo("input['image']", (None, 4), "bfloat16", False, ((32, 7),))
LOGITS = TensorInfo("output", (), "float32", True)

GRAPH = ModuleGraph(
    id=0,
    first_step=10,
    modules=(
        Module("", "ResNet", "net.ResNet", (), (), 0, 12, 12),
        Module("fc", "Linear", "torch.nn.Linear", (("", "4"), ("bias", "False")), (WEIGHT,), 12, 12, 0, ("input",)),
    ),
    calls=(Call("", 0, None, (IMAGE,), (LOGITS,)), Call("fc", 0, 0, (IMAGE,), ()), Call("fc", 1, 0, (), (LOGITS,))),
    nodes=(
        Node("call", None, call=0),
        Node("input", 0, tensor=IMAGE),
        Node("call", 0, call=1),
        Node("attached", 0, tensor=WEIGHT),
        Node("call", 0, call=2),
        Node("output", 0, tensor=LOGITS),
    ),
    edges=(
        Edge(1, 2, False),
        Edge(2, 4, True, (("fc", 1, "output", "output", "grad_norm"), ("", 0, "edge", "fc -> fc#2", "grad_norm"))),
        Edge(4, 5, True),
    ),
)

SERIES = (
    Series(0, "", 0, "input", "input['image']", "value"),
    Series(1, "fc", 1, "output", "output", "grad_norm"),
    Series(2, "fc", None, "param", "weight", "grad"),
    Series(3, "", 0, "attached", "middle", "value"),
)


_ROOT = Finding(
    kind="rate-too-high",
    severity="error",
    step=3,
    last_step=5,
    evidence={"rate": 0.5, "ratio": float("inf")},
    text="The rate is\n0.5.",
    advice="Divide it.",
)
FOUND = Found(
    2_500.0,
    (
        RuleFindings(
            "grows",
            (
                _ROOT,
                Finding(
                    kind="too-large",
                    module="fc",
                    call=0,
                    path="output",
                    step=4,
                    text="Large.",
                    causes=(_ROOT,),
                    band=Band("rms", "grad", high=2.0),
                ),
            ),
        ),
        RuleFindings("quiet", ()),
    ),
)
"""What two rules of a user's found, one of them nothing."""


def frame(step: int, *, series: Iterable[int] = (0, 1, 2, 3), graph: int | None = 0, seed: int | None = None) -> Frame:
    """A frame of random numbers; the first two of its series share a row."""
    ids = np.array(list(series), dtype=np.uint32)
    rows = np.maximum(np.arange(len(ids), dtype=np.int64) - 1, 0).astype(np.uint32)
    rng = np.random.default_rng(step if seed is None else seed)
    count = int(rows.max()) + 1 if len(rows) else 0
    statistics = rng.standard_normal((count, len(STATISTICS))).astype(np.float32)
    return Frame(step, 2_000.0 + step, step / 4, graph, ids, rows, statistics, histograms(count, rng))


def clean(step: int, **counts: float) -> Frame:
    """A frame of finite numbers, but for `counts` in its last row."""
    one = frame(step)
    statistics = np.abs(one.statistics)
    statistics[:, [STATISTICS.index(name) for name in ("nan", "positive_infinity", "negative_infinity")]] = 0
    for name, count in counts.items():
        statistics[-1, STATISTICS.index(name)] = count
    return replace(one, statistics=statistics)


def histograms(rows: int, rng: np.random.Generator) -> Histograms:
    """One row after the other: of a hundred values, of none, of a million zeros, and so on."""
    found = []
    for row in range(rows):
        values = rng.standard_normal((100, 0, 50)[row % 3]).astype(np.float32) * np.float32(10.0 ** (row % 9))
        buckets, counts = np.unique(bucket_of(values), return_counts=True)
        found.append((buckets, counts * 1_000_003 if row % 3 == 2 else counts))
    offsets = np.cumsum([0, *(len(buckets) for buckets, _ in found)]).astype(np.uint32)
    buckets = np.concatenate([np.zeros(0, np.int16), *(buckets for buckets, _ in found)]).astype(np.int16)
    counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in found)])
    return Histograms(offsets, buckets, counts.astype(np.uint32))


def write(
    run_dir: Path | str, *records: Record | Found, session: Session = SESSION, segment_bytes: int | None = None
) -> None:
    """Write a session of these records."""
    writer = RecordWriter(run_dir, segment_bytes=segment_bytes)
    for record in (session, *records):
        writer.write(record)
    writer.close()


def write_small_run(run_dir: Path | str) -> None:
    """A session with one of everything and three frames."""
    write(run_dir, GRAPH, SERIES, frame(0), frame(10), frame(20), Finished(3_000.0, ("Nothing was lost.",)))


def logged(steps: list[int], *, notes: tuple[StepNote, ...] = (), **values: list[float]) -> Logged:
    """The scalars `values`, each with a value at each of `steps`."""
    names = tuple(values)
    count = len(steps)
    return Logged(
        names=names,
        name=np.tile(np.arange(len(names), dtype=np.uint32), count),
        steps=np.repeat(np.array(steps, dtype=np.int64), len(names)),
        times=np.repeat(2_000.0 + np.array(steps, dtype=np.float64), len(names)),
        values=np.array(list(values.values()), dtype=np.float64).T.ravel(),
        notes=notes,
    )


def labelled(label: str | None, one: Logged) -> Logged:
    """The same, logged with a label."""
    return replace(one, labels=() if label is None else (label,) * len(one.names))


def other_session(name: str, **changes: object) -> Session:
    """Another session of the same model, unless `changes` say otherwise."""
    return replace(SESSION, id=name, **changes)  # type: ignore[arg-type]


def segment(run_dir: Path, number: int = 0) -> Path:
    """A segment file of a run."""
    return run_dir / "plugins" / "torchgraph" / f"{number:06d}.tgraph"


def facts(one: Frame) -> tuple[object, ...]:
    """A frame as a value that `==` compares, NaN included."""
    numbers = (one.series, one.rows, one.statistics, *_parts(one.histograms))
    return (
        one.step,
        one.time,
        one.clock,
        one.graph,
        one.facts,
        *((part.dtype.str, part.tobytes()) for part in numbers),
    )


def histogram_facts(one: Histograms) -> tuple[bytes, ...]:
    """Histograms as a value that `==` compares."""
    return tuple(part.tobytes() for part in _parts(one))


def _parts(one: Histograms) -> tuple[npt.NDArray[np.generic], ...]:
    return (one.offsets, one.buckets, one.counts)


def records(data: bytes) -> list[int]:
    """Where the records of a sound segment begin."""
    return [at for at in range(len(data)) if data.startswith(MARKER, at)]


def rebound(body: bytes, rows: int, words: int, *, was: int | None, now: int | None) -> bytes:
    """A body with a table of `rows` rows of so many `words`, for the head with the crc32 `now` in place of `was`."""
    table = np.frombuffer(body, "<u4", rows * words).reshape(rows, words).copy()
    for head in (was, now):
        if head is not None:
            table[:, -1] ^= (np.arange(rows) + head).astype(np.uint32)
    return table.tobytes() + body[table.nbytes :]


def frame_record(frame: pb.Frame, body: bytes, rows: int, columns: int = len(STATISTICS)) -> bytes:
    """The record of a frame, of which `body` was made for the head with the crc32 0."""
    head = pb.Head(frame=frame).SerializeToString()
    return enveloped(head, rebound(body, rows, columns + 3, was=0, now=crc32(head)))


def flip(path: Path, byte: int, bit: int = 0) -> None:
    """Flip a bit of a file, in place: to write a file anew takes some systems much longer."""
    with path.open("r+b", buffering=0) as file:
        file.seek(byte)
        (value,) = file.read(1)
        file.seek(byte)
        file.write(bytes([value ^ 1 << bit]))


def quietly(path: Path) -> Run:
    """Open a run, keeping its warnings to itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        return open_run(path)
