"""What takes long to make, made once for all processes of a run of pytest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

FORKED = pytest.mark.xdist_group("forked")
"""For tests that run something with `warm.TORCH`: all in one process, so that these are imported once."""


def shared_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this run of pytest, the same in all of its workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    return folder


def once(folder: Path, name: str, make: Callable[[Path, str], object]) -> str:
    """Have `make` write `name` into `folder`, unless this or another process has. It appears there when it is whole.

    Args:
        folder: Of `shared_folder`.
        name: What `make` writes, a file or a folder.
        make: Gets the folder to write into, and the name.

    Returns:
        The name.
    """
    workshop = folder.with_name(f"{folder.name} being made")
    workshop.mkdir(exist_ok=True)
    with FileLock(workshop / f"{name}.lock"):
        if not (folder / name).exists():
            make(workshop, name)
            (workshop / name).rename(folder / name)
    return name
