"""How a step ended, and which passes belonged to it: as written, as read, and from a record that cannot be trusted."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.record.examples import GRAPH, SERIES, SESSION, facts, frame, segment, write
from torchgraph_explorer.errors import NotFoundError, TorchgraphWarning
from torchgraph_explorer.record import record_pb2 as pb
from torchgraph_explorer.record.format.envelope import enveloped
from torchgraph_explorer.record.steps.layout import encode_layout
from torchgraph_explorer.run import open_run
from torchgraph_explorer.schema import Frame, Session, StepFacts

UPDATE = StepFacts("update", 4, 4, ("Adam",))
OTHER = StepFacts("update", 9, 4, ("Adam #2",))


def step_of(step: int, known: StepFacts | None) -> Frame:
    return replace(frame(step, graph=None), facts=known)


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(UPDATE, id="an update"),
        pytest.param(StepFacts("update", 200, 4, ("Muon", "AdamW", "AdamW #2")), id="by several optimizers"),
        pytest.param(StepFacts("skipped", 1, 1, ("Adam",)), id="skipped"),
        pytest.param(StepFacts("skipped", 1, 1), id="skipped, by an unknown optimizer"),
        pytest.param(StepFacts("pass", 1, 1), id="a pass"),
        pytest.param(StepFacts("mark", 3, 0), id="marked by hand"),
        pytest.param(StepFacts("mark", 0, 0), id="without passes"),
        pytest.param(StepFacts("unfinished", 2, 2), id="unfinished"),
        pytest.param(StepFacts("update", 1, 1, tuple(f"SGD #{at}" for at in range(1, 65))), id="by many optimizers"),
        pytest.param(None, id="not known"),
    ],
)
def test_the_facts_of_a_step_are_read_as_they_were_written(known: StepFacts | None, tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(3, known))
    model = open_run(tmp_path).model()
    assert (model.facts, model.frame(0).facts) == ((known,), known)


def test_each_step_has_its_own_facts_over_sessions_and_segments(tmp_path: Path) -> None:
    written = [(UPDATE, OTHER, None)[step % 3] for step in range(40)]
    frames = [step_of(step, known) for step, known in enumerate(written)]
    write(tmp_path, SERIES, *frames[:20], segment_bytes=4_000)
    write(tmp_path, SERIES, *frames[20:], session=replace(SESSION, id="second", created=5_000.0))
    assert open_run(tmp_path).model().facts == tuple(written)


def test_a_step_that_was_written_again_has_its_new_facts(tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(0, UPDATE), step_of(0, OTHER), step_of(1, UPDATE), step_of(1, None))
    assert open_run(tmp_path).model().facts == (OTHER, None)


def test_a_name_that_no_page_can_show_is_escaped(tmp_path: Path) -> None:
    write(tmp_path, SERIES, step_of(0, StepFacts("update", 1, 1, ("Ad\nam\ud800" + 2_000 * "m",))))
    [known] = open_run(tmp_path).model().facts
    assert known is not None
    [name] = known.optimizers
    assert (name[:13], len(name)) == ("Ad\\nam\\ud800m", 200 + len("~") + 12)


CRAFTED = {
    "an end of a later release": pb.Frame(end=77, passes=1, recorded_passes=1),  # type: ignore[arg-type]
    "no end": pb.Frame(passes=1, recorded_passes=1, optimizers=["Adam"]),
    "passes beyond all": pb.Frame(end=pb.Frame.UPDATE, passes=2**64 - 1, recorded_passes=1),
    "more recorded than there were": pb.Frame(end=pb.Frame.UPDATE, passes=1, recorded_passes=2),
    "too many optimizers": pb.Frame(end=pb.Frame.UPDATE, passes=1, recorded_passes=1, optimizers=65 * ["Adam"]),
    "a long name": pb.Frame(end=pb.Frame.UPDATE, passes=1, recorded_passes=1, optimizers=[5_000 * "A"]),
    "an empty name": pb.Frame(end=pb.Frame.UPDATE, passes=1, recorded_passes=1, optimizers=[""]),
}


def crafted(run_dir: Path, *heads: pb.Frame) -> Path:
    """A run with a frame for each of `heads`, as our writer would not write it."""
    write(run_dir, SERIES)
    one = frame(0)
    with segment(run_dir).open("ab") as file:
        for step, head in enumerate(heads):
            head.step, head.time = step, 2_000.0
            head.layout = encode_layout(one.series[:0], one.rows[:0], 0)
            file.write(enveloped(pb.Head(frame=head).SerializeToString()))
    return run_dir


@pytest.mark.parametrize("head", CRAFTED.values(), ids=CRAFTED)
def test_facts_that_make_no_sense_are_not_known_and_their_step_is_read(head: pb.Frame, tmp_path: Path) -> None:
    sound = pb.Frame(end=pb.Frame.UPDATE, passes=4, recorded_passes=4, optimizers=["Adam"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", TorchgraphWarning)
        model = open_run(crafted(tmp_path, head, sound)).model()
        assert (model.frame(0).facts, model.frame(1).facts) == (None, UPDATE)
    assert model.steps.tolist() == [0, 1]


def test_no_more_kinds_of_steps_are_told_apart_than_a_model_can_have(tmp_path: Path) -> None:
    heads = [
        pb.Frame(end=pb.Frame.UPDATE, passes=1, recorded_passes=1, optimizers=[f"Adam #{number}"])
        for number in range(300)
    ]
    found = open_run(crafted(tmp_path, *heads)).model().facts
    assert [one is None for one in found] == [number >= 256 for number in range(300)]


def rank(number: int) -> Session:
    return replace(SESSION, id=f"rank{number}", rank=number, world_size=3, created=1_000.0 + number / 8)


def test_a_step_of_several_ranks_has_the_facts_of_the_lowest_that_knows_them(tmp_path: Path) -> None:
    by_rank = [(UPDATE, None, None, UPDATE), (OTHER, OTHER, None, None), (None, UPDATE, None, OTHER)]
    for number, told in enumerate(by_rank):
        frames = (step_of(step, known) for step, known in enumerate(told))
        write(tmp_path, SERIES, *frames, session=rank(number))
    model = open_run(tmp_path).model()
    assert model.ranks.tolist() == [3, 3, 3, 3]
    assert model.facts == (UPDATE, OTHER, None, UPDATE)
    assert model.frame(1).facts == OTHER


def alternating(run_dir: Path, steps: int = 6) -> Path:
    """A run whose even steps are by one optimizer, and whose odd steps are by another. Of the last, it is not known."""
    frames = [replace(step_of(step, (UPDATE, OTHER)[step % 2]), graph=0) for step in range(steps)]
    write(run_dir, GRAPH, SERIES, *frames, step_of(steps, None))
    return run_dir


@pytest.mark.parametrize(("optimizer", "first"), [("Adam", 0), ("Adam #2", 1)])
def test_a_model_can_be_had_with_the_steps_of_one_optimizer(optimizer: str, first: int, tmp_path: Path) -> None:
    model = open_run(alternating(tmp_path)).model()
    one, steps = model.updated_by(optimizer), list(range(first, 6, 2))
    assert (one.name, one.optimizers, one.series, one.graphs) == (model.name, model.optimizers, SERIES, (GRAPH,))
    assert (len(one), one.steps.tolist(), one.times.tolist()) == (3, steps, [2_000.0 + step for step in steps])
    assert one.facts == 3 * ((UPDATE, OTHER)[first],)
    assert [facts(one.frame(at)) for at in range(3)] == [facts(model.frame_at(step)) for step in steps]
    whole, history = model.history(2), one.history(2)
    assert (history.frames.tolist(), history.steps.tolist()) == ([0, 1, 2], steps)
    np.testing.assert_array_equal(history.statistics, whole.statistics[steps])
    assert one.nonfinite().tolist() == model.nonfinite()[steps].tolist()
    with pytest.raises(NotFoundError, match="has no frame of step 6"):
        one.frame_at(6)


def test_the_steps_of_one_optimizer_grow_with_the_run(tmp_path: Path) -> None:
    run = open_run(alternating(tmp_path))
    one = run.model().updated_by("Adam #2")
    write(
        tmp_path, SERIES, step_of(7, OTHER), step_of(8, UPDATE), session=replace(SESSION, id="later", created=5_000.0)
    )
    run.refresh()
    assert one.steps.tolist() == [1, 3, 5, 7]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (6, r"Model 'net' has no step by the optimizer 'SGD'. There are steps by 'Adam', 'Adam #2'."),
        (0, r"no step by the optimizer 'SGD'. Its record does not name any optimizer."),
    ],
)
def test_an_optimizer_that_is_not_there_is_told_with_those_that_are(steps: int, message: str, tmp_path: Path) -> None:
    model = open_run(alternating(tmp_path, steps)).model()
    with pytest.raises(NotFoundError, match=message):
        model.updated_by("SGD")


def test_the_steps_of_several_ranks_can_be_had_by_optimizer(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, SERIES, step_of(0, UPDATE), step_of(1, OTHER), step_of(2, UPDATE), session=rank(number))
    model = open_run(tmp_path).model()
    one = model.updated_by("Adam")
    assert (one.steps.tolist(), one.ranks.tolist()) == ([0, 2], [3, 3])
    np.testing.assert_array_equal(one.history(0).statistics, model.history(0).statistics[[0, 2]])


def test_optimizers_are_named_by_class_and_number(tmp_path: Path) -> None:
    names = ("SGD #2", "Adam #10", "SGD", "Adam #2", "Adam", "Adam #x", "Adam #" + 30 * "9")
    write(tmp_path, SERIES, *(step_of(step, replace(UPDATE, optimizers=(name,))) for step, name in enumerate(names)))
    expected = ("Adam", "Adam #" + 30 * "9", "Adam #x", "Adam #2", "Adam #10", "SGD", "SGD #2")
    assert open_run(tmp_path).model().optimizers == expected


def test_the_steps_of_an_optimizer_are_selected_once_until_there_are_new_ones(tmp_path: Path) -> None:
    run = open_run(alternating(tmp_path))
    model = run.model().updated_by("Adam")
    selected = model._index.frames.frames
    assert model._index.frames.frames is selected
    write(tmp_path, SERIES, step_of(8, UPDATE), session=replace(SESSION, id="second", created=5_000.0))
    run.refresh()
    assert model.steps.tolist() == [0, 2, 4, 8]
