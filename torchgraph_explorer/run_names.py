"""Chooses the folder of a run."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Container
from contextlib import suppress
from itertools import count
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


def new_run_name(logdir: str, taken: Container[object] = ()) -> str:
    """The time, as a name that no run below `logdir` has: `2026-11-21_08-43-04`.

    The folder is made at once, so that of several trainings that begin in one second each gets its own. At a URL, where
    nothing keeps others from a name, a few letters are added by chance; not torch's or Python's, which are the user's.
    """
    stem = time.strftime("%Y-%m-%d_%H-%M-%S")
    if "://" in logdir:
        return f"{stem}-{secrets.token_hex(3)}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken and _is_ours_now(Path(logdir, name)))


def _is_ours_now(folder: Path) -> bool:
    """Make the folder; False if there is one. If there can be none, the recorder will say so."""
    try:
        folder.mkdir(parents=True)
    except OSError:
        return not os.path.lexists(folder)
    return True


def leave(run_dir: str) -> None:
    """Remove the folder of a run that came to nothing, unless there is something in it."""
    if "://" not in run_dir:
        with suppress(OSError):
            Path(run_dir).rmdir()


def run_folder(logdir: str, run: str) -> str:
    """Where the run is: a URL if `logdir` is one, or a path that stays right if the working directory changes."""
    if "://" in logdir:
        return f"{logdir.rstrip('/')}/{run}"
    return os.path.abspath(Path(logdir, run))  # noqa: PTH100  (keeps a link's name)


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
