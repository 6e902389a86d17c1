"""Trainings that go wrong are told, and their mended twins are not; `python -m benchmarks findings` has all."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.programs import chosen, further
from benchmarks.programs.program import Program, train
from torchgraph_explorer.run import open_run

pytestmark = pytest.mark.slow

FAULTY = (*chosen.FAULTY, *further.FAULTY)
HEALTHY = (*chosen.HEALTHY, *further.HEALTHY)
QUICK = (
    "logarithm of zero",
    "bias that kills a ReLU",
    "detached encoder",
    "head made after the optimizer",
    "softmax before cross entropy",
)
QUIET = ("frozen backbone", "low-rank adapters", "GAN in one model", "log-softmax and its likelihood")
STEPS = 12


def told(program: Program, folder: Path, *, broken: bool) -> set[tuple[str, str | None]]:
    train(program, folder, broken=broken, seed=0, steps=STEPS)
    return {(one.kind, one.module) for one in open_run(folder).model().findings() if one.severity != "info"}


@pytest.mark.parametrize("program", [one for one in FAULTY if one.name in QUICK], ids=lambda one: one.name)
def test_a_broken_program_is_told_and_its_twin_is_not(program: Program, tmp_path: Path) -> None:
    found = told(program, tmp_path / "broken", broken=True)
    assert found & {(kind, module) for kind in program.kinds for module in program.modules}
    assert told(program, tmp_path / "mended", broken=False) == set()


@pytest.mark.parametrize("program", [one for one in HEALTHY if one.name in QUIET], ids=lambda one: one.name)
def test_a_healthy_program_is_not_told(program: Program, tmp_path: Path) -> None:
    assert told(program, tmp_path, broken=False) == set()
