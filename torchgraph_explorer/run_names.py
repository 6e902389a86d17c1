"""Chooses the folder of a run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from torchgraph_explorer.errors import OptionError


def check_run_name(run: str) -> str:
    """`run` itself, a folder name or a path of several below the logdir.

    Raises:
        OptionError: It would lead out of the logdir, or is empty.
    """
    path = PurePosixPath(run.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in run or "tfevents" in run:
        raise OptionError(
            f"run={run!r} is no name for a run folder. Pass a name or a relative path such as 'lr0.1/seed3', "
            f"without '..' and without 'tfevents'."
        )
    return str(path)


def new_run_name(logdir: str, taken: Iterable[str] = ()) -> str:
    """The time, as a name that no run below `logdir` has: `2026-11-21_08-43-04`."""
    stem = time.strftime("%Y-%m-%d_%H-%M-%S")
    names, number, name = set(taken), 1, stem
    while name in names or ("://" not in logdir and (Path(logdir) / name).exists()):
        number += 1
        name = f"{stem}-{number}"
    return name


def run_folder(logdir: str, run: str) -> str:
    """Where the run is: a local path, or a URL if `logdir` is one."""
    return f"{logdir.rstrip('/')}/{run}" if "://" in logdir else str(Path(logdir) / run)


def run_of_writer(writer: object) -> tuple[str, str]:
    """The folder of runs, and in it the run, that a `SummaryWriter` writes to.

    Raises:
        OptionError: It is no such writer.
    """
    folder = getattr(writer, "log_dir", None)
    if not isinstance(folder, (str, os.PathLike)):
        raise OptionError(
            f"writer={writer!r} has no log_dir. Pass a torch.utils.tensorboard.SummaryWriter, or name the run "
            f"with logdir= and run=."
        )
    place = os.fspath(folder)
    if "://" in place:
        logdir, _, run = place.rstrip("/").rpartition("/")
        return logdir, run
    path = Path(place) if Path(place).name else Path(place).resolve()
    return str(path.parent), path.name


def run_of_wandb(wandb_run: object) -> str | None:
    """The run whose record belongs to a W&B run, given or active: a resumed one goes on where it was.

    None if there is none; whoever needs one says so.
    """
    active = wandb_run if wandb_run is not None else getattr(sys.modules.get("wandb"), "run", None)
    number = getattr(active, "id", None)
    return f"wandb-{number}" if isinstance(number, str) else None
