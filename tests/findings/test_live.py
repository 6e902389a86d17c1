"""Looking at a run while it is written: read on, when, and what is told once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.programs.chosen import FAULTY, HEALTHY
from benchmarks.programs.program import Program, train
from tests.record.examples import GRAPH, SERIES, SESSION, clean
from torchgraph_explorer.finding import Finding
from torchgraph_explorer.findings import live
from torchgraph_explorer.findings.evidence import Evidence
from torchgraph_explorer.findings.live import LiveModel, Novelty
from torchgraph_explorer.record.writer import RecordWriter
from torchgraph_explorer.run import Run, open_run


class Growing:
    """A run that is written step by step."""

    def __init__(self, folder: Path) -> None:
        self.writer = RecordWriter(folder)
        for record in (replace(SESSION, clock=None), GRAPH, SERIES):
            self.writer.write(record)
        self.folder, self.steps = folder, 0

    def grow(self, steps: int, **counts: float) -> None:
        for _ in range(steps):
            self.writer.write(clean(self.steps, **counts))
            self.steps += 1


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    one = Growing(tmp_path)
    yield one
    one.writer.close()


def read(growing: Growing, *sizes: int, most: int) -> tuple[Run, Evidence]:
    """What was read of a run that had these numbers of frames, one after the other."""
    growing.grow(1)
    run, evidence = open_run(growing.folder), None
    for size in sizes:
        growing.grow(size - growing.steps)
        run.refresh()
        evidence = Evidence(run.model(), most=most, earlier=evidence)
    assert evidence is not None
    return run, evidence


@pytest.mark.slow
@pytest.mark.parametrize("most", [pytest.param(10_000, id="all frames"), pytest.param(80, id="a choice of frames")])
def test_what_is_read_on_is_what_is_read_at_once(most: int, growing: Growing) -> None:
    run, evidence = read(growing, 3, 19, 40, 41, 97, most=most)
    whole = Evidence(run.model(), most=most)
    assert evidence.frames.tolist() == whole.frames.tolist()
    np.testing.assert_array_equal(evidence._statistics, whole._statistics)


def test_no_frame_is_read_twice(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    run, evidence = read(growing, 5, 20, most=10_000)
    model = run.model()
    monkeypatch.setattr(type(model), "statistics", recording(asked, type(model).statistics))
    growing.grow(2)
    run.refresh()
    Evidence(model, earlier=evidence)
    assert asked == [[20, 21]]


def recording(asked: list[list[int]], statistics: object) -> object:
    def asking(model: object, frames: object) -> object:
        asked.append(list(frames))  # type: ignore[call-overload]
        return statistics(model, frames)  # type: ignore[operator]

    return asking


class Clock:
    """Seconds that pass only where a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def looks(growing: Growing, monkeypatch: pytest.MonkeyPatch, *, cost: float, pause: float, steps: int) -> list[int]:
    """The numbers of frames at which the rules ran, looking after each step."""
    clock, at = Clock(), []

    def judging(evidence: Evidence, **_: object) -> tuple[Finding, ...]:
        at.append(len(evidence))
        clock.now += cost
        return ()

    monkeypatch.setattr(live, "judge", judging)
    growing.grow(1)
    run = open_run(growing.folder)
    model = LiveModel(run.model(), clock=clock)
    for _ in range(steps):
        model.look()
        growing.grow(1)
        run.refresh()
        clock.now += pause
    return at


@pytest.mark.slow
def test_the_rules_run_again_when_the_run_has_grown_by_a_tenth(
    growing: Growing, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = looks(growing, monkeypatch, cost=0.0, pause=1.0, steps=60)
    assert at[:13] == [*range(1, 12), 13, 15]
    assert all(after == max(before + 1, math.ceil(before * live.GROWTH)) for before, after in pairwise(at))


@pytest.mark.slow
def test_the_rules_take_a_twentieth_of_the_time_at_most(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(growing, monkeypatch, cost=1.0, pause=1.0, steps=60) == [1, 20, 39, 58]


def test_nan_is_looked_at_at_once(growing: Growing) -> None:
    clock = Clock()
    growing.grow(30)
    run = open_run(growing.folder)
    model = LiveModel(run.model(), clock=clock)
    assert model.look() == []
    growing.grow(1, nan=1.0)
    run.refresh()
    assert [(one.kind, one.step) for one in model.look()] == [("nan", 30)]
    growing.grow(1, nan=1.0)
    run.refresh()
    assert model.look() == []


def found(kind: str, module: str = "fc1", *, causes: tuple[Finding, ...] = ()) -> Finding:
    return Finding(kind=kind, module=module, step=0, text="Text.", causes=causes)


def test_what_passes_again_is_not_told() -> None:
    novelty = Novelty()
    for frames in (2, 5, 8):
        assert novelty.new([found("dead-units")] if frames == 5 else [], frames=frames) == []


@pytest.mark.parametrize(
    ("kind", "frames", "expected"),
    [
        pytest.param("dead-units", (2, 4, 7, 8, 9, 20), [8], id="8 steps"),
        pytest.param("dead-units", (6, 8, 11, 12, 40), [12], id="twice as many"),
        pytest.param("dead-units", (1000, 1040, 1050, 2000), [1050], id="50 more"),
        pytest.param("loss-not-falling", (30, 60, 239, 240, 300), [240], id="a slow kind"),
    ],
)
def test_what_holds_is_told_once(kind: str, frames: tuple[int, ...], expected: list[int]) -> None:
    novelty, one = Novelty(), found(kind)
    assert [number for number in frames if novelty.new([one], frames=number)] == expected


def test_nan_is_told_at_once_with_its_cause() -> None:
    cause = found("update-too-large")
    nan = found("nan", causes=(cause,))
    assert Novelty().new([cause, nan, found("dead-units")], frames=2) == [cause, nan]


def test_at_the_end_all_that_is_left_is_told() -> None:
    novelty, dead, small = Novelty(), found("dead-units"), found("update-too-small")
    assert [novelty.new([dead], frames=frames) for frames in (8, 16)] == [[], [dead]]
    assert novelty.new([dead, small], frames=16, at_end=True) == [small]


QUICK = ("bias that kills a ReLU", "detached encoder", "logarithm of zero")
QUIET = ("frozen backbone", "low-rank adapters")


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", [one for one in (*FAULTY, *HEALTHY) if one.name in (*QUICK, *QUIET)], ids=lambda one: one.name
)
def test_what_is_told_while_a_program_trains_is_what_is_found_afterwards(program: Program, tmp_path: Path) -> None:
    train(program, tmp_path, broken=bool(program.kinds), seed=0, steps=24)
    model = open_run(tmp_path).model()
    told = told_at_every_frame(model)
    assert {one.key for one in told} == {one.key for one in model.findings()}
    assert len(told) == len({one.key for one in told})


def told_at_every_frame(model: object) -> list[Finding]:
    """What is told of a recorded run that seems to grow by one frame after the other."""
    growing = Prefix(model)
    one = LiveModel(growing, clock=Clock())  # type: ignore[arg-type]
    told = []
    for growing.frames in range(1, len(model) + 1):  # type: ignore[arg-type]
        told += one.look()
    return told + one.finish()


class Prefix:
    """The first frames of a model, as if the others were not written yet."""

    def __init__(self, model: object) -> None:
        self._model, self.frames = model, 0

    def __len__(self) -> int:
        return self.frames

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)
