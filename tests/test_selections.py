"""What `make fast` and `make test` leave out: never all of a folder, and never all cases of a test."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent

IN_A_BROWSER = "browser"
"""The one folder whose tests all need a browser."""


def folder_of(file: Path) -> str:
    return file.relative_to(HERE).parts[0] if file.parent != HERE else "."


def is_fast(item: pytest.Item) -> bool:
    return not any(map(item.get_closest_marker, ("slow", "browser")))


def test_every_folder_has_fast_tests(request: pytest.FixtureRequest) -> None:
    collected = {item.path for item in request.session.items}
    files = {file for file in HERE.rglob("test_*.py") if folder_of(file) != IN_A_BROWSER}
    if len(collected) < len(files) / 2:
        pytest.skip("looks at a run of the whole suite or of the fast tests")
    fast = Counter(folder_of(item.path) for item in request.session.items if is_fast(item))
    assert {folder for folder in map(folder_of, files) if not fast[folder]} == set()


def test_each_test_has_a_case_that_make_test_runs(cases: dict[str, list[bool]]) -> None:
    assert [test for test, are_exhaustive in cases.items() if all(are_exhaustive)] == []


def test_what_asks_for_a_browser_is_marked_so(request: pytest.FixtureRequest) -> None:
    unmarked = [
        item.nodeid
        for item in request.session.items
        if "chrome" in getattr(item, "fixturenames", ()) and not item.get_closest_marker("browser")
    ]
    assert unmarked == []


def test_a_fast_test_that_starts_python_is_noticed(python_started: list[Any]) -> None:
    command = [sys.executable, "-c", ""]
    subprocess.run(command, check=True, timeout=60)
    assert python_started == [command]
    python_started.clear()
