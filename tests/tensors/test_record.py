"""Kept tensors on disk: whatever happens to the bytes, in resumed runs, of several ranks, and what is uploaded."""

from __future__ import annotations

import random
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

from tests.kept import KeptArray, together
from tests.record.examples import GRAPH, SERIES, SESSION, frame, other_session, quietly, write_small_run
from tests.record.fuzzing import within_bounds
from tests.record.mutations import ListedSegment, change, heads_and_bodies, taken_apart
from torchgraph_explorer.errors import NotFoundError, RecordError, TorchgraphError, TorchgraphWarning
from torchgraph_explorer.printable import printable
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.folder import TENSORS, LocalFolder, plugin_folder
from torchgraph_explorer.record.format.envelope import DamageError, enveloped, file_header
from torchgraph_explorer.record.model_record import ModelRecord
from torchgraph_explorer.record.notices import Notices
from torchgraph_explorer.record.tensors import index
from torchgraph_explorer.record.tensors.blocks import ROW_BYTES
from torchgraph_explorer.record.tensors.encoding import decode_layout
from torchgraph_explorer.record.tensors.index import KeptIndex, OfRun
from torchgraph_explorer.record.tensors.reading import KeptInfo
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Model, open_run
from torchgraph_explorer.schema import (
    KeptStep,
    NamedTensor,
    Record,
    Series,
    Session,
    TensorEdge,
    TensorGraph,
)

MOST = 1 << 30
VALUE = ("fc", 0, "output", "output", "value")
GRADIENT = ("fc", 0, "output", "output", "grad_norm")
WEIGHT = ("fc", None, "param", "weight", "value")


def array(key: Any, values: np.ndarray[Any, Any], *, batch: int | None = None) -> KeptArray:
    """The array that keeps `values`, which are every second sample of a batch if that is given."""
    return KeptArray(
        key=key,
        dtype=str(values.dtype),
        shape=values.shape if batch is None else (batch, *values.shape[1:]),
        batch_dim=None if batch is None else 0,
        samples=() if batch is None else tuple(range(0, batch, 2)),
        values=np.frombuffer(values.tobytes(), np.uint8),
        statistics=None if batch is None else np.arange(3 * values[0].size, dtype=np.float32),
    )


def arrays(step: int) -> tuple[KeptArray, KeptArray, KeptArray]:
    rng = np.random.default_rng(step)
    values = rng.normal(size=(3, 4)).astype(np.float32)
    return (
        array(VALUE, values, batch=6),
        array(GRADIENT, values * 2, batch=6),
        array(WEIGHT, np.zeros((200, 300), np.float16)),
    )


def kept(step: int) -> KeptStep:
    return KeptStep(
        step,
        1_000.0 + step,
        None,
        together(*arrays(step)),
    )


def write(run: Path | str, *steps: KeptStep, session: Session = SESSION) -> None:
    writer = RecordWriter(run)
    records: list[Record] = [session, GRAPH, SERIES, *(frame(step.step) for step in steps)]
    for record in records:
        writer.write(record)
    for step in steps:
        writer.keep(step, MOST)
    writer.close()


def segment(run: Path, number: int = 0) -> Path:
    return plugin_folder(run, TENSORS) / f"{number:06d}.tgraph"


def series(key: Any) -> Series:
    return Series(-1, *key)


def assert_right(model: ModelRecord, step: int) -> None:
    expected = {one.key: one for one in arrays(step)}
    for key in (VALUE, WEIGHT):
        found = model.tensor(series(key), step)
        assert found.values.tobytes() == expected[key].values.tobytes()
        assert found.samples.tolist() == list(expected[key].samples)
        if key == VALUE:
            statistics = [each for each in (found.mean, found.std, found.largest) if each is not None]
            assert np.stack(statistics).ravel().tolist() == list(range(12))
            assert found.gradient is not None
            assert found.gradient.values.tobytes() == expected[GRADIENT].values.tobytes()


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path, kept(0), kept(10))
    model = open_run(tmp_path).model()
    assert model.kept.steps.tolist() == [0, 10]
    assert {one.key for one in model.kept.series} == {VALUE, GRADIENT, WEIGHT}
    assert segment(tmp_path).stat().st_size < 10_000, "zeros are compressed"
    for step in (0, 10):
        assert_right(model, step)


