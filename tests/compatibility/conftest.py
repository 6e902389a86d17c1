"""What all cases share, whichever of them runs first."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import pytest

from tests.compatibility import faults
from tests.shared import shared_folder


@pytest.fixture(scope="session", autouse=True)
def _dynamo_is_loaded() -> None:
    importlib.import_module("torch._dynamo")


@pytest.fixture(scope="session", autouse=True)
def _what_cases_call_is_counted_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    faults.SHARED.append(shared_folder(tmp_path_factory, "calls"))
    yield
    faults.SHARED.clear()
