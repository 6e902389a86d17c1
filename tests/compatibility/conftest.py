"""Makes these tests, of which there are many, as fast as they can be."""

from __future__ import annotations

import gc
import importlib

import pytest


@pytest.fixture(scope="session", autouse=True)
def _only_what_tests_make_is_searched() -> None:
    """Where dynamo is loaded, `watch` looks through all objects for compiled modules. Most are torch's own."""
    importlib.import_module("torch._dynamo")
    gc.collect()
    gc.freeze()