@pytest.mark.parametrize(
    ("remembered", "decoded"),
    [pytest.param(index.TENSORS_REMEMBERED, 2, id="both fit"), pytest.param(0, 6, id="only the latest fits")],
)
def test_layouts_that_alternate_are_decoded_once_each(
    remembered: int, decoded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        tmp_path,
        *(
            step if step.step % 2 else replace(step, arrays=together(*arrays(step.step)[:2]))
            for step in map(kept, range(6))
        ),
    )
    model, calls = open_run(tmp_path).model(), []

    def counted(layout: bytes) -> Any:
        calls.append(layout)
        return decode_layout(layout)

    monkeypatch.setattr(index, "decode_layout", counted)
    monkeypatch.setattr(index, "TENSORS_REMEMBERED", remembered)
    for step in range(6):
        assert model.tensor(series(VALUE), step).step == step
    assert len(calls) == decoded


TARGET = ("", None, "attached", "target", "value")
LOOP_GRAPH = TensorGraph(
    tensors=(
        NamedTensor("fc", None, "param", "weight", "parameter"),
        NamedTensor("fc", 1, "output", "output"),
        NamedTensor("", None, "attached", "target", "target"),
        NamedTensor("", 0, "attached", "head 3[1]", node="attention"),
    ),
    edges=(TensorEdge(0, 1, gradient=True), TensorEdge(1, 2, gradient=False)),
)


def test_what_the_loop_said_of_a_step_is_read(tmp_path: Path) -> None:
    target = array(TARGET, np.arange(3), batch=6)._replace(categories=("a", "b", "a"), kind="target")
    named = arrays(0)[1]._replace(loss="policy loss")
    step = replace(
        kept(0),
        arrays=together(*arrays(0), target, named),
        label="rare",
        reasons=("loss above 3",),
        graph=LOOP_GRAPH,
    )
    write(tmp_path, step, replace(step, step=10))
    model = open_run(tmp_path).model()
    assert model.labels == (None, None), "these frames have none"
    assert model.kept.labels == ("rare", "rare")
    found = model.kept_at(0)
    assert (found.label, found.reasons, found.ranks) == ("rare", ("loss above 3",), (0,))
    info: dict[Any, KeptInfo] = {one.series.key: one for one in found.tensors}
    assert list(info) == [VALUE, WEIGHT, TARGET]
    assert (info[VALUE].has_gradient, info[VALUE].losses) == (True, ("policy loss",))
    assert (info[TARGET].categories, info[TARGET].kind, info[TARGET].node) == (("a", "b", "a"), "target", "target")
    assert model.tensor(series(TARGET), 0).categories == ("a", "b", "a")
    gradients = model.tensor(series(VALUE), 0).gradients
    assert gradients["policy loss"].values.tobytes() == arrays(0)[1].values.tobytes()


def test_the_dependency_graph_is_read_with_every_kept_tensor(tmp_path: Path) -> None:
    write(tmp_path, replace(kept(0), graph=LOOP_GRAPH), replace(kept(1), graph=LOOP_GRAPH))
    for step in (0, 1):
        graph = open_run(tmp_path).model().tensor_graph(step)
        assert graph.tensors[:4] == LOOP_GRAPH.tensors
        assert graph.edges == LOOP_GRAPH.edges
        assert [node.key for node in graph.nodes] == ["fc:param", "fc@1", "target", "attention@0", "fc@0"]
    assert segment(tmp_path).read_bytes().count(b"head 3") == 0, "it is compressed"


