"""Tables of cases, of which `make test` runs those that stand for the others, and `make test-all` all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def thinned(cases: Iterable[Any], *kept: int) -> list[Any]:
    """The cases of one parameter, exhaustive but for those at the places `kept`."""
    return [case if number in kept else exhaustive(case) for number, case in enumerate(cases)]


def every(nth: int, cases: Iterable[Any]) -> list[Any]:
    """The cases of one parameter. The first of `nth` stands for those up to the next."""
    return [case if number % nth == 0 else exhaustive(case) for number, case in enumerate(cases)]


def exhaustive(case: Any) -> Any:
    """One more case of what another one stands for; it may be a `pytest.param` already."""
    if hasattr(case, "marks"):
        return pytest.param(*case.values, marks=(*case.marks, pytest.mark.exhaustive), id=case.id)
    return pytest.param(case, marks=pytest.mark.exhaustive)


def stood_for(is_so: bool) -> list[pytest.MarkDecorator]:
    """The mark of a case that another one stands for, or none."""
    return [pytest.mark.exhaustive] if is_so else []


def matrix(rows: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
    """Each row with each column, for two parameters. What is not exhaustive has each row and each column."""
    side = min(len(rows), len(columns))
    return [
        pytest.param(row, column, marks=() if i % side == j % side else pytest.mark.exhaustive)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
