"""The table of cases, each held against the three promises. `python -m tests.compatibility` writes it down."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from tests.compatibility.__main__ import CHECKS, PAGE, page
from tests.compatibility.case import Case
from tests.compatibility.complete import check_complete
from tests.compatibility.faults import (
    AT_A_PAUSE,
    HANDLERS,
    NOT_CALLED,
    ONCE,
    WITHOUT_C,
    Fault,
    calls_of,
    check_unkillable,
    faults_while_training,
    is_named_in,
    stale_names,
)
from tests.compatibility.table import (
    AWKWARD,
    CASES,
    case_of,
    faults_for,
    faults_in,
    group_of,
    is_fast,
    is_first_of_its_theme,
    stands_for_its_theme,
)
from tests.compatibility.test_distributed import WAYS
from tests.compatibility.undisturbed import check_copies, check_undisturbed
from tests.devices import DEVICE
from tests.tables import stood_for
from torchgraph_explorer import timeouts

OURS = "torchgraph_explorer."

ON_CPU = frozenset(
    {
        "a packed sequence",  # torch wants the lengths on the processor
        "forward-mode derivatives",  # looks up the source of a function that `made_on` replaces
        "embedding bags and an adaptive softmax",  # fails in torch, unwatched
        "a data loader with worker processes",  # CUDA does not work in forked processes
        "Accelerate, which accumulates",  # moves the model to the processor
        "an accelerate loop with accumulation",
    }
)
"""Cases that do not run on a GPU, watched or not."""


pytestmark = pytest.mark.usefixtures("compiled_anew")


@pytest.fixture
def _does_not_wait_long_for_what_was_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken end is waited for as long as a slow store, which is tested elsewhere."""
    monkeypatch.setattr(timeouts, "SECONDS_TO_END", 1.0)


def marked(promise: str) -> list[object]:
    """All cases, those that cannot hold marked as such."""
    return [pytest.param(case, id=case.id, marks=_marks(case, promise)) for case in CASES]


def _marks(case: Case, promise: str) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.xdist_group(group_of(case))]
    marks += [] if is_fast(case) else [pytest.mark.slow]
    marks += stood_for(promise == "P3" and not stands_for_its_theme(case))
    marks += [pytest.mark.skip(reason=case.missing)] if case.missing else []
    marks += [pytest.mark.skip(reason=f"does not run on {DEVICE}")] if DEVICE != "cpu" and case.name in ON_CPU else []
    marks += [pytest.mark.xfail(reason=case.cannot[promise], strict=True)] if promise in case.cannot else []
    return marks


@pytest.mark.parametrize("case", marked("P1"))
def test_training_is_undisturbed(case: Case) -> None:
    check_undisturbed(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES if is_first_of_its_theme(case)])
def test_a_watched_model_is_copied_like_an_unwatched_one(case: Case) -> None:
    check_copies(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", marked("P2"))
def test_the_record_is_complete(case: Case) -> None:
    check_complete(case)


@pytest.mark.slow
@pytest.mark.usefixtures("_does_not_wait_long_for_what_was_broken")
@pytest.mark.parametrize("case", marked("P3"))
def test_a_fault_of_ours_does_not_reach_training(case: Case) -> None:
    assert any(check_unkillable(case, fault) for fault in faults_for(case)), "the case met none of its faults"


def by_module(functions: Iterable[str]) -> list[object]:
    """A test for each; those of one module run in one process, and so have to ask only once what the cases call."""
    return [
        pytest.param(name, id=name, marks=pytest.mark.xdist_group(".".join(name.split(".")[:2])))
        for name in (function.removeprefix(OURS) for function in functions)
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("_does_not_wait_long_for_what_was_broken")
@pytest.mark.parametrize(
    "further", [pytest.param(False, id="once"), pytest.param(True, id="again", marks=stood_for(True))]
)
@pytest.mark.parametrize("function", by_module(fault.name for fault in faults_while_training()))
def test_no_fault_of_ours_reaches_training(function: str, further: bool) -> None:
    """Once in the first case that calls it, which trains in the shortest time; then later, and in other cases."""
    faults = faults_in(function if function.startswith("tests.") else OURS + function)
    first = next(faults, None)
    assert first, "no case calls it: say why in NOT_CALLED, or add a case that does"
    for case, fault in faults if further else [first]:
        assert check_unkillable(case, fault) or fault.after


@pytest.mark.slow
@pytest.mark.usefixtures("_does_not_wait_long_for_what_was_broken")
@pytest.mark.parametrize("handler", by_module(HANDLERS))
def test_no_fault_in_the_handling_of_another_reaches_training(handler: str) -> None:
    cause, after = HANDLERS[handler]
    case, _ = next(faults_in(OURS + cause))
    assert check_unkillable(case_of(case.id), Fault(OURS + cause, after), Fault(OURS + handler))


def test_the_tables_of_faults_name_what_is_there() -> None:
    assert stale_names() == []


def test_what_is_said_not_to_be_called_is_not() -> None:
    excused = [name for name, reason in NOT_CALLED.items() if reason not in (AT_A_PAUSE, ONCE, WITHOUT_C)]
    assert [name for name in calls_of(case_of(AWKWARD)) if is_named_in([*excused, *HANDLERS], name)] == []


def test_the_page_in_docs_is_what_these_tests_hold() -> None:
    held = {case: {promise: "cannot" if case.why_not(promise) else "holds" for promise in CHECKS} for case in CASES}
    expected = page([*held.items()], [(name, True, True, True) for name in WAYS.values()])
    release = re.compile(r"with\s+torch\s+\S+\s+and\s+Python\s+\S+\.\n")
    assert release.sub("", PAGE.read_text(encoding="utf-8")) == release.sub("", expected)
