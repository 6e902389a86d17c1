"""Has dynamo there for all cases, whichever of them runs first."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(scope="session", autouse=True)
def _dynamo_is_loaded() -> None:
    importlib.import_module("torch._dynamo")
