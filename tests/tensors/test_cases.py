"""Every case of the compatibility table, with all of its tensors kept: nothing in its training changes."""

from __future__ import annotations

import pytest

from tests.compatibility.case import Case
from tests.compatibility.table import CASES, group_of
from tests.compatibility.training import run
from tests.compatibility.undisturbed import assert_undisturbed
from tests.listening import Listening
from torchgraph_explorer import Keep
from torchgraph_explorer.schema import KeptStep


class Keeping(Listening):
    """Takes kept tensors, too."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[KeptStep] = []

    def keep(self, step: KeptStep, _most: int) -> int:
        self.kept.append(step)
        return 0


def cases() -> list[object]:
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xdist_group(group_of(case)), *([pytest.mark.slow] if case.slow else [])],
        )
        for case in CASES
        if not case.missing and "P1" not in case.cannot
    ]


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("case", cases())
def test_keeping_everything_disturbs_no_training(case: Case) -> None:
    sink = Keeping()
    keep = Keep("*", "*:input", samples=None)
    watched = run(case, watched=True, options={**case.options, "backend": sink, "keep": keep})
    assert_undisturbed(case, watched)
    broken = [one for one in watched.said if "no longer" in one or "failed" in one]
    assert broken == []
    assert any(step.arrays for step in sink.kept) or not sink.frames
