"""The table of cases, each held against the three promises. `python -m tests.compatibility` writes it down."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch

from tests.compatibility.case import Case
from tests.compatibility.complete import check_complete
from tests.compatibility.faults import HANDLERS, Fault, check_unkillable, faults_while_training, stale_names
from tests.compatibility.table import CASES, faults_for, faults_in, is_first_of_its_theme
from tests.compatibility.undisturbed import check_copies, check_undisturbed


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
    marks = [pytest.mark.xdist_group(case.id)]  # its promises share the run of the unwatched model
    marks += [pytest.mark.slow] if case.slow else []
    marks += [pytest.mark.skip(reason=case.missing)] if case.missing else []
    marks += [pytest.mark.xfail(reason=case.cannot[promise], strict=True)] if promise in case.cannot else []
    return marks


@pytest.mark.parametrize("case", marked("P1"))
def test_training_is_undisturbed(case: Case) -> None:
    check_undisturbed(case)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES if is_first_of_its_theme(case)])
def test_a_watched_model_is_copied_like_an_unwatched_one(case: Case) -> None:
    check_copies(case)


@pytest.mark.parametrize("case", marked("P2"))
def test_the_record_is_complete(case: Case) -> None:
    check_complete(case)


@pytest.mark.parametrize("case", marked("P3"))
def test_a_fault_of_ours_does_not_reach_training(case: Case) -> None:
    assert any(check_unkillable(case, fault) for fault in faults_for(case)), "the case met none of its faults"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, id=str(fault)) for fault in faults_while_training()])
def test_no_fault_of_ours_reaches_training(fault: Fault) -> None:
    met = [check_unkillable(case, each) for case, each in faults_in(fault.name)]
    assert met, "no case calls it: say so in NOT_CALLED, or add a case that does"
    assert all(met)


@pytest.mark.slow
@pytest.mark.parametrize(("handler", "cause"), HANDLERS.items())
def test_no_fault_in_the_handling_of_another_reaches_training(handler: str, cause: str) -> None:
    faults = [Fault(f"torchgraph_explorer.{name}") for name in (cause, handler)]
    case, _ = faults_in(faults[0].name)[0]
    assert check_unkillable(case, *faults)


def test_the_tables_of_faults_name_what_is_there() -> None:
    assert stale_names() == []
