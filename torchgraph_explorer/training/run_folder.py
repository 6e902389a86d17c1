"""Chooses the folder of a run."""

from __future__ import annotations

import errno
import os
import re
import secrets
import sys
import time
from collections.abc import Container
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath

from torchgraph_explorer.errors import OptionError
from torchgraph_explorer.printable import printable

LONGEST_NAME = 255
"""Bytes of a folder's name, in the file systems of today."""


def check_logdir(logdir: object) -> str:
    """`logdir` as a path or URL. What no file system can encode in it is escaped.

    Raises:
        OptionError: It is no path.
    """
    path = os.fspath(logdir) if isinstance(logdir, (str, os.PathLike)) else None
    if not isinstance(path, str) or "\0" in path:
        raise OptionError(f"logdir={logdir!r} is no folder for runs. Pass a path as a str or Path, or a URL as a str.")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "/".join(map(printable, path.split("/")))
    return path


_OF_WANDB = "wandb-"
"""How the names of the runs begin that belong to a W&B run."""


def check_run_name(run: str) -> str:
    """`run`, a folder name or a path of several below the logdir, with names that a folder can have.

    Raises:
        OptionError: It would lead out of the logdir, or is empty.
    """
    path = PurePosixPath(run.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or "tfevents" in run:
        raise OptionError(
            f"run={run!r} is no name for a run folder. Pass a name or a relative path such as 'lr0.1/seed3', "
            f"without '..' and without 'tfevents'."
        )
    return "/".join(map(_folder_name, path.parts))


def _folder_name(part: str) -> str:
    """`part` itself, unless it has letters that are not to be printed, or is longer than file systems allow."""
    name = printable(part)
    return name if len(name.encode()) <= LONGEST_NAME else printable(part, most=LONGEST_NAME // 5)


def new_run_name(logdir: str, taken: Container[object] = ()) -> str:
    """The time, as a name that no run below `logdir` has: `2026-11-21_08-43-04`.

    The folder is made at once, so that of several trainings that begin in one second each gets its own. At a URL, where
    nothing keeps others from a name, some letters are added by chance.
    """
    if "://" in logdir:
        return name_by_chance()
    stem = _time()
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken and _is_ours_now(Path(logdir, name)))


def name_by_chance() -> str:
    """The time and a few letters, as the name of a run whose store cannot be asked which names are taken.

    The chance is not torch's or Python's, which are the user's.
    """
    return f"{_time()}-{secrets.token_hex(3)}"


def _time() -> str:
    return time.strftime("%Y-%m-%d_%H-%M-%S")


def is_by_time(run: str) -> bool:
    """Whether the name is one that `new_run_name` gives."""
    return re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\w+)?", run) is not None


def _is_ours_now(folder: Path) -> bool:
    """Make the folder; False if there is one. If there can be none, the recorder will say so."""
    try:
        folder.mkdir(parents=True)
    except OSError:
        return not os.path.lexists(folder)
    return True


def make_folder(run_dir: str) -> None:
    """Make the folder of a run, if it can be made now; if not, the recorder says so and tries again.

    Raises:
        OptionError: It can never be made: some of it is a file, or its name is too long.
    """
    try:
        Path(run_dir).mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            raise OptionError(
                f"{run_dir[:100]}… is too long for the path of a folder. Pass a shorter logdir= or run=."
            ) from fault
        file = next((str(each) for each in (Path(run_dir), *Path(run_dir).parents) if os.path.isfile(each)), None)  # noqa: PTH113
        if file is not None:
            raise OptionError(
                f"{run_dir} cannot be the folder of a run, since {file} is a file. Pass another logdir= or run=."
            ) from fault


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
    path = Path(place) if Path(place).name not in ("", "..") else Path(os.path.abspath(place))  # noqa: PTH100
    return str(path.parent), path.name


def run_of_wandb(wandb_run: object) -> str | None:
    """The run whose record belongs to a W&B run, given or active: a resumed one goes on where it was.

    None if there is none; whoever needs one says so.
    """
    active = wandb_run if wandb_run is not None else getattr(sys.modules.get("wandb"), "run", None)
    number = getattr(active, "id", None)
    return f"{_OF_WANDB}{number}" if isinstance(number, str) else None


def is_of_wandb(run: str) -> bool:
    """The run has the name of a W&B run's record."""
    return run.startswith(_OF_WANDB)
