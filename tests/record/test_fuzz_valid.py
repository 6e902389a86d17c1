"""Segments that were changed at random, but for their checks: an answer or an error of ours, in little time and memory.

A test is called by its seed, which is all that makes it: `check(SEED, FOLDER)` does the same again.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.record.fuzzing import check
from tests.tables import every

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keeps the sound segments, which are written once."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("seed", every(4, range(100)))
def test_whatever_a_record_says_is_read_or_refused(seed: int, folder: Path) -> None:
    check(seed, folder)


def seeds_of_this_run(count: int) -> list[int]:
    """Others in each run of pytest, and the same in all of its processes."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
    return random.Random(run).sample(range(10_000, 10_000_000), count)


@pytest.mark.parametrize("seed", every(5, seeds_of_this_run(50)))
def test_whatever_other_records_say_is_read_or_refused(seed: int, folder: Path) -> None:
    check(seed, folder)