def test_frames_have_labels(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    labels = ("rare", None, "rare\n")
    records: tuple[Record, ...] = (
        SESSION,
        GRAPH,
        SERIES,
        *(replace(frame(at), label=label) for at, label in enumerate(labels)),
    )
    for record in records:
        writer.write(record)
    writer.close()
    model = open_run(tmp_path).model()
    assert model.labels == tuple(label and printable(label) for label in labels)
    assert model.frame(0).label == "rare"


def test_opening_a_run_and_reading_frames_do_not_touch_kept_tensors(tmp_path: Path) -> None:
    write(tmp_path, kept(0))
    segment(tmp_path).write_bytes(b"what is this")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = open_run(tmp_path).model()
        model.frame(0)
        model.history(0)
    with pytest.warns(TorchgraphWarning, match="tensors/000000.tgraph"):
        assert model.kept.steps.tolist() == []


def test_a_dependency_graph_that_is_lost_is_told(tmp_path: Path) -> None:
    write(tmp_path, replace(kept(0), graph=LOOP_GRAPH))
    pieces = heads_and_bodies(segment(tmp_path).read_bytes())
    del pieces[2]
    segment(tmp_path).write_bytes(file_header() + b"".join(enveloped(*piece) for piece in pieces))
    model = quietly(tmp_path).model()
    with pytest.warns(TorchgraphWarning, match=r"tensors/000000.tgraph: the dependency graph of step 0 is lost"):
        graph = model.tensor_graph(0)
    assert (len(graph.tensors), graph.edges) == (2, ())
    assert_right(model, 0)


def test_a_torn_end_costs_the_torn_step_only(tmp_path: Path) -> None:
    write(tmp_path, kept(0), kept(1))
    whole = segment(tmp_path).read_bytes()
    first = len(whole) - len(taken_apart(whole)[-1].enveloped())
    for size in range(first, len(whole), 97):
        segment(tmp_path).write_bytes(whole[:size])
        model = open_run(tmp_path).model()
        assert model.kept.steps.tolist() == [0]
        assert_right(model, 0)


def test_steps_appear_while_they_are_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    records: list[Record] = [SESSION, GRAPH, SERIES, frame(0)]
    for record in records:
        writer.write(record)
    model = open_run(tmp_path).model()
    for step in range(3):
        writer.keep(kept(step), MOST)
        assert model.kept.steps.tolist() == list(range(step + 1))
        assert_right(model, step)
    writer.close()


@pytest.mark.slow
def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    write(tmp_path, kept(0), kept(1))
    whole = segment(tmp_path).read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        at = rng.randrange(len(whole))
        segment(tmp_path).write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        model = quietly(tmp_path).model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TorchgraphWarning)
            for step in (0, 1):
                for key in (VALUE, WEIGHT):
                    with suppress(NotFoundError, RecordError):
                        found = model.tensor(series(key), step)
                        expected = next(one for one in arrays(step) if one.key == key)
                        assert found.values.tobytes() == expected.values.tobytes()


