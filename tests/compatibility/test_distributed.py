"""Training with two processes: the same watched, complete on every rank, and nobody waits for us when one dies."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

WAYS = {
    "ddp": "DDP",
    "ddp_inner": "DDP, the module inside it watched",
    "ddp_no_sync": "DDP with no_sync",
    "ddp_static_graph": "DDP with static_graph",
    "ddp_unused": "DDP with find_unused_parameters",
    "fsdp": "FSDP2, fully_shard",
}
MODULES = ["", "a", "a.0", "a.1", "a.2", "b", "head"]


def start(way: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Both ranks, to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    command += ["--master-port", str(port), "-m", "tests.compatibility.distributed_worker", way, str(folder), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path.cwd())}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)


def ranks(way: str, folder: Path) -> list[dict[str, Any]]:
    """What each rank says; under `error`, why it says nothing."""
    done = start(way, folder)
    if done.returncode:
        return [{"identical": False, "steps": [], "modules": [], "error": done.stderr[-3000:]}] * 2
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_trains_the_same_watched_and_records_every_module(way: str, tmp_path: Path) -> None:
    told = ranks(way, tmp_path)
    assert [each.get("error") for each in told] == [None, None]
    assert [each["identical"] for each in told] == [True, True]
    assert [each["steps"] for each in told] == [[0, 1, 2, 3, 4]] * 2
    assert [each["modules"] for each in told] == [MODULES] * 2


def test_gradients_are_recorded_as_they_are_after_the_ranks_were_averaged(tmp_path: Path) -> None:
    first, second = ranks("ddp", tmp_path)
    assert first["gradient of the head"] == second["gradient of the head"]


def test_a_rank_that_dies_does_not_leave_the_others_hanging(tmp_path: Path) -> None:
    began = time.monotonic()
    assert start("ddp", tmp_path, "die").returncode != 0
    assert time.monotonic() - began < 60
