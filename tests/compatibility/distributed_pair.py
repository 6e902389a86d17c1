"""Both ranks from one process, which has imported what they need: `FOLDER WAY,...`.

They train in all ways as torchrun starts them, and then once more without it, where one of them is killed: torchrun
would kill the other itself.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
from multiprocessing import get_context
from pathlib import Path

from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from tests.compatibility.distributed_worker import main

NEEDED = ("torch._dynamo", "torch.distributed.fsdp", "torchgraph_explorer.run", "torchgraph_explorer.training.watch")
"""What every rank would import."""

DIES = "dies"


def pair(folder: str, ways: str) -> None:
    """Leave what the ranks tell in `folder`, and how those without torchrun ended, in `dies.json`."""
    for name in NEEDED:
        importlib.import_module(name)
    Path(folder, f"{DIES}.json").write_text(json.dumps(ends_without_torchrun(folder)))
    elastic_launch(as_torchrun(), main)(ways, folder)


def as_torchrun() -> LaunchConfig:
    """What the command makes of `--nproc-per-node 2 --master-addr 127.0.0.1 --master-port ...`."""
    return LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id="none",
        rdzv_backend="static",
        rdzv_endpoint=f"127.0.0.1:{free_port()}",
        rdzv_configs={"rank": 0, "timeout": 60},
        max_restarts=0,
        start_method="fork",
    )


def ends_without_torchrun(folder: str) -> list[int | None]:
    """The exit codes of both ranks."""
    context, port = get_context("fork"), free_port()
    started = [context.Process(target=alone, args=(rank, port, folder)) for rank in range(2)]
    for rank in started:
        rank.start()
    for rank in started:
        rank.join(200)
    return [rank.exitcode for rank in started]


def alone(rank: int, port: int, folder: str) -> None:
    """One rank, told what torchrun would tell it."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "WORLD_SIZE": "2"}
    with Path(folder, f"{DIES}.{rank}.txt").open("w") as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())
    main("ddp", str(Path(folder, DIES)), "die")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    pair(*sys.argv[1:])
