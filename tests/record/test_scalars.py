"""Logged scalars and notes on disk: what is read back, and how sessions and ranks join."""

from __future__ import annotations

import math
import random
from pathlib import Path
from zlib import crc32

import pytest

from tests.record.examples import SESSION, flip, labelled, logged, other_session, quietly, segment, write
from torchgraph_explorer import NotFoundError, open_run
from torchgraph_explorer.record import limits
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import DamageError, enveloped
from torchgraph_explorer.record.ranks.groups import Member
from torchgraph_explorer.record.scalars.encoding import VALUE_BYTES, decode_logged, encode_logged
from torchgraph_explorer.record.scalars.index import ScalarIndex
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Run
from torchgraph_explorer.schema import Logged, Session, StepNote


def read(run: Path | Run, name: str = "loss") -> dict[int, float]:
    scalar = (run if isinstance(run, Run) else open_run(run)).model().scalar(name)
    return dict(zip(scalar.steps.tolist(), scalar.values.tolist(), strict=True))


def test_everything_is_read_back(tmp_path: Path) -> None:
    note = StepNote(2, 2_002.5, "the big batch")
    values = [1 / 3, math.inf, 5e-324]
    write(tmp_path, logged([0, 2, 2**40], loss=values, notes=(note,)), logged([2**40 + 1], acc=[-1.0]))
    model = open_run(tmp_path).model()
    loss = model.scalar("loss")
    assert (loss.name, loss.steps.tolist(), loss.values.tolist()) == ("loss", [0, 2, 2**40], values)
    assert loss.times.tolist() == [2_000.0, 2_002.0, 2_000.0 + 2**40]
    assert ([*model.scalars()], model.step_notes, len(model)) == (["loss", "acc"], (note,), 0)


def test_labels_are_read_apart_and_continued_each(tmp_path: Path) -> None:
    write(
        tmp_path,
        *(logged([0, 1], loss=[1.0, 2.0]), labelled("eval", logged([1], loss=[7.0])), logged([1, 2], loss=[3.0, 4.0])),
        *(labelled("eval", logged([2], loss=[8.0])), labelled("eval", logged([2], acc=[0.5]))),
    )
    model = open_run(tmp_path).model()
    every = [(one.name, one.label, one.steps.tolist(), one.values.tolist()) for one in model.logged.every]
    assert every == [
        ("loss", None, [0, 1, 2], [1.0, 3.0, 4.0]),
        ("loss", "eval", [1, 2], [7.0, 8.0]),
        ("acc", "eval", [2], [0.5]),
    ]
    assert ([*model.scalars()], [*model.scalars("eval")]) == (["loss"], ["loss", "acc"])
    for name, label, message in (("acc", None, "'acc'"), ("loss", "test", "'loss' with label='test'")):
        with pytest.raises(
            NotFoundError, match=rf"no scalar {message}\. Choose one of 'loss', 'loss' \(label='eval'\)"
        ):
            model.scalar(name, label)


def test_a_block_with_labels_for_some_of_its_names_is_damaged() -> None:
    head, body = encode_logged(labelled("eval", logged([0], loss=[1.0], acc=[1.0])))
    assert decode_logged(head, body).scalars == (("loss", "eval"), ("acc", "eval"))
    head.labels.pop()
    with pytest.raises(DamageError, match="1 labels for 2 scalars"):
        decode_logged(head, body)


def test_a_scalar_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    write(tmp_path, logged([0], loss=[1.0], acc=[2.0]))
    with pytest.raises(NotFoundError, match=r"has no scalar 'lost'. Choose one of 'loss', 'acc'"):
        open_run(tmp_path).model().scalar("lost")


