"""Runs beside scalars, and pages that show TensorBoard."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser.runs import record_digits
from tests.shared import once, shared_folder
from tests.tb_plugin.runs import add_scalars


@pytest.fixture(scope="session")
def digits_logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the demo's network, with NaN in its classifier at some steps, and scalars. Not to be changed."""
    logdir, recorded = tmp_path_factory.mktemp("logdir"), shared_folder(tmp_path_factory, "runs")
    shutil.copytree(recorded / once(recorded, "digits", record_digits), logdir / "digits")
    add_scalars(logdir / "digits", range(5))
    return logdir
