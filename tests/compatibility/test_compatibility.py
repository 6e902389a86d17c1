"""The table of cases, each held against the three promises. `python -m tests.compatibility` writes it down."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch

from tests.compatibility.case import Case
from tests.compatibility.complete import check_complete
from tests.compatibility.faults import Fault, check_unkillable
from tests.compatibility.table import CASES, faults_for, thorough
from tests.compatibility.undisturbed import check_undisturbed


@pytest.fixture(autouse=True)
def _forget_what_was_compiled() -> Iterator[None]:
    """All cases compile the same few methods, and torch gives one up after it was compiled a number of times."""
    yield
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def marked(promise: str) -> list[object]:
    """All cases, those that cannot hold marked as such."""
    return [pytest.param(case, id=case.id, marks=_marks(case, promise)) for case in CASES]


def _marks(case: Case, promise: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.slow] if case.slow else []
    marks += [pytest.mark.skip(reason=case.missing)] if case.missing else []
    marks += [pytest.mark.xfail(reason=case.cannot[promise], strict=True)] if promise in case.cannot else []
    return marks


@pytest.mark.parametrize("case", marked("P1"))
def test_training_is_undisturbed(case: Case) -> None:
    check_undisturbed(case)


@pytest.mark.parametrize("case", marked("P2"))
def test_the_record_is_complete(case: Case) -> None:
    check_complete(case)


@pytest.mark.parametrize("case", marked("P3"))
def test_a_fault_of_ours_does_not_reach_training(case: Case) -> None:
    for fault in faults_for(case):
        check_unkillable(case, fault)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "fault"), [pytest.param(*each, id=f"{each[0].id}, {each[1]}") for each in thorough()])
def test_no_fault_of_ours_reaches_training(case: Case, fault: Fault) -> None:
    check_unkillable(case, fault)
