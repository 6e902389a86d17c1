"""What only the live training knew of a step: as written, as read, and from a record that cannot be trusted."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.record.examples import SERIES, SESSION, frame, segment, write
from torchgraph_explorer import open_run
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.schema import (
    EqualRows,
    Frame,
    NumberAnswers,
    Operation,
    ParameterGroup,
    TokenAnswers,
    TrainingFacts,
    Units,
)

FULL = TrainingFacts(
    batch_size=32,
    is_training=False,
    other_mode=("bn", "block.bn"),
    groups=(
        ParameterGroup("AdamW", 1e-3, 0.01, True, ("fc.weight",), (0.9, 0.95), is_maximising=True),
        ParameterGroup("SGD #2", None, None, False, ()),
    ),
    leftover=("fc.weight",),
    without_optimizer=("head.weight", "head.bias"),
    frozen_in_optimizer=(),
    orphans=((10, 4), ()),
    without_gradient=("fc.bias",),
    remade=("head.weight",),
    written=("head.bias",),
    gradient_norm=2.5,
    clipped_norm=1.0,
    loss_scale=65536.0,
    skipped=3,
    units=(Units("act", 0, 64, 40, 8, 41, 0.5), Units("act", 1, 64, 0, 1, 0, 0.25)),
    equal_rows=(EqualRows("fc.weight", 64, 63),),
    operations=(
        Operation("view", "attention", 0, before=(16, 32, 64), after=(16, 4, 32, 16)),
        Operation("attention", "attention", 1, (0.5, 0.25, 31.5), (32, 32)),
        Operation("single", "attention", 0, (1.0,), (640, 1)),
        Operation("dropout", "", 0, (0.9,)),
        Operation("position", "embedding", 0, before=(16, 32, 64), after=(16, 1, 64)),
        Operation("made", "attention", 1, before=(64, 64)),
        Operation("crosswise", "attention", 0, (2.0, 0.5), (16, 4, 32, 32)),
        Operation("shift", "", 0, before=(33,)),
        Operation("normalised", "", 0, (2.5, 0.5, 0.0, 3.0)),
        Operation("labels", "", 0, (0.25, 0.25, 0.125, 0.125)),
        Operation("several", "", 0, (0.0, 0.5)),
        Operation("second", "input[0]", 0, (1.0,)),
        Operation("copied", "", 0, (0.0, 3.0)),
        Operation("ahead", "", 0, (0.25,)),
        Operation("shared", "", 0, (0.0, 0.5)),
        Operation("cancelling", "", 0, (0.0, 10.0, 1.5, 8.0)),
        Operation("flat", "", 0, (0.5,)),
        Operation("over", "", 0, (0.25,)),
        Operation("divergence", "", 0, (-1.0, 0.0, -0.5, 0.25, -0.125, 0.5)),
        Operation("weights", "", 0, (0.0, 4.0, 2.0, 1.0, 0.25, 8.0, 2.0, 3.0, 1.0, 0.5)),
        Operation("hidden", "input[0]", 0, (0.25, 1.0, 0.0, 0.5)),
        Operation("trailing", "input[0]", 0, (0.5, 0.0, 1.0, 3.0)),
        Operation("ends", "input[0]", 0, (0.25, 0.0, 1.0, 5.0)),
        Operation("across", "", 0, (0.0, 0.5, 0.25)),
        Operation("twice", "", 0, (0.5, 0.0, 2.0, 40.0)),
        Operation("binary", "", 0, (0.0, 1.0, 0.0, -0.5, 1.5, 0.25)),
        Operation("unseen", "", 0, (1.0, 4.0)),
        Operation("clamp", "act", 0, (0.75,)),
        Operation("direction", "output[1]", 0, (0.0, 0.5)),
        Operation("cleared", "", 0, (4.0, 3.0)),
    ),
    tokens=(TokenAnswers("input[0]", 512, 1.0, 0.25, 0.5),),
    numbers=NumberAnswers(32, 1, 0.5, -0.25, 0.5, 1.5, 0.125, 0.75),
    targets=(-1.0, 2.5),
)


def step_of(step: int, known: TrainingFacts | None) -> Frame:
    return replace(frame(step, graph=None), training=known)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(FULL, id="everything"),
        pytest.param(TrainingFacts(), id="nothing is known"),
        pytest.param(TrainingFacts(leftover=(), without_optimizer=()), id="none, which is known"),
        pytest.param(TrainingFacts(gradient_norm=float("inf"), batch_size=0), id="not finite, and zero"),
        pytest.param(None, id="not recorded"),
    ],
)
def test_the_facts_are_read_as_they_were_written(known: TrainingFacts | None, tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(3, known))
    model = open_run(tmp_path).model()
    assert (model.training_facts, model.frame(0).training) == ((known,), known)


def test_each_step_has_its_own_numbers_and_names(tmp_path: Path) -> None:
    written = [(replace(FULL, skipped=step), None, TrainingFacts())[step % 3] for step in range(40)]
    frames = [step_of(step, known) for step, known in enumerate(written)]
    write(tmp_path, SERIES, *frames[:20], segment_bytes=4_000)
    write(tmp_path, SERIES, *frames[20:], session=replace(SESSION, id="second", created=5_000.0))
    assert open_run(tmp_path).model().training_facts == tuple(written)


def test_a_name_that_no_page_can_show_is_escaped(tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(0, TrainingFacts(other_mode=("a.b\ud800c",))))
    [known] = open_run(tmp_path).model().training_facts
    assert known is not None
    assert known.other_mode[0].startswith("a.b\\ud800c~")


def situation(**parts: object) -> bytes:
    return zlib.compress(pb.Situation(**parts).SerializeToString())  # type: ignore[arg-type]


OUTPUT, GROUP = pb.Situation.Output(module="fc"), pb.Situation.Group(optimizer="SGD")
NUMBERS = pb.TrainingNumbers()

CRAFTED = {
    "no situation": pb.Frame(numbers=NUMBERS),
    "no numbers": pb.Frame(situation=situation()),
    "not compressed": pb.Frame(situation=b"\x0a\x00", numbers=NUMBERS),
    "no message": pb.Frame(situation=zlib.compress(b"\xff\xff"), numbers=NUMBERS),
    "a bomb": pb.Frame(situation=zlib.compress(bytes(1 << 24)), numbers=NUMBERS),
    "groups without rates": pb.Frame(situation=situation(groups=[GROUP]), numbers=NUMBERS),
    "rates without groups": pb.Frame(situation=situation(), numbers=pb.TrainingNumbers(learning_rates=[0.1])),
    "outputs without units": pb.Frame(situation=situation(outputs=[OUTPUT]), numbers=NUMBERS),
    "too few numbers of units": pb.Frame(
        situation=situation(outputs=[OUTPUT]), numbers=pb.TrainingNumbers(units=[1, 2, 3], spreads=[1.0])
    ),
    "rows of no parameter": pb.Frame(situation=situation(), numbers=pb.TrainingNumbers(rows=[1, 2])),
}


@pytest.mark.parametrize("head", CRAFTED.values(), ids=CRAFTED)
def test_facts_that_make_no_sense_are_not_known_and_their_step_is_read(head: pb.Frame, tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(0, FULL))
    one = frame(0)
    head.step, head.time = 1, 2_000.0
    head.layout = encode_layout(one.series[:0], one.rows[:0], 0)
    with segment(tmp_path).open("ab") as file:
        file.write(enveloped(pb.Head(frame=head).SerializeToString()))
    model = open_run(tmp_path).model()
    assert (model.steps.tolist(), model.training_facts) == ([0, 1], (FULL, None))
    assert (model.frame(0).training, model.frame(1).training) == (FULL, None)


def test_operations_of_another_kind_and_without_their_numbers_are_left_out(tmp_path: Path) -> None:
    """A newer version may record more."""
    write(tmp_path, SERIES)
    one = frame(0)
    numbers = pb.TrainingNumbers(targets=[1.0])
    for kind in ("view", "attention", "something new"):
        numbers.operations.add(kind=kind, module="fc")
    head = pb.Frame(situation=situation(), numbers=numbers)
    head.step, head.time, head.layout = 1, 2_000.0, encode_layout(one.series[:0], one.rows[:0], 0)
    with segment(tmp_path).open("ab") as file:
        file.write(enveloped(pb.Head(frame=head).SerializeToString()))
    [known] = open_run(tmp_path).model().training_facts
    assert known is not None
    assert (known.operations, known.targets) == ((Operation("view", "fc"),), None)


def test_facts_beyond_what_is_held_in_memory_are_not_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("torchgraph_explorer.record.steps.training.TRAINING_BYTES", 2_000)
    write(tmp_path, SERIES, *(step_of(step, replace(FULL, skipped=step)) for step in range(20)))
    known = [one is not None for one in open_run(tmp_path).model().training_facts]
    assert 0 < sum(known) < 20
    assert known == sorted(known, reverse=True)
