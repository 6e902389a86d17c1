"""Segments that were changed at random, but for their checks: an answer or an error of ours, in little time and memory.

A test is called by its seed, which is all that makes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.fuzzing import check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keeps the sound segments, which are written once."""
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("seed", range(150))
def test_whatever_a_record_says_is_read_or_refused(seed: int, folder: Path) -> None:
    check(seed, folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10_000, 10_300))
def test_whatever_many_records_say_is_read_or_refused(seed: int, folder: Path) -> None:
    check(seed, folder)
