"""Agrees on one run with the other ranks of this launch on this machine, by a file.

The leader writes the run into a file in the system's temporary folder; the file's name is made from what only the ranks
of one launch have in common. The others wait for it for `SECONDS_TO_WAIT`, and then are recorded in a run of their own.

Why not by `torch.distributed`, whose store would also serve several machines:

- `watch` may be called before `init_process_group`, when there is no store yet, and on some of the ranks only.
- A collective operation that not all ranks join makes the others hang, and may be matched with one of the training's.
  A rank that does not call `watch` must cost the training nothing.
- The store of a process group (`_get_default_store`) is private, and ends with the group. One of our own needs a port
  that all ranks know, and a rank that serves it for as long as the others wait.

A file needs none of these. Ranks on other machines do not see it; each machine then has a leader and a run of its own,
unless the run is named with `run=`.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from torchgraph_explorer import timeouts
from torchgraph_explorer.console import reason, warn
from torchgraph_explorer.temp_folder import own_folder
from torchgraph_explorer.timeouts import NoAnswerError, NoThreadError, in_time
from torchgraph_explorer.training.at_exit import at_exit

RunLocation: TypeAlias = "tuple[str, str]"
"""The folder of runs, and the run."""

SECONDS_TO_WAIT = 30.0
"""How long a rank waits for the first rank of its machine to call `watch`."""

agreement_numbers = itertools.count()
"""Numbers of what this process agrees on with the other ranks, which count in the same way."""

_SECONDS_BETWEEN = 0.05
_LAUNCH_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")


def agreed_location(given: RunLocation | None, choose: Callable[[], RunLocation], *, is_leader: bool) -> RunLocation:
    """Where to record: `given`, or where the leader does, which calls `choose` to find out.

    `choose` is called once at most, and its result is used: choosing a location may reserve it.
    """
    choose = cache(choose)
    try:
        folder, number = own_folder(), next(agreement_numbers)
        file = folder / f"{_launch(os.getppid())}-{number}.json"
        if is_leader:
            location = given or _publish(file, choose)
            for parent in (os.getppid(), os.getpid()):  # some trainers launch the other ranks from this process
                _publish(folder / f"{_launch(parent)}-{number}.json", lambda: location)
            return location
        return given or _read(file, seconds=SECONDS_TO_WAIT) or _alone(file, choose)
    except OSError as fault:
        warn(f"The ranks cannot agree on a run, and each is recorded in its own ({reason(fault)}). Name one with run=.")
        return given or choose()


def agreed_step(step: int, *, is_leader: bool) -> int:
    """The step to begin with: that of the leader, which gives its own as `step`."""
    _, agreed = agreed_location(("", str(step)) if is_leader else None, lambda: ("", "0"), is_leader=is_leader)
    return int(agreed)


def _alone(file: Path, choose: Callable[[], RunLocation]) -> RunLocation:
    """Where to record without the leader, together with the other ranks that have waited for it in vain."""
    warn(
        f"The first rank of this machine did not begin to watch within {SECONDS_TO_WAIT:g} s, so this rank is "
        f"recorded in another run. Call watch() on every rank, or name the run with run=."
    )
    return _publish(file, choose)


def _publish(file: Path, choose: Callable[[], RunLocation]) -> RunLocation:
    """Write what `choose` finds into `file`; returns what is in it, which is another rank's if that was faster."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            at_exit(partial(_remove, file))
            json.dump(location := choose(), opened)
    except FileExistsError:
        return _read(file, seconds=1.0) or choose()
    return location


def _remove(file: Path) -> None:
    """Remove the file, at exit. The temporary folder is waited for as a store is, if a thread can still be started."""
    remove = partial(file.unlink, missing_ok=True)
    with suppress(OSError, NoAnswerError):
        try:
            in_time(remove, seconds=timeouts.SECONDS)
        except NoThreadError:  # Python 3.12 starts none at exit
            remove()


def _read(file: Path, *, seconds: float) -> RunLocation | None:
    """Wait for `file`, and return what is in it; None if it is not there after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        try:
            logdir, run = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # or only a half of it is written
            if time.monotonic() > end:
                return None
            time.sleep(_SECONDS_BETWEEN)
        else:
            return str(logdir), str(run)


def _launch(parent: int) -> str:
    """What only the ranks of one launch have in common: their parent, and its environment variables."""
    facts = [str(parent), _start_of(parent), *(os.environ.get(name, "") for name in _LAUNCH_VARIABLES)]
    return sha256("\n".join(facts).encode()).hexdigest()[:16]


def _start_of(process: int) -> str:
    """When a process was started, if the system says so: process ids are used again."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return ""