def test_a_run_without_scalars_says_so(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(NotFoundError, match=r"has no scalar 'loss'. No scalar was logged"):
        open_run(tmp_path).model().scalar("loss")


def test_blocks_appear_as_they_are_written(tmp_path: Path) -> None:
    writer = RecordWriter(tmp_path)
    writer.write(SESSION)
    writer.write(logged([0, 1], loss=[1.0, 2.0]))
    run = open_run(tmp_path)
    assert read(run) == {0: 1.0, 1: 2.0}
    writer.write(logged([1, 2], loss=[3.0, 4.0]))
    assert run.refresh()
    assert read(run) == {0: 1.0, 1: 3.0, 2: 4.0}
    assert run.model().logged.epoch == 0
    writer.write(logged([1], loss=[5.0]))
    assert run.refresh()
    assert (read(run), run.model().logged.epoch) == ({0: 1.0, 1: 5.0, 2: 4.0}, 1)
    writer.close()


def test_a_torn_block_is_read_when_it_is_whole(tmp_path: Path) -> None:
    write(tmp_path, logged([0], loss=[1.0]), logged([1], loss=[2.0]))
    file = segment(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[:-8])
    run = open_run(tmp_path)
    assert read(run) == {0: 1.0}
    with file.open("ab") as end:
        end.write(data[-8:])
    assert run.refresh()
    assert read(run) == {0: 1.0, 1: 2.0}


def later(**changes: object) -> Session:
    return other_session("later", created=5_000.0, **changes)


def test_a_later_session_counts_from_its_first_step_on(tmp_path: Path) -> None:
    notes = tuple(StepNote(step, 2_000.0, f"at {step}") for step in (1, 3))
    write(tmp_path, logged([0, 1, 2, 3, 4], loss=[0, 1, 2, 3, 4], acc=[0, 1, 2, 3, 4], notes=notes))
    write(tmp_path, logged([2, 4], loss=[20, 40], notes=(StepNote(2, 5_001.0, "resumed"),)), session=later())
    assert read(tmp_path) == {0: 0, 1: 1, 2: 20, 4: 40}
    assert read(tmp_path, "acc") == {0: 0, 1: 1}
    assert [note.text for note in open_run(tmp_path).model().step_notes] == ["at 1", "resumed"]


def test_a_session_that_resumes_before_all_others_leaves_none_of_them(tmp_path: Path) -> None:
    write(tmp_path, logged([5], loss=[5], acc=[5]))
    write(tmp_path, logged([0], loss=[1]), session=later())
    assert [*open_run(tmp_path).model().scalars()] == ["loss"]


def test_the_lowest_rank_that_has_a_value_counts(tmp_path: Path) -> None:
    ranks = [other_session(f"rank {rank}", rank=rank, world_size=2, created=1_000.0 + rank) for rank in (0, 1)]
    write(tmp_path, logged([0, 1, 3], loss=[10, 11, 13]), session=ranks[1])
    write(tmp_path, logged([1, 2], loss=[1, 2]), session=ranks[0])
    assert read(tmp_path) == {0: 10, 1: 1, 2: 2, 3: 13}


PLACES = {"a": Member(0, 0), "b": Member(0, 1), "c": Member(1, 0), "d": Member(1, 1)}
"""Two launches of two ranks."""


@pytest.mark.parametrize("seed", range(100))
def test_blocks_in_any_order_are_joined_as_one_by_one(seed: int) -> None:
    rng, index, one_by_one = random.Random(seed), ScalarIndex(), OneByOne()
    for _ in range(rng.randint(1, 10)):
        session, name = rng.choice("aabbcd"), rng.choice("xyz")
        steps = [rng.randint(0, 9) for _ in range(rng.randint(1, 4))]
        steps = sorted(steps) if rng.random() < 0.5 else steps
        values = [rng.random() for _ in steps]
        index.add(session, logged(steps, **{name: values}))  # type: ignore[arg-type]
        one_by_one.add(session, name, steps, values)
        if rng.random() < 0.5:
            index.read(PLACES)
    scalars = index.read(PLACES).scalars.values()
    read = {(one.name, step): value for one in scalars for step, value in zip(one.steps, one.values, strict=True)}
    assert read == one_by_one.values()


class OneByOne:
    """Joins what the sessions of `PLACES` log, without any haste."""

    def __init__(self) -> None:
        self._logged: list[tuple[str, str, int, float]] = []

    def add(self, session: str, name: str, steps: list[int], values: list[float]) -> None:
        self._logged += [(session, name, step, value) for step, value in zip(steps, values, strict=True)]

    def values(self) -> dict[tuple[str, int], float]:
        resumed = min((step for session, _, step, _ in self._logged if session in "cd"), default=99)
        found: dict[tuple[str, int], float] = {}
        for session in "dcba":  # what counts more is written over what counts less
            is_early = session in "ab"
            own = [one for one in self._logged if one[0] == session and not (is_early and one[2] >= resumed)]
            found |= {(name, step): value for _, name, step, value in own}
        return found


def test_a_flipped_bit_costs_its_block(tmp_path: Path) -> None:
    write(tmp_path, logged([0], loss=[1.0]), logged([1], loss=[2.0]))
    file = segment(tmp_path)
    flip(file, file.stat().st_size - 20, 3)
    run = quietly(tmp_path)
    assert read(run) == {0: 1.0}
    assert "its check is wrong" in run.warnings[0]


def record(message: pb.Logged, body: bytes) -> bytes:
    return enveloped(pb.Head(logged=message).SerializeToString(), body)


def crafted(block: Logged, *, values: int | None = None) -> bytes:
    """A block whose check is right, whatever it holds."""
    message, body = encode_logged(block)
    message.values = message.values if values is None else values
    return record(message, body)


GOOD = logged([0], loss=[1.0])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(crafted(logged([-1], loss=[1.0])), "a step is out of range", id="a negative step"),
        pytest.param(crafted(logged([2**63 - 1], loss=[1.0])), "a step is out of range", id="a step beyond all"),
        pytest.param(crafted(GOOD, values=2), "its body has 28 bytes", id="more values than bytes"),
        pytest.param(crafted(GOOD, values=2**31), "more than a record may", id="more values than allowed"),
        pytest.param(
            record(pb.Logged(names=[], values=1, check=crc32(bytes(VALUE_BYTES))), bytes(VALUE_BYTES)),
            "a scalar without a name",
            id="an unknown name",
        ),
        pytest.param(
            record(pb.Logged(check=0, notes=[pb.StepNote(step=2**63, time=1.0)]), b""), "step is", id="a note's step"
        ),
        pytest.param(
            record(pb.Logged(check=0, notes=[pb.StepNote(time=math.nan)]), b""),
            "which is not a time",
            id="a note's time",
        ),
    ],
)
def test_what_makes_no_sense_is_skipped(data: bytes, what: str, tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with segment(tmp_path).open("ab") as file:
        file.write(data)
    run = quietly(tmp_path)
    assert (read(run), what in run.warnings[0]) == ({0: 1.0}, True)


@pytest.mark.parametrize(
    ("bound", "what"),
    [("LOGGED_VALUES", "logged values"), ("SCALARS", "different scalars"), ("STEP_NOTES", "notes")],
)
def test_a_run_has_bounds(bound: str, what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, bound, 1)
    monkeypatch.setattr(f"torchgraph_explorer.record.scalars.index.{bound}", 1)
    write(tmp_path, GOOD, logged([1], acc=[1.0], notes=tuple(StepNote(0, 1.0, "x") for _ in range(2))))
    run = quietly(tmp_path)
    assert read(run) == {0: 1.0}
    assert what in run.warnings[0]


def test_blocks_wait_in_bounded_memory_while_the_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchgraph_explorer.record.outbox.MOST_WAITING", 4_000)
    (tmp_path / "plugins").write_text("in the way", encoding="ascii")
    writer = RecordWriter(tmp_path)
    with pytest.warns(UserWarning, match="cannot be written to"):
        writer.write(SESSION)
    for step in range(100):
        writer.write(logged([step], loss=[1.0]))
    assert writer._outbox is not None
    assert writer._outbox._size < 4_500
    (tmp_path / "plugins").unlink()
    writer.close()
    assert 10 < len(read(tmp_path)) < 60
