"""What torch loads for the first forward-mode derivative of a process."""

from __future__ import annotations

import warnings

import pytest

from torchgraph_explorer.exploring.products import prepare


@pytest.fixture(scope="session", autouse=True)
def _forward_mode() -> None:
    """Load it now: it warns of torch itself, which pytest's filters make an error, also in the model's thread."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare()
