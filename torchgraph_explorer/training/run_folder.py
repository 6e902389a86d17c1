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
from torchgraph_explorer.paths import checked_path
from torchgraph_explorer.printable import printable

LONGEST_NAME = 255
"""Bytes of a folder's name in today's file systems."""


def check_logdir(logdir: object) -> str:
    """`logdir` as a path or URL, with the home folder for `~`. What no file system can encode in it is escaped.

    Raises:
        OptionError: It is no path.
    """
    advice = "Pass a path as a str or Path, or a URL as a str."
    path = checked_path(logdir, advice, option="logdir=", kind="folder for runs")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return "/".join(map(printable, path.split("/")))
    return path


_OF_WANDB = "wandb-"
"""The beginning of the names of runs that belong to a W&B run."""


def check_run_name(run: str) -> str:
    """`run`, a name or a relative path below the logdir, with letters escaped that no folder name can have.

    Raises:
        OptionError: It would lead out of the logdir, or is empty.
    """
    path = PurePosixPath(run.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or "tfevents" in run:
        raise OptionError(
            f"run={run!r} is not a name for a run folder. Pass a name or a relative path such as 'lr0.1/seed3', "
            f"without '..' and without 'tfevents'."
        )
    return "/".join(map(_folder_name, path.parts))


def _folder_name(part: str) -> str:
    """`part`, with unprintable letters escaped, and shortened to what file systems allow."""
    name = printable(part)
    return name if len(name.encode()) <= LONGEST_NAME else printable(part, most=LONGEST_NAME // 5)


def new_run_name(logdir: str, taken: Container[object] = ()) -> str:
    """The time, as a name that no run below `logdir` has: `2026-11-21_08-43-04`.

    The folder is made at once, so that trainings that begin in the same second get runs of their own. At a URL, where a
    name cannot be reserved, random letters are added.
    """
    if "://" in logdir:
        return random_name()
    stem = _time()
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken and _reserve(Path(logdir, name)))


def random_name() -> str:
    """The time and a few random letters, for a store that cannot be asked which names are taken.

    The random generators of torch and Python, which are the user's, are not used.
    """
    return f"{_time()}-{secrets.token_hex(3)}"


def _time() -> str:
    return time.strftime("%Y-%m-%d_%H-%M-%S")


def is_by_time(run: str) -> bool:
    """Whether the name is one that `new_run_name` gives."""
    return re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(-\w+)?", run) is not None


def _reserve(folder: Path) -> bool:
    """Make the folder; False if it exists. If it cannot be made, the writer will say so."""
    try:
        folder.mkdir(parents=True)
    except OSError:
        return not os.path.lexists(folder)
    return True


def make_folder(run_dir: str) -> None:
    """Make the folder of a run. If it cannot be made now, the writer says so and tries again.

    Raises:
        OptionError: It can never be made: a part of the path is a file, or too long.
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


def remove_if_empty(run_dir: str) -> None:
    """Remove the folder of a run that was not begun, unless there is something in it."""
    if "://" not in run_dir:
        with suppress(OSError):
            Path(run_dir).rmdir()


def run_folder(logdir: str, run: str) -> str:
    """The folder of a run: a URL if `logdir` is one, else an absolute path, with links as they are."""
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
    """The name of the run for a W&B run, given or active, so that a resumed one continues its record.

    None without a W&B run.
    """
    active = wandb_run if wandb_run is not None else getattr(sys.modules.get("wandb"), "run", None)
    number = getattr(active, "id", None)
    return f"{_OF_WANDB}{number}" if isinstance(number, str) else None


def is_of_wandb(run: str) -> bool:
    """Whether the run has a name as `run_of_wandb` gives."""
    return run.startswith(_OF_WANDB)
