"""What a flight recorder leaves behind when its process is killed, or ends in an exception that nothing catches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm
from tests.shared import FORKED
from torchgraph_explorer import open_run

TRAIN = """
import os, signal, sys, time
from pathlib import Path
import torch
from torchgraph_explorer import Keep, open_run, watch

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
watcher = watch(model, log_freq=1, backend="record", logdir=sys.argv[1], run="run", verbose=False,
                keep=Keep("*", when="flagged", before=2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def kept():
    return len(open_run(watcher.run_dir).model().kept.steps)

for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(3, 4)).sum().backward()
    optimizer.step()
    if step == 5:
        watcher.keep("asked for")
    if step == 7:
        ENDS
"""


def train(folder: Path, end: str) -> int:
    script = TRAIN.replace("ENDS", end)
    return warm.run("-c", script, str(folder), cwd=folder, frees_all=True).returncode


@pytest.mark.slow
@FORKED
def test_a_killed_process_keeps_what_had_been_asked_for(tmp_path: Path) -> None:
    wait = "end = time.monotonic() + 30\n        while kept() < 3 and time.monotonic() < end: time.sleep(0.02)"
    assert train(tmp_path, f"{wait}\n        os.kill(os.getpid(), signal.SIGKILL)") != 0
    model = open_run(tmp_path / "run").model()
    assert model.kept.steps.tolist() == [3, 4, 5]
    assert model.kept_at(5).reasons == ("asked for",)
    assert model.finished is None


@pytest.mark.slow
@FORKED
def test_an_exception_that_nothing_catches_asks_for_the_latest_steps(tmp_path: Path) -> None:
    assert train(tmp_path, "raise ValueError('odd')") == 1
    model = open_run(tmp_path / "run").model()
    assert model.kept.steps.tolist() == [3, 4, 5, 6, 7]
    assert model.kept_at(6).reasons == ("before step 7: exception: ValueError: odd",)
    assert model.kept_at(7).reasons == ("exception: ValueError: odd",)
    assert model.finished is not None
