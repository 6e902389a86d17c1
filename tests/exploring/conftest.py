"""What torch loads for the first forward-mode derivative of a process."""

from __future__ import annotations

import pytest

from tests.exploring.models import load_forward_mode


@pytest.fixture(scope="session", autouse=True)
def _forward_mode() -> None:
    load_forward_mode()
