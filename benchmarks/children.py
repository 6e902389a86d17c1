"""Processes that measure something and print it, each in a folder of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT, ROOT / "tb_plugin", ROOT / "wandb_panel")
LONGEST_SECONDS = 900.0

Clock: TypeAlias = Literal["processor", "wall"]
"""What times a step: processor time, with one thread of torch; or wall time, with as many as torch takes by itself."""

KEEPING_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "4000000000"}
"""Makes glibc keep freed memory. Otherwise a training returns memory and takes it again at each step, or does not, by
where its tensors happen to lie, and watching changes that: unlogged steps were up to 5 % faster than unwatched ones."""


class NotMeasured(Exception):
    """A measurement was not possible; the message says why."""


@dataclass(frozen=True)
class Answer:
    """The results of a process of `benchmarks.watched`.

    Attributes:
        told: What it said.
        bytes: What it left on the disk.
        series: That it recorded; 0 for a peer.
    """

    told: dict[str, Any]
    bytes: int
    series: int


def ask(
    question: str,
    way: str,
    subject: str,
    *,
    count: int,
    python: str = sys.executable,
    settings: Mapping[str, str] | None = None,
    clock: Clock = "processor",
) -> Answer:
    """Measure in a process of its own, with `settings` added to its environment.

    Raises:
        NotMeasured: It failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "benchmarks.watched", question, way, subject, str(count), clock]
        threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())} if clock == "wall" else {}
        settings = {**(settings or {}), **threads, **({} if question == "memory" else KEEPING_MEMORY)}
        told = json.loads(done(command, cwd=Path(folder), settings=settings).splitlines()[-1])
        return Answer(told, left(Path(folder)), series(Path(folder, "runs")))


def left(folder: Path) -> int:
    """Bytes of the files in a folder, without wandb's own logs."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files if file.suffix != ".log")


def series(logdir: Path) -> int:
    """How many of them the latest run has; 0 without a run."""
    from torchgraph_explorer import open_run

    runs = sorted(logdir.glob("*")) if logdir.exists() else []
    return len(open_run(runs[-1]).model().series) if runs else 0


def done(command: Sequence[str], *, cwd: Path, settings: Mapping[str, str] | None = None) -> str:
    """What a command prints. It runs with one thread, and wandb keeps all its files in `cwd`.

    Its environment has `settings` too, which may say otherwise.

    Raises:
        NotMeasured: It failed, or took too long.
    """
    places = {f"WANDB_{place}_DIR": str(cwd / place.lower()) for place in ("DATA", "CACHE", "CONFIG")}
    environment = {
        **os.environ,
        **places,
        "OMP_NUM_THREADS": "1",
        **(settings or {}),
        "WANDB_DIR": str(cwd),
        "WANDB_ERROR_REPORTING": "false",
        "PYTHONPATH": os.pathsep.join(map(str, PACKAGES)),
        "PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ["PATH"]]),
    }
    try:
        ended = subprocess.run(
            command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=True
        )
    except subprocess.TimeoutExpired as slow:
        raise NotMeasured(f"it took longer than {LONGEST_SECONDS:g} s") from slow
    except subprocess.CalledProcessError as failed:
        raise NotMeasured((failed.stderr.strip().splitlines() or ["it ended without a word"])[-1]) from failed
    return ended.stdout
