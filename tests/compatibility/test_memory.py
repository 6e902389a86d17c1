"""However long a training is logged, the process grows no larger: queues are bounded, and steps are let go of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm
from tests.shared import FORKED

STEPS = 1_250
MEGABYTES = 1
"""Keeping a kilobyte of each of the last four fifths of the steps would be too much."""

TRAINING = """
import sys, torch
from torchgraph_explorer import watch

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
steps = int(sys.argv[2])
with watch(model, backend="record", logdir=sys.argv[1], log_freq=1, verbose=False) as watcher:
    for step in range(steps):
        model(torch.randn(3, 4)).square().mean().backward()
        model.zero_grad()
        if step == steps // 5:
            first = resident()
    print(resident() - first, watcher.run_dir)
"""
"""Prints by how many pages it grew in the last four fifths of its steps."""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the size of the process from /proc")
@FORKED
def test_a_thousand_steps_that_are_all_logged_leave_the_process_as_large_as_it_was(tmp_path: Path) -> None:
    from torchgraph_explorer.run import open_run

    ran = warm.run("-c", TRAINING, str(tmp_path), str(STEPS))
    ran.check_returncode()
    grown, folder = ran.stdout.split()
    assert int(grown) * 4096 < MEGABYTES * 2**20
    assert len(open_run(folder).model().steps) == STEPS
