"""Every case of the compatibility table, with all of its tensors kept: nothing in its training changes."""

from __future__ import annotations

import pytest

from tests.compatibility.case import Case
from tests.compatibility.table import CASES, group_of, is_fast, stands_for_its_theme
from tests.compatibility.undisturbed import check_kept
from tests.tables import stood_for


def cases() -> list[object]:
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[
                pytest.mark.xdist_group(group_of(case)),
                *([] if is_fast(case) else [pytest.mark.slow]),
                *stood_for(not stands_for_its_theme(case)),
            ],
        )
        for case in CASES
        if not case.missing and not case.why_not("kept")
    ]


@pytest.mark.usefixtures("compiled_anew")
@pytest.mark.parametrize("case", cases())
def test_keeping_everything_disturbs_no_training(case: Case) -> None:
    check_kept(case)
