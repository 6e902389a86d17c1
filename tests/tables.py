"""Tables of cases, of which `make test` runs those that stand for the others, and `make test-all` all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
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


def matrix(*tables: Sequence[Any]) -> list[Any]:
    """Each combination of the values of several parameters. What is not exhaustive has each value of each parameter."""
    diagonal = {tuple(at % len(table) for table in tables) for at in range(max(map(len, tables)))}
    return [
        pytest.param(*values, marks=() if places in diagonal else pytest.mark.exhaustive)
        for places, values in zip(product(*(range(len(table)) for table in tables)), product(*tables), strict=True)
    ]
