"""Which cases of a long table stand for the others: `make test` runs these, and `make test-all` runs every one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def exhaustive(stood_for: bool) -> list[pytest.MarkDecorator]:
    """The mark of a case that another one stands for, or none."""
    return [pytest.mark.exhaustive] if stood_for else []


def each(values: Iterable[object], nth: int) -> list[object]:
    """A case for each of `values`. The first of every `nth` stands for those up to the next."""
    return [pytest.param(value, marks=exhaustive(at % nth != 0)) for at, value in enumerate(values)]
