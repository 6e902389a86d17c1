"""Processes that import the training's script again, to help it, watch nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm
from tests.shared import FORKED

SCRIPT = """
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from torchgraph_explorer import open_run, watch

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
watcher = watch(model, log_freq=1, backend="record", logdir="runs")


def train(inputs):
    model(inputs).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


if __name__ == "__main__":
    loader = DataLoader(TensorDataset(torch.ones(8, 4)), 4, num_workers=1, multiprocessing_context="spawn")
    for (inputs,) in loader:
        train(inputs)
    print("NOW A PROCESS", file=sys.stderr, flush=True)
    process = torch.multiprocessing.get_context("spawn").Process(target=train, args=(torch.ones(2, 4),))
    process.start()
    process.join()
    watcher.close()
"""

STARTED = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_module('script', run_name='__main__', alter_sys=True)"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What the script says beside a worker of a loader, and beside a process that trains; and its folder."""
    folder = tmp_path_factory.mktemp("script")
    (folder / "script.py").write_text(SCRIPT)
    done = warm.run("-c", STARTED, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr.split("NOW A PROCESS"), folder


@pytest.mark.slow
@FORKED
def test_workers_of_a_loader_that_import_the_script_watch_nothing(ran: tuple[list[str], Path]) -> None:
    (told, _), folder = ran
    assert told.count("recording to") == 1
    assert "Warning" not in told
    assert len(list((folder / "runs").iterdir())) == 1


@pytest.mark.slow
@FORKED
def test_a_process_that_imports_the_script_and_trains_is_told_what_to_do(ran: tuple[list[str], Path]) -> None:
    (_, told), _ = ran
    assert "Call `watch` in the function that trains" in told
