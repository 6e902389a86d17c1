"""Agrees on one run with the other ranks on this machine, which were launched together, without a word between them.

The first of them to know the run writes it down in a file of the system's temporary folder; its name is made of what
only they have in common. Nobody waits for ever: without an answer a rank is recorded by itself.
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
from torchgraph_explorer.timeouts import NoAnswerError, in_time
from torchgraph_explorer.training import exit

RunLocation: TypeAlias = "tuple[str, str]"
"""The folder of runs, and the run."""

SECONDS_TO_WAIT = 30.0
"""How long a rank waits for the first one of its machine to begin to watch."""

_SECONDS_BETWEEN = 0.05
_TOLD = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")

_numbers = itertools.count()
"""Counts the runs that this process has agreed on: they agree on the first, then on the second, and so on."""


def agreed_place(given: RunLocation | None, choose: Callable[[], RunLocation], *, is_leader: bool) -> RunLocation:
    """Where to record: as `given`, or where the leader does, for which `choose` finds a place.

    It is called once at most, and not for nothing: the place that it finds may be taken with that.
    """
    choose = cache(choose)
    try:
        folder, number = own_folder(), next(_numbers)
        note = folder / f"{_launch(os.getppid())}-{number}.json"
        if is_leader:
            place = given or _write_down(note, choose)
            for parent in (os.getppid(), os.getpid()):  # which some trainers launch the other ranks from
                _write_down(folder / f"{_launch(parent)}-{number}.json", lambda: place)
            return place
        return given or _read(note, patience=SECONDS_TO_WAIT) or _alone(note, choose)
    except OSError as fault:
        warn(f"The ranks cannot agree on a run, and each is recorded in its own ({reason(fault)}). Name one with run=.")
        return given or choose()


def agreed_step(step: int, *, is_leader: bool) -> int:
    """The step to begin with: as the leader says, which is `step` for itself."""
    _, agreed = agreed_place(("", str(step)) if is_leader else None, lambda: ("", "0"), is_leader=is_leader)
    return int(agreed)


def _alone(note: Path, choose: Callable[[], RunLocation]) -> RunLocation:
    """Where to record without the leader, together with others that it has left alone."""
    warn(
        f"The first rank of this machine did not begin to watch within {SECONDS_TO_WAIT:g} s, so that this one is "
        f"recorded in another run. Call watch() on every rank, or name the run with run=."
    )
    return _write_down(note, choose)


def _write_down(note: Path, choose: Callable[[], RunLocation]) -> RunLocation:
    """The place that `note` says: what `choose` finds, unless somebody was faster."""
    try:
        with note.open("x", encoding="utf-8") as file:
            exit.register(partial(_remove, note))
            json.dump(place := choose(), file)
    except FileExistsError:
        return _read(note, patience=1.0) or choose()
    return place


def _remove(note: Path) -> None:
    """At exit, where a store is not waited for any longer than elsewhere."""
    with suppress(OSError, NoAnswerError):
        in_time(partial(note.unlink, missing_ok=True), seconds=timeouts.SECONDS)


def _read(note: Path, *, patience: float) -> RunLocation | None:
    """What is written down, once it is; None if it still is not when patience ends."""
    end = time.monotonic() + patience
    while True:
        try:
            logdir, run = json.loads(note.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):  # or only half of it
            if time.monotonic() > end:
                return None
            time.sleep(_SECONDS_BETWEEN)
        else:
            return str(logdir), str(run)


def _launch(parent: int) -> str:
    """What the ranks of one launch have in common, and no other launch: their parent, and what it told them."""
    facts = [str(parent), _start_of(parent), *(os.environ.get(name, "") for name in _TOLD)]
    return sha256("\n".join(facts).encode()).hexdigest()[:16]


def _start_of(process: int) -> str:
    """When a process was started, where the system says so: numbers of processes are used again."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except (OSError, IndexError, ValueError):
        return ""
