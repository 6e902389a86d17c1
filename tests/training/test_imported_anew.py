"""Processes that import the training's script again, to help it, watch nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
    if sys.argv[1] == "workers":
        loader = DataLoader(TensorDataset(torch.ones(8, 4)), 4, num_workers=1, multiprocessing_context="spawn")
        for (inputs,) in loader:
            train(inputs)
    else:
        process = torch.multiprocessing.get_context("spawn").Process(target=train, args=(torch.ones(2, 4),))
        process.start()
        process.join()
    watcher.close()
"""


def ran(folder: Path, argument: str) -> str:
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", argument], cwd=folder, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stderr


@pytest.mark.slow
def test_workers_of_a_loader_that_import_the_script_watch_nothing(tmp_path: Path) -> None:
    told = ran(tmp_path, "workers")
    assert told.count("recording to") == 1
    assert "Warning" not in told
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.slow
def test_a_process_that_imports_the_script_and_trains_is_told_what_to_do(tmp_path: Path) -> None:
    assert "Call `watch` in the function that trains" in ran(tmp_path, "trains")