def exchange_bodies(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    return other, one


def exchange_rows(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Of the values and of their gradient, which have the same shape."""
    return one, other[2 * ROW_BYTES : 4 * ROW_BYTES] + other[: 2 * ROW_BYTES] + other[4 * ROW_BYTES :]


@pytest.mark.parametrize(
    ("exchange", "lost"),
    [pytest.param(exchange_bodies, [0, 1], id="of steps"), pytest.param(exchange_rows, [1], id="of tensors")],
)
def test_elements_that_have_changed_places_are_not_shown(
    exchange: Callable[[bytes, bytes], tuple[bytes, bytes]], lost: list[int], tmp_path: Path
) -> None:
    write(tmp_path, kept(0), kept(1))
    *others, (one, first), (other, second) = heads_and_bodies(segment(tmp_path).read_bytes())
    first, second = exchange(first, second)
    pieces = (*others, (one, first), (other, second))
    segment(tmp_path).write_bytes(file_header() + b"".join(enveloped(*piece) for piece in pieces))
    model = quietly(tmp_path).model()
    for step in (0, 1):
        if step in lost:
            with pytest.raises(RecordError, match=f"at step {step} is damaged in .*Read another step"):
                model.tensor(series(VALUE), step)
        else:
            assert_right(model, step)


class Piece(NamedTuple):
    head: pb.Head
    layout: pb.TensorLayout
    body: bytearray


@pytest.mark.parametrize("seed", range(40))
def test_a_crafted_file_costs_neither_time_nor_memory(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    named = arrays(0)[0]._replace(categories=("a", "b", "a"), loss="the loss")
    steps = (replace(kept(step), graph=LOOP_GRAPH, arrays=together(*arrays(step), named)) for step in (0, 1))
    write(tmp_path, *steps)
    pieces = taken_apart(segment(tmp_path).read_bytes())
    change_graph(pieces[-3], rng)
    for at in (-1, -2):
        head = pb.Head.FromString(pieces[at].head)
        layout = pb.TensorLayout.FromString(zlib.decompress(head.tensors.layout))
        body = bytearray(pieces[at].body)
        for _ in range(rng.choice((1, 3))):
            rng.choice((change_layout, change_head, change_table, multiply))(Piece(head, layout, body), rng)
        with suppress(ValueError):  # what no message can hold
            head.tensors.layout = zlib.compress(layout.SerializeToString())
        pieces[at].head, pieces[at].body = head.SerializeToString(), bytes(body)
    segment(tmp_path).write_bytes(file_header() + b"".join(one.enveloped() for one in pieces))
    with within_bounds(f"seed {seed}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", TorchgraphWarning)
        model = open_run(tmp_path).model()
        found = model.kept
        for step in found.steps[:4]:
            for one in found.series[:20]:
                with suppress(TorchgraphError):
                    assert repr(model.tensor(one, int(step)))
            assert repr(model.kept_at(int(step)))
            assert len(model.tensor_graph(int(step)).nodes) >= 0


def change_graph(piece: ListedSegment, rng: random.Random) -> None:
    """Another dependency graph, with the right check."""
    head = pb.Head.FromString(piece.head)
    body = pb.TensorGraphBody.FromString(zlib.decompress(piece.body))
    for _ in range(rng.choice((0, 1, 3))):
        change(body, rng)
    if rng.random() < 0.3:
        body.tensors.extend([pb.NamedTensor()] * rng.choice((1_000, 70_000)))
    with suppress(ValueError):
        piece.body = zlib.compress(body.SerializeToString())
    head.tensor_graph.check = crc32(piece.body)
    if rng.random() < 0.3:
        change(head.tensor_graph, rng)
    piece.head = head.SerializeToString()


def change_layout(piece: Piece, rng: random.Random) -> None:
    change(piece.layout, rng)


def change_head(piece: Piece, rng: random.Random) -> None:
    change(piece.head.tensors, rng)


def change_table(piece: Piece, rng: random.Random) -> None:
    """Other places and sizes, with right checks."""
    row = rng.randrange(6) * ROW_BYTES
    words = np.frombuffer(bytes(piece.body[row : row + ROW_BYTES]), "<u4").copy()
    words[rng.randrange(2)] = rng.choice((0, 1, 8, 100, 2**31, 2**32 - 1))
    start = 6 * ROW_BYTES + int(words[0])
    data = bytes(piece.body[start : start + int(words[1])])
    words[2] = crc32(data, crc32(words[:2].tobytes()))
    piece.body[row : row + ROW_BYTES] = words.tobytes()


def multiply(piece: Piece, rng: random.Random) -> None:
    """Very many tensors, dimensions or samples."""
    match rng.randrange(3):
        case 0 if piece.layout.tensors and piece.layout.ByteSize() < 1_000:
            piece.layout.tensors.extend([piece.layout.tensors[0]] * rng.choice((1_000, 70_000)))
        case 1 if piece.layout.tensors:
            piece.layout.tensors[0].shape.extend([1] * rng.choice((60, 10_000)))
        case _ if piece.layout.tensors:
            piece.layout.tensors[0].shape[:] = [rng.choice((0, 2**40, 2**63)), rng.choice((0, 4, 2**40))]


def test_a_later_session_replaces_the_steps_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, kept(0), kept(1), kept(2))
    changed = replace(kept(7), step=1)
    write(tmp_path, changed, session=other_session("later", created=5_000.0))
    model = open_run(tmp_path).model()
    assert model.kept.steps.tolist() == [0, 1, 2]
    assert model.tensor(series(VALUE), 1).values.tobytes() == arrays(7)[0].values.tobytes()
    assert_right(model, 2)


def test_each_rank_keeps_its_own_samples(tmp_path: Path) -> None:
    for rank in (1, 0):
        session = other_session(f"rank {rank}", rank=rank, world_size=2)
        write(tmp_path, replace(kept(rank), step=0), session=session)
    model = open_run(tmp_path).model()
    for rank in (0, 1):
        found = model.tensor(series(VALUE), 0, rank=rank)
        assert found.rank == rank
        assert found.values.tobytes() == arrays(rank)[0].values.tobytes()
    assert model.tensor(series(VALUE), 0).rank == 0


def test_a_run_at_a_url_has_them_too() -> None:
    place = "memory://kept-tensors/run"
    write(place, kept(0), kept(1))
    model = open_run(place).model()
    assert model.kept.steps.tolist() == [0, 1]
    assert_right(model, 1)


def test_what_a_newer_release_adds_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, kept(0))
    pieces = taken_apart(segment(tmp_path).read_bytes())
    head = pb.Head.FromString(pieces[-1].head)
    layout = pb.TensorLayout.FromString(zlib.decompress(head.tensors.layout))
    layout.tensors[1].dtype = "float4"
    head.tensors.layout = zlib.compress(layout.SerializeToString())
    pieces[-1].head = head.SerializeToString()
    segment(tmp_path).write_bytes(file_header() + b"".join(one.enveloped() for one in pieces))
    model = open_run(tmp_path).model()
    with pytest.warns(TorchgraphWarning, match="1 kept tensor of unknown kind is not shown"):
        found = model.tensor(series(VALUE), 0)
    assert found.gradient is None
    assert found.values.tobytes() == arrays(0)[0].values.tobytes()
    assert model.tensor(series(WEIGHT), 0).values.shape == (200, 300)


def test_the_steps_of_one_optimizer_have_only_their_tensors(tmp_path: Path) -> None:
    write(tmp_path, kept(0), kept(1))
    model: Model = open_run(tmp_path).model()
    with pytest.raises(NotFoundError):
        model.updated_by("Adam")


class Uploads:
    """Notes what is added to an artifact."""

    def __init__(self, *_: object, **__: object) -> None:
        self.names: set[str] = set()

    def add_dir(self, folder: str) -> None:
        self.names |= {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}

    def add_file(self, path: str, *, name: str) -> None:
        assert Path(path).is_file()
        self.names.add(name)


class WandbRun:
    id = "1a2b"

    def log_artifact(self, artifact: Uploads) -> None:
        self.artifact = artifact


@pytest.mark.parametrize("asked", [False, True])
def test_kept_tensors_are_uploaded_only_if_asked_for(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    from torchgraph_wandb.record_artifact import upload_record

    monkeypatch.setattr(wandb, "Artifact", Uploads)
    write(tmp_path, kept(0))
    tmp_path.joinpath("events.out").write_bytes(b"x")
    run = WandbRun()
    upload_record(run, tmp_path, tensors=asked)
    frames = {"plugins/torchgraph/000000.tgraph", "events.out"}
    assert run.artifact.names == frames | ({"plugins/torchgraph/tensors/000000.tgraph"} if asked else set())
    write_small_run(tmp_path / "without")
    upload_record(run, tmp_path / "without")
    assert run.artifact.names == {"plugins/torchgraph/000000.tgraph"}


def test_an_exported_page_is_the_same_with_and_without_kept_tensors(tmp_path: Path) -> None:
    from torchgraph_explorer import export_page

    write(tmp_path / "run", kept(0))
    first = export_page(open_run(tmp_path / "run"))
    segment(tmp_path / "run").unlink()
    assert export_page(open_run(tmp_path / "run")) == first


def write_crafted(run: Path, **facts: float) -> Model:
    """Two steps, of which the head of the second one has `facts`."""
    write(run, kept(0), kept(1))
    pieces = taken_apart(segment(run).read_bytes())
    head = pb.Head.FromString(pieces[-1].head)
    for name, value in facts.items():
        setattr(head.tensors, name, value)
    pieces[-1].head = head.SerializeToString()
    segment(run).write_bytes(file_header() + b"".join(one.enveloped() for one in pieces))
    return open_run(run).model()


@pytest.mark.parametrize("scale", [np.nan, np.inf, -np.inf, -2.0, 0.0])
def test_a_loss_scale_that_cannot_be_one_is_not_known(scale: float, tmp_path: Path) -> None:
    model = write_crafted(tmp_path, gradient_scale=scale)
    assert model.tensor(series(VALUE), 1).gradient_scale is None
    assert write_crafted(tmp_path / "sound", gradient_scale=1024.0).tensor(series(VALUE), 1).gradient_scale == 1024


@pytest.mark.parametrize("time", [np.nan, np.inf, -1.0, 1e300])
def test_a_kept_step_at_no_time_is_skipped(time: float, tmp_path: Path) -> None:
    with pytest.warns(TorchgraphWarning):
        assert write_crafted(tmp_path, time=time).kept.steps.tolist() == [0]


def test_an_empty_layout_is_damage_each_time_that_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, kept(0))
    index = KeptIndex(LocalFolder(tmp_path).of_tensors(), Notices(), OfRun(lambda _: True, tuple))
    [ranks] = index.of_model(SESSION.model).values()
    for _ in range(2):
        with pytest.raises(DamageError):
            index.layout(ranks[0]._replace(layout=b""))
        assert index.layout(ranks[0]).tensors
